"""The command ``halosvm``: words of the command line in, tables, files and pictures out.

cli         the commands, run, and their exit status
options     their words
tables      ``halosvm train``, ``predict``, ``evaluate`` and ``convert``
demo        ``halosvm demo``
benchmark   ``halosvm bench``
"""
