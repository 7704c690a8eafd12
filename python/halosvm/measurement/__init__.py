"""The choice among all ways to learn from measurements with errors; the roof of the package."""
