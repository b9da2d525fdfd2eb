"""The text of one CSV record as lines of fields: the meaning of delimiter, quote and escape.

A quote counts at the beginning of a field only; within quotes it is written twice. A line ends with a
newline, with or without a carriage return before it; the end of the last line may be missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from penstock.decode.kernels.outcome import MisfitError


@dataclass(frozen=True)
class CsvDialect:
    """The characters that separate and quote fields, and the text of a null.

    >>> list(CsvDialect().lines('a,"b ""c"" d"'))
    [['a', 'b "c" d']]
    """

    delimiter: str = ","
    quote: str | None = '"'
    escape: str | None = None
    null: str = ""

    def lines(self, text: str) -> Iterator[list[str | None]]:
        """Give the fields of each line, or raise a `MisfitError`; None is a null."""
        place = 0
        while place < len(text):
            line: list[str | None] = []
            while True:
                match = self._field.match(text, place)
                if match is None:
                    raise MisfitError("MalformedCsv", self._problem(place))
                line.append(self._value(match))
                place = match.end()
                if match["end"] != self.delimiter:
                    break
            yield line

    def _problem(self, place: int) -> str:
        if not self.quote:
            return f"character {place + 1}: the escape character is the last one"
        return (
            f"character {place + 1}: a field in quotes lacks its closing quote, "
            "or is not followed by a delimiter or the end of the line"
        )

    def _value(self, match: re.Match[str]) -> str | None:
        quoted = match["quoted"]
        if quoted is not None:
            return self._unescaped(quoted)
        plain: str = match["plain"]
        return None if plain == self.null else self._unescaped(plain, quoted=False)

    def _unescaped(self, text: str, *, quoted: bool = True) -> str:
        if quoted and self.quote and not self.escape:
            return text.replace(self.quote * 2, self.quote)
        if not self.escape:
            return text
        doubled = f"|{re.escape(self.quote * 2)}" if quoted and self.quote else ""
        pair = rf"{re.escape(self.escape)}(.){doubled}"
        return re.sub(pair, lambda match: match[1] or self.quote or "", text, flags=re.DOTALL)

    @cached_property
    def _field(self) -> re.Pattern[str]:
        # Each part starts with another character than the one before it may have, so that a text that
        # does not match is refused in one pass.
        delimiter, quote, escape = (
            re.escape(each or "") for each in (self.delimiter, self.quote, self.escape)
        )
        pair = f"|{escape}." if escape else ""
        plain_part = rf"[^{delimiter}{escape}\r\n]*"
        plain = rf"(?P<plain>{plain_part}(?:(?:\r(?!\n|\Z){pair}){plain_part})*)"
        end = rf"(?P<end>{delimiter}|\r?\n|\r?\Z)"
        if not quote:
            return re.compile(rf"(?P<quoted>(?!))?{plain}{end}", re.DOTALL)
        part = rf"[^{quote}{escape}]*"
        quoted = rf"{quote}(?P<quoted>{part}(?:(?:{quote}{quote}{pair}){part})*){quote}"
        return re.compile(rf"(?:{quoted}|(?!{quote}){plain}){end}", re.DOTALL)
