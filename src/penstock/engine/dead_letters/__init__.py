"""Dead letters after they were written: read them back, replay them through their pipeline, drop them.

The names are loaded when they are first used: letters in a topic are read without Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.lazy_imports import loads_late

if TYPE_CHECKING:
    from penstock.engine.dead_letters.dead_letter_store import DeadLetterStore as DeadLetterStore
    from penstock.engine.dead_letters.letter import DeadLetter as DeadLetter
    from penstock.engine.dead_letters.replay_lock import alone as alone
    from penstock.engine.dead_letters.replaying import replay as replay
    from penstock.engine.dead_letters.replays import Replayed as Replayed

_PLACES = {
    "DeadLetter": "letter",
    "DeadLetterStore": "dead_letter_store",
    "Replayed": "replays",
    "alone": "replay_lock",
    "replay": "replaying",
}
__all__ = [*_PLACES]  # noqa: PLE0604
__getattr__ = loads_late(__name__, _PLACES)
