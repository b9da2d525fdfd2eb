"""Transforms and predicates in the configuration of a connector: their keys, checks and options."""
