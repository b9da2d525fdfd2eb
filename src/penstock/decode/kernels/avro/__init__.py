"""Avro bodies of one schema into the columns of another, a batch at a time."""
