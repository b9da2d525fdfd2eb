"""Flows: messages from a trigger through steps to other systems, one by one ([guide](docs/flows.md)).

The definition, the expressions and a run over a list of messages need neither Kafka nor Spark.
"""

from penstock.flows.compiled import CompiledFlow
from penstock.flows.definition.flow import Flow
from penstock.flows.definition.reading import parse_flow, read_flow
from penstock.flows.error_codes import CODES, Fault
from penstock.flows.message import Message
from penstock.flows.running.flow_run import DeadLetter, FlowStoppedError, Outcome, RunResult
from penstock.flows.running.systems import Publisher, Systems

__all__ = [
    "CODES",
    "CompiledFlow",
    "DeadLetter",
    "Fault",
    "Flow",
    "FlowStoppedError",
    "Message",
    "Outcome",
    "Publisher",
    "RunResult",
    "Systems",
    "parse_flow",
    "read_flow",
]
