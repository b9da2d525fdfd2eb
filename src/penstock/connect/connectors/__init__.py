"""The classes of connectors, each in a module of its own."""

from penstock.connect.connector_class import Catalog
from penstock.connect.connectors.file_stream import FileStreamSink, FileStreamSource

CATALOG = Catalog((FileStreamSink, FileStreamSource))
"""The connectors of this package."""
