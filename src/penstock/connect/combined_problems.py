"""What is wrong between parts of a configuration that are right one by one.

Connect reports most of this when the connector starts; here a configuration is refused before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from penstock.connect.chain_kinds import reads_values
from penstock.connect.common_keys import (
    EXACTLY_ONCE_SUPPORT,
    HEADER_CONVERTER,
    KEY_CONVERTER,
    TOPICS,
    TOPICS_REGEX,
    TRANSFORMS,
    VALUE_CONVERTER,
)
from penstock.connect.connector_class import ConnectorClass
from penstock.connect.connector_config import ConnectorConfig
from penstock.connect.converters import Converters, for_connector
from penstock.connect.header_forms import header_problem
from penstock.connect.transforms.configured_chain import configured_chain
from penstock.errors import ConfigError
from penstock.formats.connect.converter_options import REGISTERED
from penstock.pipeline import Delivery
from penstock.pipeline.importing import Import
from penstock.pipeline.registry import component


def combined_problems(
    kind: type[ConnectorClass], config: ConnectorConfig, worker: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield keys with what is wrong with them together with others, or with the worker's converters."""
    try:
        chain = configured_chain(config.given)
    except ConfigError as error:
        yield TRANSFORMS, str(error)
        return
    try:
        converters = for_connector(config.given, worker)
    except ConfigError as error:
        yield _converter_key(str(error)), str(error)
        return
    if problem := header_problem(converters, chain):
        yield HEADER_CONVERTER, problem
    if kind.kind == "sink":
        yield from _registry_problems(config, converters)
    else:
        yield from _promise_problems(kind, config)
        registered = {each.form for each in converters.options} & {*REGISTERED}
        if chain and (reads_values(chain) or registered):
            yield from _source_problems(kind, config)


def _registry_problems(
    config: ConnectorConfig, converters: Converters
) -> Iterator[tuple[str, str]]:
    """Yield that the schemas of a registry are those of one topic."""
    both = {KEY_CONVERTER: converters.key.options, VALUE_CONVERTER: converters.value.options}
    given = {key: each for key, each in both.items() if each and each.form in REGISTERED}
    for key, each in given.items():
        if each.subject != "topic":
            use = key.partition(".")[0]
            yield (
                key,
                f"Invalid value for configuration {key}.{use}.subject.name.strategy: the schema of the "
                f"column is that of the subject TOPIC-{use}; give TopicNameStrategy, or leave it out",
            )
    if given and len(topics := config[TOPICS]) != 1:
        key = TOPICS if topics else TOPICS_REGEX
        names = " and ".join(given)
        yield (
            key,
            f"Invalid value {config.get(key)} for configuration {key}: with the registry of {names} a "
            "connector reads one topic, whose subject has the schema; make one connector for each topic",
        )


def _promise_problems(
    kind: type[ConnectorClass], config: ConnectorConfig
) -> Iterator[tuple[str, str]]:
    """Yield that exactly-once is required of a source that cannot promise it."""
    if config[EXACTLY_ONCE_SUPPORT].lower() != "required":
        return
    (name,) = kind().pipeline(config)["source"]
    source = component("source", name)
    if issubclass(source, Import) and Delivery.EXACTLY_ONCE not in source.delivers:
        yield (
            EXACTLY_ONCE_SUPPORT,
            f"Invalid value {config[EXACTLY_ONCE_SUPPORT]} for configuration {EXACTLY_ONCE_SUPPORT}: "
            f"{source.why_not}; give requested, or leave it out",
        )


def _source_problems(
    kind: type[ConnectorClass], config: ConnectorConfig
) -> Iterator[tuple[str, str]]:
    """Yield that records of several topics with schemas of their own cannot be read as one table."""
    if not kind().imported(config).takes_converters:
        return
    (options,) = kind().pipeline(config)["source"].values()
    if "{" in options.get("topic", ""):
        yield (
            TRANSFORMS,
            f"Invalid value {','.join(config[TRANSFORMS])} for configuration {TRANSFORMS}: this "
            "connector reads into several topics, whose records have schemas of their own, and "
            "transforms of keys and values, or converters with a registry, need one schema: make a "
            "connector for each of them",
        )


def _converter_key(text: str) -> str:
    use = text.partition(".converter")[0].rpartition(" ")[2]
    key = f"{use}.converter"
    return key if key in (KEY_CONVERTER, VALUE_CONVERTER, HEADER_CONVERTER) else VALUE_CONVERTER
