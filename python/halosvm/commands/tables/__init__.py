"""Commands on tables: words and tables with error bars in; model files and predictions out.

reading    the table that a command names
training   ``halosvm train``
tasks      what classification and regression make of a table and the options
applying   ``halosvm predict`` and ``halosvm evaluate``
"""
