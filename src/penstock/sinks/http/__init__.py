"""The sink `http`: rows as requests to an HTTP service."""

from penstock.sinks.http.http_sink import HttpSink

__all__ = ["HttpSink"]
