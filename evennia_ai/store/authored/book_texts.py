"""The texts of lorebooks: each is stored once, in the revision that made it."""

from collections import OrderedDict
from threading import Lock
from typing import Final

from evennia_ai.models import LorebookRevision

MOST_CHARACTERS: Final = 32_000_000
"""Of the newest texts that are kept in memory; most are held by whoever uses the book as well."""


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


def text_at(name: str, number: int) -> str:
    """Return the text that a revision left."""
    rows = LorebookRevision.objects.filter(name=name)
    return rows.values_list("source", flat=True).get(number=number)
