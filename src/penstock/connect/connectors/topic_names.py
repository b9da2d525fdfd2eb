"""Names that a connector makes of topics: one table for all records, or one that `${topic}` names."""

from __future__ import annotations

from collections.abc import Callable

from penstock.connect.common_keys import TOPICS, TRANSFORMS
from penstock.connect.connector_config import ConnectorConfig
from penstock.connect.topic_routing import routed
from penstock.connect.transforms.plugins import find_transform

TOPIC = "${topic}"
_SEVERAL = (
    "a connector writes one table here, and the topics would need several: {names}; create a connector "
    "for each topic, give one name without {place}, or let a RegexRouter make one name of them"
)


def name_of(
    config: ConnectorConfig,
    template: str,
    place: str = TOPIC,
    change: Callable[[str], str] = lambda name: name,
) -> str:
    """Return the one name that a template has for all topics; raise ValueError where there are several.

    >>> from penstock.connect.common_keys import SINK
    >>> name_of(ConnectorConfig({"topics": "orders"}, SINK), "shop.${topic}")
    'shop.orders'
    """
    if place not in template:
        return template
    names = [*dict.fromkeys(change(name) for name in final_topics(config))]
    if len(names) > 1:
        shown = ", ".join(names[:5])
        raise ValueError(_SEVERAL.format(names=shown, place=place))
    return template.replace(place, names[0])


def final_topics(config: ConnectorConfig) -> list[str]:
    """Return the topics as the transforms name them; raise ValueError where that is not known."""
    topics: list[str] = config[TOPICS] or []
    if not topics:
        raise ValueError(
            "the topics are given by 'topics.regex', and a connector writes one table here; list the "
            f"topics in 'topics', or give a name without {TOPIC}"
        )
    for name in config[TRANSFORMS] or []:
        topics = _routed(config, name, topics)
    return topics


def _routed(config: ConnectorConfig, transform: str, topics: list[str]) -> list[str]:
    prefix = f"{TRANSFORMS}.{transform}."
    plugin = find_transform(config.get(f"{prefix}type") or "")
    kind = plugin.kind if plugin else ""
    if kind not in ("RegexRouter", "TimestampRouter"):
        return topics
    if kind == "TimestampRouter" or config.get(f"{prefix}predicate"):
        what = (
            "depends on each record" if kind == "TimestampRouter" else "is subject to a predicate"
        )
        raise ValueError(
            f"the transform {transform!r} changes the topic and {what}, so that {TOPIC} is not one name; "
            f"leave it out, or give a name without {TOPIC}"
        )
    try:
        return routed(
            config.get(f"{prefix}regex") or "", config.get(f"{prefix}replacement") or "", topics
        )
    except ValueError:
        raise ValueError(
            f"what the transform {transform!r} makes of the topic {topics[0]!r} is not known before it "
            f"runs; give a name without {TOPIC}"
        ) from None
