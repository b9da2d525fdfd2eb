"""Dead letters after they were written: read them back, replay them through their pipeline, drop them."""

from penstock.engine.dead_letters.dead_letter_store import DeadLetterStore
from penstock.engine.dead_letters.letter import DeadLetter
from penstock.engine.dead_letters.replay import Replayed, replay
from penstock.engine.dead_letters.replay_lock import alone

__all__ = ["DeadLetter", "DeadLetterStore", "Replayed", "alone", "replay"]
