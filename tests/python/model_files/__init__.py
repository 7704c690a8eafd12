"""Fitted estimators of every kind, and files of them that are damaged at random."""
