"""Topics of another Kafka cluster, mirrored into this one."""

from penstock.imports.mirror.mirror_import import MirrorImport

__all__ = ["MirrorImport"]
