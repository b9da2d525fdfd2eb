"""The expressions of flows: a small language of its own, without Python's `eval`."""

from penstock.flows.expressions.expression import Expression, Template, evaluate
from penstock.flows.expressions.expression_error import ExpressionError
from penstock.flows.expressions.functions import FUNCTIONS

__all__ = ["FUNCTIONS", "Expression", "ExpressionError", "Template", "evaluate"]
