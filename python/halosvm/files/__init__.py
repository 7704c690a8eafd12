"""Files: tables and models.

table             CSV and TSV files with error bars
table_models      models that are trained on tables and applied to them
model_file        `save_model` and `load_model`
saved_estimators  the estimators that model files can hold, and `transformers` of scikit-learn
records           estimators as JSON and back, of `parts`
json_tree         JSON text, read strictly and with places, and written readably
json_values       parameters, classes and arrays as JSON and back; `json_examples` Gaussians
svmgsu_file       model files of the public tool SVM-GSU
"""
