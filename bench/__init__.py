"""Measurements against the raw library and against peers, each pair in one run."""
