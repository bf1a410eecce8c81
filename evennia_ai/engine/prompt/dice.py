"""Random numbers without a random source, each computed from a seed and its purpose."""

from dataclasses import dataclass
from hashlib import blake2b, shake_128


@dataclass(frozen=True, slots=True, kw_only=True)
class Dice:
    """The random numbers of one turn. A preview with the seed of a turn gives the same numbers."""

    turn: str
    """The seed of rolls that may differ from turn to turn."""
    conversation: str
    """The seed of rolls that stay the same for the whole conversation."""

    def roll(self, *what: object) -> float:
        """Return a random number in [0, 1) for the purpose `what`, different in each turn."""
        return fraction(self.turn, *what)

    def rolls(self, count: int, *what: object) -> list[float]:
        """Return `count` random numbers in [0, 1) for this turn and purpose, from one hash."""
        return fractions(count, self.turn, *what)

    def pick(self, *what: object) -> float:
        """Return a random number in [0, 1) for the purpose `what`, the same in all turns."""
        return fraction(self.conversation, *what)


def fraction(*what: object) -> float:
    """Return a uniformly distributed number in [0, 1) that depends only on `what`."""
    digest = blake2b(_hashed(what), digest_size=_BYTES).digest()
    return int.from_bytes(digest, "big") / _RANGE


def fractions(count: int, *what: object) -> list[float]:
    """Return `count` uniformly distributed numbers in [0, 1) that depend only on `what`."""
    drawn = shake_128(_hashed(what)).digest(_BYTES * count)
    starts = range(0, len(drawn), _BYTES)
    return [int.from_bytes(drawn[at : at + _BYTES], "big") / _RANGE for at in starts]


def seed_of(text: str) -> str:
    """Return a short hash of a text. Random numbers for macros in the text depend on it.

    A text may have thousands of macros with dice. Each of them hashes this short value instead of
    the text.
    """
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


_BYTES = 8
_RANGE = 2**64


def _hashed(what: tuple[object, ...]) -> bytes:
    return "\x1f".join(map(str, what)).encode("utf-8", "surrogatepass")
