"""Rows into a table of a database. Nothing is imported here: Spark's workers load only `tasks`."""
