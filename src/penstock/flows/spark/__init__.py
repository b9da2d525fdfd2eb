"""Flows on the engine: a step over Arrow batches, behind the records of a pipeline."""
