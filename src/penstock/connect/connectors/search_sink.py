"""The sinks of search indexes: Confluent's and Aiven's for Elasticsearch, Aiven's for OpenSearch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from penstock.connect.config_definition import Key, one_of_any_case
from penstock.connect.connector_class import Kind
from penstock.connect.connector_config import ConnectorConfig
from penstock.connect.connector_rows import Rows
from penstock.connect.connectors import document_keys, search_keys
from penstock.connect.key_reports import KeyTable
from penstock.connect.mapped_class import MappedClass, given

_COLUMNS = ("key", "value", "partition", "offset", "timestamp", "headers")


class SearchSink(MappedClass):
    """Documents of search indexes, one for each record; the index is that of the topic."""

    kind: ClassVar[Kind] = "sink"
    rows: ClassVar[Rows] = "documents"
    component: ClassVar[str] = "opensearch"
    differences: ClassVar[tuple[str, ...]] = (
        "With `key.ignore=true` the id is `topic-partition-offset`, with dashes instead of "
        "plus signs.",
        "No mapping is derived from the schema of records: the server derives it from the "
        "first documents.",
        "Documents that the server refuses are bad records, as `errors.tolerance` says; the "
        "others of the batch are written.",
        "The version of a document with a key is the offset of its record, as with these "
        "connectors in Kafka Connect: after a reset of offsets, older records are ignored.",
    )
    write_key: ClassVar[str] = "write.method"
    map_keys: ClassVar[tuple[str, ...]] = ("topic.index.map",)
    places: ClassVar[Mapping[str, str]] = {
        "": "connection.url",
        "operation": "write.method",
        "batch_bytes": "bulk.size.bytes",
        "auth": "connection.username",
    }
    keys: ClassVar[tuple[Key, ...]] = search_keys.KEYS
    without_effect: ClassVar[KeyTable] = search_keys.WITHOUT_EFFECT
    refused: ClassVar[KeyTable] = search_keys.REFUSED

    def obstacles(self, config: ConnectorConfig) -> Iterator[tuple[str, str]]:
        """Yield names that are none, half of the credentials, and bad records that are not tolerated."""
        for key in self.map_keys:
            try:
                document_keys.renaming(config[key])
            except ValueError as error:
                yield key, f"Invalid value for configuration {key}: {error}"
        yield from document_keys.user_obstacle(
            "connection.url",
            config["connection.url"],
            "give it in connection.username, and its password in connection.password",
        )
        user, password = config["connection.username"], config["connection.password"]
        if bool(user) != bool(password):
            key = "connection.password" if user else "connection.username"
            yield (
                key,
                f"Invalid value null for configuration {key}: give user and password, or neither",
            )
        yield from document_keys.tolerance_obstacle(
            config, search_keys.MALFORMED, ("ignore", "warn", "report")
        )
        yield from document_keys.tolerance_obstacle(config, "drop.invalid.message", ("true",))
        yield from self._id_obstacles(config)

    def _id_obstacles(self, config: ConnectorConfig) -> Iterator[tuple[str, str]]:
        if self._named_by_key(config):
            return
        if config[search_keys.NULLS].upper() == "DELETE":
            yield (
                search_keys.NULLS,
                _without_id(
                    search_keys.NULLS,
                    config[search_keys.NULLS],
                    "a document is deleted by the record's key",
                ),
            )
        if config[self.write_key].upper() == "UPSERT":
            yield (
                self.write_key,
                _without_id(
                    self.write_key, config[self.write_key], "it changes a document that has an id"
                ),
            )

    def pipeline(self, config: ConnectorConfig) -> dict[str, Any]:
        """Return a pipeline that writes the documents."""
        by_key, upserts = self._named_by_key(config), config[self.write_key].upper() == "UPSERT"
        user, seconds = config["connection.username"], config["read.timeout.ms"]
        basic = {"username": user, "password": config["connection.password"]}
        options = {
            "url": config["connection.url"],
            "index": "{topic}",
            "id": "key" if by_key else None,
            "value": "value",
            "operation": "upsert" if upserts else "index",
            # As Connect's: a record that is written again does not replace a newer one.
            "version": "offset" if by_key and not upserts else None,
            "delete_null": config[search_keys.NULLS].upper() == "DELETE",
            "auth": {"basic": basic} if user else None,
            "ca": config["penstock.ca"],
            "gzip": config["connection.compression"],
            "batch_bytes": config["bulk.size.bytes"],
            "timeout": seconds / 1000 if seconds else None,
        }
        return {"steps": self._steps(config), "sink": {"opensearch": given(options)}}

    def _steps(self, config: ConnectorConfig) -> list[dict[str, Any]]:
        names = {
            k: v for key in self.map_keys for k, v in document_keys.renaming(config[key]).items()
        }
        steps = [document_keys.renaming_step(names, _COLUMNS)] if names else []
        if config[search_keys.NULLS].upper() == "IGNORE":
            steps.append(document_keys.WITH_VALUE)
        return steps

    def _named_by_key(self, config: ConnectorConfig) -> bool:
        return not config["key.ignore"]


class ElasticsearchSink(SearchSink):
    """Documents of Elasticsearch or OpenSearch; the index is that of the topic."""

    names: ClassVar[tuple[str, ...]] = (
        "io.confluent.connect.elasticsearch.ElasticsearchSinkConnector",
        "io.aiven.connect.elasticsearch.ElasticsearchSinkConnector",
    )


class OpensearchSink(SearchSink):
    """Documents of OpenSearch; the index is that of the topic."""

    names: ClassVar[tuple[str, ...]] = (
        "io.aiven.kafka.connect.opensearch.OpensearchSinkConnector",
    )
    write_key: ClassVar[str] = "index.write.method"
    places: ClassVar[Mapping[str, str]] = {**SearchSink.places, "operation": "index.write.method"}
    keys: ClassVar[tuple[Key, ...]] = (
        *(key for key in SearchSink.keys if key.name != "write.method"),
        Key(
            "index.write.method",
            default="insert",
            documentation="insert replaces a document, upsert changes those fields of it that the record "
            "has.",
            importance="LOW",
            group="Data Conversion",
            check=one_of_any_case("INSERT", "UPSERT"),
        ),
        Key(
            "key.ignore.id.strategy",
            default="topic.partition.offset",
            documentation="The id where key.ignore is true: topic.partition.offset, or record.key.",
            importance="LOW",
            group="Data Conversion",
            check=one_of_any_case("none", "record.key", "topic.partition.offset"),
        ),
    )
    without_effect: ClassVar[KeyTable] = {
        **SearchSink.without_effect,
        "behavior.on.version.conflict": "a record that is not newer than its document is ignored",
    }

    def _named_by_key(self, config: ConnectorConfig) -> bool:
        return not config["key.ignore"] or config["key.ignore.id.strategy"].lower() == "record.key"


def _without_id(key: str, value: str, why: str) -> str:
    return (
        f"Invalid value {value} for configuration {key}: {why}, and key.ignore is true: give "
        "key.ignore=false"
    )
