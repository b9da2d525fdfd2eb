"""Where a record failed, in Connect's terms: the stage, and the class that was at work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ConfigDict
from pyspark.sql import functions as f

from penstock.config.models import SafeModel

if TYPE_CHECKING:
    from pyspark.sql import Column

_DATA = "org.apache.kafka.connect.errors.DataException"
_CONNECT = "org.apache.kafka.connect.errors.ConnectException"


class PluginClasses(SafeModel):
    """The classes that a configuration names."""

    model_config = ConfigDict(frozen=True)

    connector: str
    key: str
    value: str
    transforms: tuple[str, ...] = ()


def stage_of(stage: Column, error: Column, classes: PluginClasses) -> Column:
    """Return the stage as Connect names it.

    What a step refuses is a transform's where there is one, else it is the connector's own.
    """
    step = "TRANSFORMATION" if classes.transforms else "TASK_PUT"
    return (
        f.when(_is_key(stage, error), "KEY_CONVERTER")
        .when(stage == "decode", "VALUE_CONVERTER")
        .when(stage == "step", step)
        .otherwise("TASK_PUT")
    )


def class_of(stage: Column, error: Column, classes: PluginClasses) -> Column:
    """Return the class that was at work; of several transforms all, with commas between."""
    step = ",".join(dict.fromkeys(classes.transforms)) or classes.connector
    return (
        f.when(_is_key(stage, error), classes.key)
        .when(stage == "decode", classes.value)
        .when(stage == "step", step)
        .otherwise(classes.connector)
    )


def exception_of(stage: Column) -> Column:
    """Return the class of the exception that Connect has for a stage."""
    return f.when(stage.isin("decode", "step"), _DATA).otherwise(_CONNECT)


def _is_key(stage: Column, error: Column) -> Column:
    return (stage == "decode") & error.startswith("key: ")
