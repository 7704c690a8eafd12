"""Commands on tables: words and tables with error bars in; model files and predictions out.

reading     the table that a command names, and notes on it
machines    the estimator and the steps before it that the options ask for
tasks       what classification and regression make of a table
training    ``halosvm train``
predicting  ``halosvm predict``
evaluating  ``halosvm evaluate``
measuring   ``halosvm next``
converting  ``halosvm convert``
"""
