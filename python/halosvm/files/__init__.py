"""Files: tables and models.

table          CSV and TSV files with error bars
table_models   models that are trained on tables and applied to them
model_file     `save_model` and `load_model`
json_values    parameters, classes and arrays as JSON and back
"""
