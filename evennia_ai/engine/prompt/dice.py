"""Chance without a random source: every roll is a function of a seed and of what is rolled for."""

from dataclasses import dataclass
from hashlib import blake2b, shake_128


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

    def rolls(self, count: int, *what: object) -> list[float]:
        """Return `count` numbers in [0, 1) for this turn and `what`; all cost one hash."""
        return fractions(count, self.turn, *what)

    def pick(self, *what: object) -> float:
        """A number in [0, 1) for this conversation and `what`."""
        return fraction(self.conversation, *what)


def fraction(*what: object) -> float:
    """A number in [0, 1), evenly spread, that depends on `what` alone."""
    digest = blake2b(_hashed(what), digest_size=_BYTES).digest()
    return int.from_bytes(digest, "big") / _RANGE


def fractions(count: int, *what: object) -> list[float]:
    """Return `count` numbers in [0, 1), evenly spread, that depend on `what` alone."""
    drawn = shake_128(_hashed(what)).digest(_BYTES * count)
    starts = range(0, len(drawn), _BYTES)
    return [int.from_bytes(drawn[at : at + _BYTES], "big") / _RANGE for at in starts]


def seed_of(text: str) -> str:
    """Return a short name of a text, to roll for.

    A text may hold thousands of dice. Each of them hashes this name and not the text.
    """
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


_BYTES = 8
_RANGE = 2**64


def _hashed(what: tuple[object, ...]) -> bytes:
    return "\x1f".join(map(str, what)).encode("utf-8", "surrogatepass")
