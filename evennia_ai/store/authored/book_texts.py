"""The texts of lorebooks: each stands once, in the revision that made it.

A revision is the whole text, or what differs from the one before: an edit of one entry of a long
book writes the entry, not megabytes. So that none is made of too many, a whole text comes after
every `MOST_DIFFERENCES` of them. A text is known by its hash; that of a difference is made of the
hash before and of the difference, so that the hashes of revisions are a chain.
"""

import json
from collections import OrderedDict
from hashlib import sha256
from threading import Lock
from typing import Final, NamedTuple

from evennia_ai.models import LorebookRevision

MOST_DIFFERENCES: Final = 64
"""Revisions in a row that are no whole texts."""
MOST_CHARACTERS: Final = 32_000_000
"""Of the newest texts that are kept in memory; most are held by whoever uses the book as well."""


class Difference(NamedTuple):
    """What an edit replaced in a text: `length` characters from `at` on, by `piece`."""

    at: int
    length: int
    piece: str

    def made_in(self, text: str) -> str:
        """The text with the difference."""
        return "".join((text[: self.at], self.piece, text[self.at + self.length :]))

    def sha256_after(self, before: str) -> str:
        """The hash of the text that it makes of the one with the hash `before`."""
        told = f"{before} {self.at} {self.length} {self.piece}"
        return sha256(told.encode()).hexdigest()


class _Newest:
    """The newest text of each book with its hash; those put longest ago are let go."""

    def __init__(self) -> None:
        self._texts: OrderedDict[str, tuple[str, str]] = OrderedDict()
        self._characters = 0
        self._lock = Lock()

    def get(self, name: str, digest: str) -> str | None:
        """The text of a book, where it is the one with this hash."""
        known, text = self._texts.get(name, ("", ""))
        return text if digest and known == digest else None

    def clear(self) -> None:
        """Forget all of them."""
        with self._lock:
            self._texts.clear()
            self._characters = 0

    def put(self, name: str, digest: str, text: str) -> None:
        """Keep a text in the place of the one before."""
        with self._lock:
            _, before = self._texts.pop(name, ("", ""))
            self._texts[name] = (digest, text)
            self._characters += len(text) - len(before)
            while self._characters > MOST_CHARACTERS and len(self._texts) > 1:
                _, (_, gone) = self._texts.popitem(last=False)
                self._characters -= len(gone)


_newest: Final = _Newest()


def text_now(name: str, number: int, digest: str) -> str:
    """The text of a book whose newest revision has this number and this hash."""
    text = _newest.get(name, digest)
    if text is None:
        text = text_at(name, number)
        remember(name, digest, text)
    return text


def remember(name: str, digest: str, text: str) -> None:
    """Keep the newest text of a book, which its hash tells from others."""
    _newest.put(name, digest, text)


def forget() -> None:
    """Forget all texts, for tests; they are read again when they are asked for."""
    _newest.clear()


def text_at(name: str, number: int) -> str:
    """The text that a revision left."""
    rows = LorebookRevision.objects.filter(name=name)
    first = rows.values_list("over", flat=True).get(number=number) or number
    those = rows.filter(number__gte=first, number__lte=number).order_by("number")
    text, *differences = those.values_list("source", flat=True)
    for difference in differences:
        text = Difference(*json.loads(difference)).made_in(text)
    return text


def written_over(name: str, number: int) -> int | None:
    """Which whole text the revision after this one may be a difference over; None: none."""
    rows = LorebookRevision.objects.filter(name=name, number=number)
    over = rows.values_list("over", flat=True).first()
    whole = number if over is None else over
    return whole if number + 1 - whole <= MOST_DIFFERENCES else None
