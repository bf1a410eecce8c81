"""Chance without a random source: every roll is a function of a seed and of what is rolled for."""

from dataclasses import dataclass
from hashlib import blake2b


@dataclass(frozen=True, slots=True, kw_only=True)
class Dice:
    """The dice of one turn.

    `turn` seeds what may differ from turn to turn, `conversation` what stays the same for the
    whole conversation. A preview that is given the turn's seed sees the turn's very rolls.
    """

    turn: str
    conversation: str

    def roll(self, *what: object) -> float:
        """A number in [0, 1) for this turn and `what`."""
        return fraction(self.turn, *what)

    def pick(self, *what: object) -> float:
        """A number in [0, 1) for this conversation and `what`."""
        return fraction(self.conversation, *what)


def fraction(*what: object) -> float:
    """A number in [0, 1), evenly spread, that depends on `what` alone."""
    text = "\x1f".join(map(str, what)).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big") / 2**64
