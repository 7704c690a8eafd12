"""Random small problems, and a judge of their fits that shares no code with the package."""
