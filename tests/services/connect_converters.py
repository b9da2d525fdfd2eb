"""The converters of Apache Kafka itself, in one Java process: what ours are compared with."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pyspark
from bench.peers.jars import fetch
from py4j import java_gateway
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError, get_return_value

from penstock.embedded.java import find_java

_PY4J = next(Path(pyspark.__file__).parent.glob("jars/py4j-*.jar"))


class RefusedError(Exception):
    """A converter does not take a value."""


class Converter:
    """One converter in Java; printing it does not call it."""

    def __init__(self, made: Any) -> None:
        self.made = made

    def __repr__(self) -> str:
        return "a converter in Java"


class Converters:
    """Classes of Connect by their full names."""

    def __init__(self, gateway: JavaGateway) -> None:
        self._gateway = gateway

    def converter(self, name: str, config: Mapping[str, str], use: str = "value") -> Converter:
        """Return a converter with its configuration."""
        made = self._made(name)
        made.configure(self._java_map(config), use == "key")
        return Converter(made)

    def header_converter(self, name: str) -> Converter:
        """Return a converter of headers."""
        made = self._made(name)
        made.configure(self._java_map({}))
        return Converter(made)

    def round_trip(self, converter: Converter, data: bytes | None) -> bytes | None:
        """Return what a converter writes of what it reads."""
        # Where a Spark session was, py4j asks Spark's Java about every exception: also about one of this.
        with mock.patch.object(java_gateway, "get_return_value", get_return_value):
            try:
                read = converter.made.toConnectData("t", data)
                written = converter.made.fromConnectData("t", read.schema(), read.value())
            except Py4JJavaError as error:
                raise RefusedError(error.java_exception.toString()) from None
        return None if written is None else bytes(written)

    def as_text(self, reader: Converter, writer: Converter, data: bytes) -> bytes:
        """Return what one converter writes of what another one reads."""
        read = reader.made.toConnectData("t", data)
        return bytes(writer.made.fromConnectData("t", read.schema(), read.value()))

    def header(self, converter: Converter, data: bytes) -> tuple[str | None, bytes]:
        """Return the type of a header's value (its logical name where it has one), and its text again."""
        read = converter.made.toConnectHeader("t", "h", data)
        schema = read.schema()
        written = converter.made.fromConnectHeader("t", "h", schema, read.value())
        kind = None if schema is None else schema.name() or schema.type().getName()
        return kind, None if written is None else bytes(written)

    def _made(self, name: str) -> Any:
        made = self._gateway.jvm
        for part in name.split("."):
            made = getattr(made, part)
        return made()

    def _java_map(self, config: Mapping[str, str]) -> Any:
        made = self._gateway.jvm.java.util.HashMap()
        for key, value in config.items():
            made.put(key, value)
        return made


@contextmanager
def running_converters() -> Iterator[Converters]:
    """Start the process, and end it."""
    port, token, process = launch_gateway(
        jarpath=str(_PY4J),
        classpath=os.pathsep.join(map(str, fetch("connect"))),
        javaopts=["-Xmx256m", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC"],
        java_path=str(find_java().path),
        die_on_exit=True,
        enable_auth=True,
        return_proc=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    try:
        yield Converters(gateway)
    finally:
        gateway.shutdown()
        process.stdin.close()
        process.wait(timeout=20)
