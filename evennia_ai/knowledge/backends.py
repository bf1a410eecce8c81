"""Backends: where the pages of a knowledge base are.

One Protocol for the game's own database, a MediaWiki, and what a game adds. An answer is there at
once or comes later: a backend on another machine gives something to await, and never makes the
game wait. Pure: this module knows no framework.
"""

from collections.abc import Awaitable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

from evennia_ai.errors import EvenniaAIError
from evennia_ai.knowledge.pages.page import Namespace, Page, PageName

T = TypeVar("T")

Answer: TypeAlias = T | Awaitable[T]
"""What a backend says: at once, or as something to await (a Deferred of Twisted is one)."""


class BackendError(EvenniaAIError):
    """A knowledge base cannot be read or written now; the text says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A page that a search found, best first in a list of them.

    `passage` is the part of its text that answers best, of at most `chunks.MAX_CHARACTERS`
    characters. `score` is greater for better ones and means nothing between two searches.
    """

    page: Page
    passage: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PageDraft:
    """A page as somebody wants it to be: what a backend is asked to write.

    `was` is the revision it was written from, "" for a new page: where the page has another one by
    now, nothing is written.
    """

    page: Page
    was: str
    by: str
    note: str = ""


class Backend(Protocol):
    """One knowledge base. Every method may raise BackendError, or its answer may."""

    def fetch(self, names: Sequence[PageName]) -> "Answer[Sequence[Page | None]]":
        """The pages of these names, None where there is none.

        Aliases and one redirect are followed: the page has the name it really has.
        """

    def search(
        self, query: str, *, namespaces: Collection[Namespace] = (), limit: int = 20
    ) -> "Answer[Sequence[Hit]]":
        """The pages that fit the words of `query`; no namespaces means all of them.

        A page with more of the words and with rarer ones comes first, one whose title has them
        before one whose text has. Words of no language are dropped; equal queries give equal hits.
        """

    def listed(self, namespace: Namespace, *, prefix: str = "") -> "Answer[Sequence[PageName]]":
        """The pages of a namespace whose titles begin so, in the order of their titles."""

    def linking(self, names: Sequence[PageName]) -> "Answer[Sequence[Sequence[PageName]]]":
        """For each of these pages the pages it links to."""

    def pages(self, *, most_characters: int) -> "Answer[Sequence[Page] | None]":
        """All pages of the base, None where together they have more characters than that."""

    def write(self, draft: PageDraft) -> "Answer[Page]":
        """Write a page that was approved; the page as it is then."""
