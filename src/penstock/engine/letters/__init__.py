"""Dead letters after they were written: read them back, replay them through their pipeline, drop them."""

from penstock.engine.letters.box import Letterbox
from penstock.engine.letters.letter import DeadLetter
from penstock.engine.letters.replay import Replayed, replay

__all__ = ["DeadLetter", "Letterbox", "Replayed", "replay"]
