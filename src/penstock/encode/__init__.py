"""Rows to bytes: the formats of records that a sink writes, as encodes of whole columns."""
