"""All functions of the language, by their names."""

from penstock.flows.expressions import (  # noqa: F401 - importing a file adds its functions to the table
    data_functions,
    number_functions,
    text_functions,
    time_functions,
)
from penstock.flows.expressions.function_table import FUNCTIONS, Function

__all__ = ["FUNCTIONS", "Function"]
