"""What a connector does with its bad records: `errors.*` of its configuration."""

from penstock.sinks.connect_errors.connect_errors_sink import ConnectErrors
from penstock.sinks.connect_errors.error_stages import PluginClasses

__all__ = ["ConnectErrors", "PluginClasses"]
