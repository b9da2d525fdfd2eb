"""The source `http_listener`: a server whose requests become records of a topic."""

from penstock.imports.http_listener.listener_import import HttpListenerImport

__all__ = ["HttpListenerImport"]
