"""The text format of Prometheus: families of metrics with their labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Sample = tuple[Mapping[str, str], float]
"""Labels and a value."""


def family(name: str, kind: str, text: str, samples: Iterable[Sample]) -> list[str]:
    """Return the lines of one metric; its values are written without loss.

    >>> family("up", "gauge", "Whether it is up.", [({"host": "a"}, 1.0)])
    ['# HELP up Whether it is up.', '# TYPE up gauge', 'up{host="a"} 1.0']
    """
    lines = _head(name, kind, text)
    return lines + [_line(name, labels, value) for labels, value in samples]


Histogram = tuple[Mapping[str, str], Sequence[int], float]
"""Labels, the cumulative counts of the buckets with that of all at the end, and the sum."""


def histogram(
    name: str, text: str, bounds: Sequence[float], values: Iterable[Histogram]
) -> list[str]:
    """Return the lines of a histogram."""
    lines = _head(name, "histogram", text)
    names = [*map(repr, bounds), "+Inf"]
    for labels, counts, total in values:
        lines += [
            _line(f"{name}_bucket", {**labels, "le": bound}, count)
            for bound, count in zip(names, counts, strict=True)
        ]
        lines += [_line(f"{name}_sum", labels, total), _line(f"{name}_count", labels, counts[-1])]
    return lines


def _head(name: str, kind: str, text: str) -> list[str]:
    return [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]


def _line(name: str, labels: Mapping[str, str], value: float) -> str:
    return f"{name}{{{_labels(labels)}}} {float(value)!r}"


def _labels(labels: Mapping[str, str]) -> str:
    r"""Return labels in which no value can end its quotes.

    >>> _labels({"deployment": 'a"b\\c'})
    'deployment="a\\"b\\\\c"'
    """
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
