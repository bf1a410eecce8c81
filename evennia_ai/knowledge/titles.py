"""Titles: how pages are called, as MediaWiki has it.

A title may be written with underscores for blanks, with a small first letter, and with its marks
beside its letters; a namespace stands before a colon, and a page of the encyclopedia has none.
`Talk: Sources:Ledger` is the page where people talk about `Sources:Ledger`.
"""

import re
from dataclasses import dataclass
from typing import Final, Literal, get_args
from unicodedata import normalize

from evennia_ai.errors import EvenniaAIError

Namespace = Literal["Main", "Instructions", "Sources", "Talk"]
NAMESPACES: Final[tuple[Namespace, ...]] = get_args(Namespace)

MAX_BYTES: Final = 255
"""Of a title in UTF-8, as in MediaWiki."""

# Characters of a text that may be a title: more are too long however they are counted.
_MOST_READ: Final = 4 * MAX_BYTES

_NAMED: Final[dict[str, Namespace]] = {one.casefold(): one for one in NAMESPACES}
_FORBIDDEN: Final = re.compile(
    r"[#<>\[\]{}|\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
)


class TitleError(EvenniaAIError):
    """A text is no title of a page."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class PageName:
    """A namespace and the title in it, both as they are shown."""

    namespace: Namespace
    title: str

    @property
    def full(self) -> str:
        """The name with its namespace, the title alone for the encyclopedia."""
        return self.title if self.namespace == "Main" else f"{self.namespace}:{self.title}"

    @property
    def folded(self) -> str:
        """The title as it is looked for: upper and lower case are one."""
        return self.title.casefold()

    @property
    def talk(self) -> "PageName":
        """The page where this one is talked about."""
        return self if self.namespace == "Talk" else PageName(namespace="Talk", title=self.full)

    def __str__(self) -> str:
        return self.full


def page_name(text: str, *, default: Namespace = "Main") -> PageName:
    """The page that `text` names; `default` is the namespace where it names none.

    Raises:
        TitleError: it is empty, too long or has a character that no title may have.
    """
    if len(text) > _MOST_READ:
        raise _too_long(text)
    namespace, title = default, _spaced(text)
    head, rest = _parted(title)
    if head:
        namespace, title = head, rest
    if not title:
        raise TitleError(f"'{text[:80]}' is no title: write one, such as Ferry or Sources:Ledger")
    if namespace == "Main" and _parted(title)[0]:
        raise TitleError(f"'{text[:80]}' names two namespaces; leave one out")
    if found := _FORBIDDEN.search(title):
        raise TitleError(f"the title '{text[:80]}' has {found[0]!r} in it, which no title may have")
    title = normalize("NFC", title[0].upper() + title[1:])
    if len(title.encode("utf-8", "replace")) > MAX_BYTES:
        raise _too_long(text)
    return PageName(namespace=namespace, title=title)


def _too_long(text: str) -> TitleError:
    return TitleError(f"the title '{text[:80]}...' is longer than {MAX_BYTES} bytes")


def _parted(title: str) -> tuple[Namespace | None, str]:
    """The namespace that a title begins with, if it does, and the rest."""
    head, colon, rest = title.partition(":")
    namespace = _NAMED.get(head.strip().casefold()) if colon else None
    return namespace, rest.strip() if namespace else title


def _spaced(text: str) -> str:
    return " ".join(normalize("NFC", text).replace("_", " ").split())
