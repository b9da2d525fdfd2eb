"""One measurement of this machine: a list of plain values for each kind of metric."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import psutil

Measured = dict[str, Any]
# The shortest time over which a load is measured, in seconds, and when this process did it last.
_MOMENT = 0.2
_sampled: dict[str, float] = {}
# File systems that hold no data of their own.
_VIRTUAL = frozenset({"squashfs", "overlay", "tmpfs", "devtmpfs", "proc", "sysfs", "cgroup2"})


def cpu(_top: int) -> Iterator[Measured]:
    """Yield the seconds of each processor in each mode since the start of the machine, and its load."""
    for number, (percent, times) in enumerate(zip(_percents(), psutil.cpu_times(percpu=True))):  # noqa: B905 - one may come or go
        yield {"cpu": number, "percent": percent, **times._asdict()}


def _percents() -> list[float]:
    """Return the load of each processor since the last measurement of this process, or for a moment.

    Without an earlier one psutil has a meaningless value, mostly 0 or 100.
    """
    now, last = time.monotonic(), _sampled.get("cpu")
    _sampled["cpu"] = now
    is_known = last is not None and now - last >= _MOMENT
    found: list[float] = psutil.cpu_percent(None if is_known else _MOMENT, percpu=True)
    return found


def memory(_top: int) -> Iterator[Measured]:
    """Yield memory and swap space, in bytes."""
    yield {"memory": "physical", **psutil.virtual_memory()._asdict()}
    yield {"memory": "swap", **psutil.swap_memory()._asdict()}


def disk(_top: int) -> Iterator[Measured]:
    """Yield reads and writes of each disk since the start of the machine."""
    for name, counters in sorted((psutil.disk_io_counters(perdisk=True) or {}).items()):
        yield {"disk": name, **counters._asdict()}


def filesystem(_top: int) -> Iterator[Measured]:
    """Yield size and free space of each file system with data, in bytes."""
    for each in psutil.disk_partitions():
        if each.fstype in _VIRTUAL:
            continue
        with suppress(OSError):  # a device without a medium, a share that is away
            usage = psutil.disk_usage(each.mountpoint)._asdict()
            yield {"device": each.device, "mount": each.mountpoint, "type": each.fstype, **usage}


def network(_top: int) -> Iterator[Measured]:
    """Yield traffic and errors of each interface since the start of the machine."""
    for name, counters in sorted(psutil.net_io_counters(pernic=True).items()):
        yield {"interface": name, **counters._asdict()}


def load(_top: int) -> Iterator[Measured]:
    """Yield how many processes run or wait, on average, and since when the machine is up."""
    one, five, fifteen = psutil.getloadavg()
    yield {
        "load1": one,
        "load5": five,
        "load15": fifteen,
        "cpus": psutil.cpu_count() or 0,
        "processes": len(psutil.pids()),
        "boot_time": psutil.boot_time(),
    }


def process(top: int) -> Iterator[Measured]:
    """Yield the processes that used most processor time, and of them those with most memory first."""
    wanted = ["pid", "name", "username", "cpu_times", "memory_info", "num_threads", "create_time"]
    found = []
    for each in psutil.process_iter(wanted):
        times, used = each.info["cpu_times"], each.info["memory_info"]
        if times is None or used is None:
            continue  # of another user, or gone
        seconds = times.user + times.system
        found.append((seconds, used.rss, each.info))
    found.sort(key=lambda one: one[:2], reverse=True)
    for seconds, rss, info in found[:top]:
        yield {
            "pid": info["pid"],
            "name": info["name"] or "",
            "user": info["username"],
            "cpu_seconds": seconds,
            "rss": rss,
            "threads": info["num_threads"],
            "started": info["create_time"],
        }


def temperature(_top: int) -> Iterator[Measured]:
    """Yield the sensors that the machine has, in degrees Celsius; none in most virtual machines."""
    sensors: Callable[[], dict[str, Any]] | None = getattr(psutil, "sensors_temperatures", None)
    for name, readings in sorted(sensors().items() if sensors else ()):
        for each in readings:
            yield {"sensor": name, "label": each.label, "celsius": each.current}


KINDS: dict[str, Callable[[int], Iterator[Measured]]] = {
    "cpu": cpu,
    "memory": memory,
    "disk": disk,
    "filesystem": filesystem,
    "network": network,
    "load": load,
    "process": process,
    "temperature": temperature,
}


def measure(kind: str, top: int, host: str) -> list[Measured]:
    """Return the measurements of one kind, each with the machine, the kind and the time.

    >>> [each["kind"] for each in measure("load", 5, "here")]
    ['load']
    """
    now = int(time.time() * 1000)
    origin = {"host": host, "kind": kind, "time": now}
    return [origin | _readable(values) for values in KINDS[kind](top)]


def _readable(values: Measured) -> Measured:
    """Return values whose texts are UTF-8: names of mounts, devices and processes can have any bytes."""
    return {
        name: value.encode(errors="replace").decode() if isinstance(value, str) else value
        for name, value in values.items()
    }
