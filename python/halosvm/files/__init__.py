"""Files: tables and models.

tables            tables with error bars, of many formats, read and written
table_models      models that are trained on tables and applied to them
model_file        `save_model` and `load_model`
saved_estimators  the estimators that model files can hold, and `transformers` of scikit-learn
skops_file        what JSON cannot hold: estimators with scikit-learn's trees and the like
records           estimators as JSON and back, of `parts`
json_tree         JSON text, read strictly and with places, and written readably
json_values       parameters, classes and arrays as JSON and back; `json_examples` Gaussians
svmgsu_file       model files of the public tool SVM-GSU
chunks            data larger than memory, in parts
parquet           Parquet data sets, in chunks
atomic            outputs that are complete or not there
"""
