"""The sink `opensearch`: rows as documents of a search index."""

from penstock.sinks.opensearch.opensearch_sink import OpensearchSink

__all__ = ["OpensearchSink"]
