"""Probabilities: decision values and their spread come in, probabilities of classes go out.

platt                   `PlattScaling`: a logistic curve through decision values
curves                  the other curves: isotonic ones, and one temperature for all classes
scores                  one value a class of any classifier, with its spread
expectations            means of curves over decision values that are uncertain
calibrated_classifier   `UncertainCalibratedClassifier`: cross-validated, for any classifier
"""

METHODS = ("sigmoid", "isotonic", "temperature")  # how curves are called
