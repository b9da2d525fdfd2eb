"""What sinks for systems of messages share: tasks send rows as messages, and name what is refused."""

from penstock.sinks.messages.message_value import MessageValue
from penstock.sinks.messages.message_writer import MessageWriter
from penstock.sinks.messages.outlet import Outlet, Refusal
from penstock.sinks.messages.record_ids import RecordIds

__all__ = ["MessageValue", "MessageWriter", "Outlet", "RecordIds", "Refusal"]
