"""The source `host_metrics`: what this machine does, as records."""

from penstock.imports.host_metrics.host_metrics_import import HostMetricsImport

__all__ = ["HostMetricsImport"]
