"""The source `files`: a folder that grows, into a topic."""

from penstock.imports.files.files_import import FilesImport

__all__ = ["FilesImport"]
