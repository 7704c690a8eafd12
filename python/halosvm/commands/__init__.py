"""The command ``halosvm``: words of the command line in, tables, files and pictures out.

cli         the commands and their options
tables      ``halosvm train``, ``predict`` and ``evaluate``
demo        ``halosvm demo``
benchmark   ``halosvm bench``
"""
