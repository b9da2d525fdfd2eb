"""What a machine says of itself: loads over a time, names of any bytes, positions set by hand."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import psutil
import pytest

from penstock.encode.format_options import FormatChoice
from penstock.imports.host_metrics import HostMetricsImport, measuring
from penstock.imports.host_metrics.measured_values import values_of
from penstock.pipeline.importing import key_of

Partition = namedtuple("Partition", "device mountpoint fstype")
Usage = namedtuple("Usage", "total used")


def test_a_load_is_that_of_a_time_also_in_the_first_measurement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, asked = [100.0], []

    def percent(interval: float | None, percpu: bool) -> list[float]:
        asked.append(interval)
        return [1.0] * psutil.cpu_count() if percpu else []

    monkeypatch.setattr(measuring, "_sampled", {})
    monkeypatch.setattr(measuring.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(psutil, "cpu_percent", percent)
    for seconds in (10.0, 0.01, 10.0):
        assert {each["percent"] for each in measuring.measure("cpu", 1, "here")} == {1.0}
        now[0] += seconds
    assert asked == [0.2, None, 0.2]


def test_a_processor_that_comes_between_two_looks_is_measured_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(psutil, "cpu_percent", lambda *_, **__: [5.0])
    times = psutil.cpu_times()
    monkeypatch.setattr(psutil, "cpu_times", lambda **_: [times, times])
    assert [each["cpu"] for each in measuring.measure("cpu", 1, "here")] == [0]


def test_names_that_are_not_utf8_are_readable(monkeypatch: pytest.MonkeyPatch) -> None:
    mounted = [Partition("/dev/sda", "/media/caf\udce9", "ext4")]
    monkeypatch.setattr(psutil, "disk_partitions", lambda: mounted)
    monkeypatch.setattr(psutil, "disk_usage", lambda _: Usage(2, 1))
    (value,) = values_of(
        measuring.measure("filesystem", 1, "here"), FormatChoice(bare="json"), "metrics"
    )
    assert b'"mount":"/media/caf?"' in value


@pytest.mark.parametrize("sensors", [dict, None])
def test_a_machine_without_temperatures_has_no_records(
    monkeypatch: pytest.MonkeyPatch, sensors: Any
) -> None:
    monkeypatch.setattr(psutil, "sensors_temperatures", sensors, raising=False)
    assert measuring.measure("temperature", 1, "here") == []


@pytest.mark.parametrize("position", [{}, {"time": "now"}, {"time": None}])
def test_a_position_that_is_not_a_time_makes_a_measurement_due(position: dict[str, Any]) -> None:
    host = HostMetricsImport(kinds=["load"], host="here").system()
    (part,) = host.pending({})
    assert [each.place for each in host.pending({key_of(part.place): position})] == [part.place]
