"""The doctor: measurements with their errors and labels in; what the errors are worth out.

examination  the function `doctor`, and the numbers it finds
findings     each number: shares, permutation tests, rows that are new
words        the numbers as one screen of text
"""

from .examination import Diagnosis, doctor

__all__ = ["Diagnosis", "doctor"]
