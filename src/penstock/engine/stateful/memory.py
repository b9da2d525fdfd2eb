"""Refuses to go on with state that was kept in another form: Spark would fail, or read it wrongly."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.engine.checkpoint import Epoch
from penstock.engine.stateful.stream import Shapes
from penstock.errors import ConfigError


def require_the_same(epoch: Epoch, shapes: Shapes) -> None:
    """Compare what the steps keep with what they kept before; write it down before the first batch."""
    kept = epoch.shapes()
    if kept == shapes:
        return
    if epoch.last() is None:
        epoch.keep_shapes(shapes)
    elif changes := list(_changes(kept, shapes)):
        raise ConfigError(
            f"the pipeline would go on with state that was kept otherwise: {'; '.join(changes)}. "
            "Put it back, give the pipeline another name, or, to begin with empty state where the group "
            f"stands, remove {epoch.location}"
        )


def _changes(before: Shapes, now: Shapes) -> Iterator[str]:
    names = [[shape["step"] for shape in shapes] for shapes in (before, now)]
    if names[0] != names[1]:
        was, are = (", ".join(found) or "none" for found in names)
        yield f"the steps that keep state were {was}, and are {are}"
        return
    for old, new in zip(before, now, strict=True):
        for key in new:
            if old.get(key) != new[key]:
                yield f"{key!r} of {new['step']!r} was {old.get(key)!r}, and is {new[key]!r}"
