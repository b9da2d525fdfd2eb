"""Protobuf messages into columns, a batch at a time."""
