"""Kafka Connect's configurations and names: connectors that run as pipelines."""
