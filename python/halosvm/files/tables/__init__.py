"""Tables with error bars: files of many formats in; means, errors, labels or values out.

opening     a path or standard input: its bytes and its format
text        CSV and TSV in their dialects, read by pandas
claims      what tables with types say of themselves, checked before their data
room        how much memory a table may take
typed       Parquet and Feather by pyarrow; FITS, ECSV and VOTable, with units and masks, by astropy
reading     how options say that a table is read
roles       which columns are features, errors and labels
numerical   svmlight and npz files, which hold matrices
documents   means, labels and covariances in three files of SVM-GSU
table       `read_table`, which joins them, and `Table`
cells       numbers and errors of columns, and which are missing
labels      labels as text, integers or booleans; which of them are missing
writing     the same formats, written
trouble     `TableError`, and words for messages

pandas, pyarrow and astropy are imported when a table is read.
"""
