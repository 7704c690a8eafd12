"""Files: tables and models.

tables         tables with error bars, of many formats, read and written
table_models   models that are trained on tables and applied to them
model_file     `save_model` and `load_model`
json_values    parameters, classes and arrays as JSON and back
chunks         data larger than memory, in parts
parquet        Parquet data sets, in chunks
atomic         outputs that are complete or not there
"""
