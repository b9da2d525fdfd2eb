"""Transforms and predicates of Kafka Connect, as expressions over the columns of records."""
