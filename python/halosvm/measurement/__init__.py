"""The choice among all ways to learn from measurements with errors; the roof of the package.

features      `MeasurementFeatures`: measurements -> plain columns
candidates    ways from columns, or Gaussians, to answers
folds         which rows are left out together
comparison    left-out losses -> a table, and what to combine
choice        what both estimators share: compare, choose, fit to all rows
classifier    `MeasurementClassifier`
regressor     `MeasurementRegressor`
doctor        what the errors of a table are worth, on one screen
readings      which reading of which object to make next
"""
