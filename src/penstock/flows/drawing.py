"""A flow as a picture: SVG of its own, from top to bottom, without anything from the network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

from penstock.config.printable import printable
from penstock.config.secrets import mask
from penstock.flows.definition.flow import Flow
from penstock.flows.definition.step_model import Handler, Step
from penstock.flows.definition.triggers import Trigger, trigger_name

_WIDTH, _HEIGHT, _GAP, _MARGIN = 240, 44, 26, 16
_LABEL = 18
_LONGEST = 34
_COLOURS = {"publish": "#d9ead3", "http": "#d9ead3", "branch": "#fff2cc", "try": "#fff2cc"}
_STYLE = (
    "text{font:12px sans-serif;fill:#222}.kind{font-weight:bold}.small{font-size:10px;fill:#666}"
    "rect{stroke:#888;rx:6}path{stroke:#888;fill:none;marker-end:url(#arrow)}"
)


@dataclass
class _Picture:
    """What is drawn so far, and how large it is."""

    shapes: list[str] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0

    def box(self, x: float, y: float, kind: str, text: str, colour: str) -> None:
        """Draw a box; `x` is its middle."""
        left = x - _WIDTH / 2
        self.shapes.append(
            f'<rect x="{left:g}" y="{y:g}" width="{_WIDTH}" height="{_HEIGHT}" fill="{colour}"/>'
            f'<text class="kind" x="{x:g}" y="{y + 18:g}" text-anchor="middle">{_safe(kind)}</text>'
            f'<text x="{x:g}" y="{y + 34:g}" text-anchor="middle">{_safe(text)}</text>'
        )
        self.width = max(self.width, left + _WIDTH)
        self.height = max(self.height, y + _HEIGHT)

    def arrow(self, x: float, y: float, to_x: float, to_y: float) -> None:
        """Draw an arrow."""
        middle = (y + to_y) / 2
        curve = f"C{x:g} {middle:g} {to_x:g} {middle:g} {to_x:g} {to_y - 2:g}"
        self.shapes.append(f'<path d="M{x:g} {y:g}{curve}"/>')

    def label(self, x: float, y: float, text: str) -> None:
        """Write a condition next to an arrow."""
        self.shapes.append(
            f'<text class="small" x="{x:g}" y="{y:g}" text-anchor="middle">{_safe(text)}</text>'
        )


def draw(flow: Flow) -> str:
    """Return the SVG of a flow.

    >>> "<svg" in draw(Flow(name="t", trigger={"kafka": "orders"}, steps=[{"filter": "payload.ok"}]))
    True
    """
    picture = _Picture()
    middle = _MARGIN + _columns(flow.steps) * (_WIDTH + _GAP) / 2
    kind = trigger_name(flow.trigger)
    text = flow.trigger.summary() if isinstance(flow.trigger, Trigger) else ""
    picture.box(middle, _MARGIN, f"{flow.name}: {kind}", text, "#cfe2f3")
    bottom = _steps(picture, flow.steps, middle, _MARGIN + _HEIGHT)
    if isinstance(flow.on_error, Handler):
        top = bottom + _GAP
        picture.box(middle, top, "on_error", flow.on_error.then, "#f4cccc")
        _steps(picture, flow.on_error.handler, middle, top + _HEIGHT)
    return _document(picture)


def _document(picture: _Picture) -> str:
    width, height = picture.width + _MARGIN, picture.height + _MARGIN
    marker = (
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#888" '
        'style="marker-end:none;stroke:none;fill:#888"/></marker></defs>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}"><style>{_STYLE}</style>{marker}'
        f"{''.join(picture.shapes)}</svg>\n"
    )


def _steps(picture: _Picture, steps: Sequence[Step], x: float, bottom: float) -> float:
    """Draw steps below one another, and return where they end."""
    for step in steps:
        top = bottom + _GAP
        picture.arrow(x, bottom, x, top)
        label = f"{step.id}: {step.kind.name}" if step.id else step.kind.name
        picture.box(x, top, label, step.kind.summary(), _COLOURS.get(step.kind.name, "#f3f3f3"))
        bottom = _ways(picture, step, x, top + _HEIGHT)
    return bottom


def _ways(picture: _Picture, step: Step, x: float, bottom: float) -> float:
    """Draw the steps in a step next to one another, and return where the longest way ends."""
    ways = [way for way in step.kind.blocks() if way[2]]
    if not ways:
        return bottom
    widths = [_columns(steps) * (_WIDTH + _GAP) for _, _, steps in ways]
    left, ends = x - sum(widths) / 2, []
    for (_, label, steps), width in zip(ways, widths, strict=True):
        middle, top = left + width / 2, bottom + _GAP + _LABEL
        picture.label(middle, top - 4, label)
        picture.arrow(x, bottom, middle, top - _LABEL + 2)
        ends.append((middle, _steps(picture, steps, middle, top - _GAP + 4)))
        left += width
    low = max(end for _, end in ends) + _GAP
    for middle, end in ends:
        picture.arrow(middle, end, x, low)
    return low


def _columns(steps: Sequence[Step]) -> int:
    """Return how many boxes are next to one another at most."""
    widest = [sum(_columns(way) for _, _, way in s.kind.blocks() if way) for s in steps]
    return max([1, *widest])


def _safe(text: str) -> str:
    """Return a text for the picture: short, in one line, without secrets."""
    line = printable(mask(text))
    return escape(line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}...")
