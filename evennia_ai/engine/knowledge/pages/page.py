"""Pages of a knowledge base: names, metadata, and the backends that store them.

A page is a value: its text without the metadata block, the metadata, and its revision. `markup.py`
reads the notations of texts. Known metadata fields are checked here, and all others are kept as
they are. A required title without a namespace is of the encyclopedia; on an instruction page it is
of the instructions. A `Backend` is the game's own database, a MediaWiki, or one that a game adds.
It answers at once or later, and never makes the game wait.
"""

import hashlib
import json
import re
from collections.abc import Awaitable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal, Protocol, TypeAlias, TypeVar, get_args
from unicodedata import normalize

from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import EvenniaAIError

Namespace = Literal["Main", "Instructions", "Sources", "Talk"]
NAMESPACES: Final[tuple[Namespace, ...]] = get_args(Namespace)

MAX_TITLE_BYTES: Final = 255
"""Bytes of a title in UTF-8, as in MediaWiki."""

# A text with more characters is too long for a title in any script.
_MOST_READ: Final = 4 * MAX_TITLE_BYTES

_NAMED: Final[dict[str, Namespace]] = {one.casefold(): one for one in NAMESPACES}
_FORBIDDEN: Final = re.compile(
    r"[#<>\[\]{}|\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
)


class TitleError(EvenniaAIError):
    """A text cannot be the title of a page."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class PageName:
    """A namespace and a title in it, both as displayed."""

    namespace: Namespace
    title: str

    @property
    def full(self) -> str:
        """Return the title with its namespace, or only the title for the encyclopedia."""
        return self.title if self.namespace == "Main" else f"{self.namespace}:{self.title}"

    @property
    def folded(self) -> str:
        """Return the title for look-ups, which ignore case."""
        return self.title.casefold()

    @property
    def talk(self) -> "PageName":
        """Return the name of its talk page."""
        return self if self.namespace == "Talk" else PageName(namespace="Talk", title=self.full)

    def __str__(self) -> str:
        return self.full


def page_name(text: str, *, default: Namespace = "Main") -> PageName:
    """Parse the name of a page.

    Args:
        text: The name, with or without a namespace.
        default: The namespace of a name without one.

    Raises:
        TitleError: It is empty, too long or has a character that no title may have.
    """
    if len(text) > _MOST_READ:
        raise _too_long(text)
    namespace, title = default, " ".join(normalize("NFC", text).replace("_", " ").split())
    head, rest = _split_namespace(title)
    if head:
        namespace, title = head, rest
    if not title:
        raise TitleError(f"'{text[:80]}' is no title: write one, such as Ferry or Sources:Ledger")
    if namespace == "Main" and _split_namespace(title)[0]:
        raise TitleError(f"'{text[:80]}' names two namespaces; leave one out")
    if found := _FORBIDDEN.search(title):
        raise TitleError(f"the title '{text[:80]}' has {found[0]!r} in it, which no title may have")
    title = normalize("NFC", title[0].upper() + title[1:])
    if len(title.encode("utf-8", "replace")) > MAX_TITLE_BYTES:
        raise _too_long(text)
    return PageName(namespace=namespace, title=title)


def _too_long(text: str) -> TitleError:
    return TitleError(f"the title '{text[:80]}...' is longer than {MAX_TITLE_BYTES} bytes")


def _split_namespace(title: str) -> tuple[Namespace | None, str]:
    """Return the namespace before a title's colon, or None, and the rest."""
    head, colon, rest = title.partition(":")
    namespace = _NAMED.get(head.strip().casefold()) if colon else None
    return namespace, rest.strip() if namespace else title


MediationKind = Literal["summary", "hints"]
MEDIATIONS: Final[tuple[MediationKind, ...]] = get_args(MediationKind)
"""The results that a search of a restricted base may have."""

NO_FIELDS: Final[Mapping[str, Any]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class PageMeta:
    """The metadata that the author of a page wrote."""

    summary: str = ""
    """Together with the topics it says what the page is about."""
    topics: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    requires: tuple[PageName, ...] = ()
    """Pages that must be read with this one, in order."""
    redirect: PageName | None = None
    """Another page, to which readers are sent."""
    fields: Mapping[str, Any] = field(default_factory=lambda: NO_FIELDS)
    """All other fields, such as `type`, `task_type` or `reliability`, as JSON."""


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page of a knowledge base."""

    name: PageName
    body: str
    meta: PageMeta = PageMeta()
    links: tuple[PageName, ...] = ()
    """Pages it links to, in the order of their first link."""
    base: str = ""
    """The key of its base, or ""."""
    revision: str = ""
    """The backend's id of this text, or "" if it is not stored."""
    locks: str = ""
    """An Evennia lock string, or ""."""

    @cached_property
    def sha256(self) -> str:
        """Return the hash of everything an author wrote: name, text and metadata."""
        meta = self.meta
        written = [
            *(self.name.full, self.body, meta.summary, meta.topics, meta.aliases, meta.tags),
            [one.full for one in meta.requires],
            meta.redirect.full if meta.redirect else "",
            dict(meta.fields),
        ]
        source = json.dumps(written, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseInfo:
    """Facts about a knowledge base without its pages."""

    key: str
    """The id for tools and commands."""
    name: str
    summary: str = ""
    """Like the topics, for everybody who may search the base."""
    topics: tuple[str, ...] = ()
    hint: str = ""
    """Like the keywords, written by the author to be told of a restricted base."""
    keywords: tuple[str, ...] = ()
    restricted: bool = False
    keeps_chunks: bool = True
    direct_characters: int = 0
    """Most characters of a base that is shown whole; 0 for never."""
    pages: int = 0
    characters: int = 0
    revision: int = 0
    locks: str = ""
    """May have `view`, `search` and `restricted`."""
    backend: str = "database"
    mediation: MediationKind = "summary"
    """The result of a search: a summary by a mediator, or hints by the authors."""


MAX_ITEMS: Final = 200
"""Items of one list: requires, aliases, topics or tags."""

LIST_FIELDS: Final = ("topics", "aliases", "tags", "requires")
KNOWN_FIELDS: Final = frozenset({"summary", "redirect", "locks", *LIST_FIELDS})


class MetaError(EvenniaAIError):
    """A metadata field has a wrong value."""

    def __init__(self, field: str, problem: str) -> None:
        self.field = field
        self.problem = problem
        super().__init__(f"{field} {problem}")


def parse_meta(values: Mapping[str, Any], name: PageName) -> PageMeta:
    """Parse the metadata of the page with this name, without `locks`.

    Raises:
        MetaError: A known field has a wrong value.
    """
    required = (_named(one, "requires", _home(name)) for one in _texts(values, "requires"))
    redirect = _text(values, "redirect")
    meta = PageMeta(
        summary=_text(values, "summary"),
        topics=_texts(values, "topics"),
        aliases=_texts(values, "aliases"),
        tags=_texts(values, "tags"),
        requires=tuple(dict.fromkeys(required)),
        redirect=_named(redirect, "redirect", "Main") if redirect else None,
        fields={key: value for key, value in values.items() if key not in KNOWN_FIELDS},
    )
    alias_names(meta, name)
    return meta


def parse_locks(values: Mapping[str, Any]) -> str:
    """Return the lock string in metadata, or ""."""
    return _text(values, "locks")


def meta_values(meta: PageMeta, name: PageName, *, locks: str = "") -> dict[str, Any]:
    """Return the metadata as values that `parse_meta` reads back, without empty fields."""
    said = {
        "summary": meta.summary,
        "redirect": meta.redirect.full if meta.redirect else "",
        "topics": list(meta.topics),
        "aliases": list(meta.aliases),
        "tags": list(meta.tags),
        "requires": [_written(one, name) for one in meta.requires],
        "locks": locks,
    }
    return {key: value for key, value in said.items() if value} | dict(meta.fields)


def alias_names(meta: PageMeta, name: PageName) -> tuple[PageName, ...]:
    """Return the other names of a page. Those without a namespace are in the page's own.

    Raises:
        MetaError: One is not a title.
    """
    named = (_named(alias, "aliases", name.namespace) for alias in meta.aliases)
    return tuple(dict.fromkeys(named))


def _named(text: str, field: str, default: Namespace) -> PageName:
    try:
        return page_name(text, default=default)
    except TitleError as error:
        raise MetaError(field, f"names no page: {error}") from error


def _home(name: PageName) -> Namespace:
    """Return the namespace of required titles without one, in the metadata of this page."""
    return "Instructions" if name.namespace == "Instructions" else "Main"


def _written(target: PageName, name: PageName) -> str:
    """Return a title as it is written in the metadata of the page `name`."""
    if target.namespace == "Main" and _home(name) != "Main":
        return f"Main:{target.title}"
    return target.full


def _text(values: Mapping[str, Any], field: str) -> str:
    value = values.get(field)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise MetaError(field, f"must be text, not {_kind(value)}; put it in quotes")
    return value.strip()


def _texts(values: Mapping[str, Any], field: str) -> tuple[str, ...]:
    """Return the texts of a list without duplicates; a single text is a list of one."""
    value = values.get(field)
    listed: Sequence[Any] = [value] if isinstance(value, str) else value or []
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        raise MetaError(field, "must be a list of texts; put numbers and dates in quotes")
    if len(listed) > MAX_ITEMS:
        raise MetaError(field, f"has {len(listed)} items and the limit is {MAX_ITEMS}")
    return tuple(dict.fromkeys(text for one in listed if (text := one.strip())))


def _kind(value: object) -> str:
    kinds = {bool: "true or false", int: "a number", float: "a number", list: "a list"}
    return kinds.get(type(value), "a block")


T = TypeVar("T")

Answer: TypeAlias = T | Awaitable[T]
"""The answer of a backend: a value, or an awaitable such as a Twisted Deferred."""


class BackendError(EvenniaAIError):
    """A knowledge base cannot be read or written now. The text says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A page that a search found.

    `passage` is the part of its text that matches best, of at most `relevance.MAX_CHUNK_CHARACTERS`
    characters. `score` is greater for better matches; scores of different searches cannot be
    compared.
    """

    page: Page
    passage: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PageDraft:
    """A page that a backend is asked to write.

    `was` is the revision it was written from, or "" for a new page. If the page has another
    revision by now, nothing is written.
    """

    page: Page
    was: str
    by: Actor
    note: str = ""


class Backend(Protocol):
    """A knowledge base. Every method, or its answer, may raise BackendError."""

    def fetch(self, names: Sequence[PageName]) -> "Answer[Sequence[Page | None]]":
        """Return the pages with these names, None for each that is missing.

        Aliases and one redirect are followed. The page has its real name.
        """

    def search(
        self, query: str, *, namespaces: Collection[Namespace] = (), limit: int = 20
    ) -> "Answer[Sequence[Hit]]":
        """Return the pages that match the words of a query, best first.

        Pages with more of the words and with rarer ones come first, and pages with the words in the
        title before others. Query syntax is not interpreted. Equal queries give equal hits.

        Args:
            query: The words.
            namespaces: Namespaces to search; empty means all.
            limit: Most hits.
        """

    def listed(self, namespace: Namespace, *, prefix: str = "") -> "Answer[Sequence[PageName]]":
        """Return the pages of a namespace whose titles have this prefix, ordered by title."""

    def linking(self, names: Sequence[PageName]) -> "Answer[Sequence[Sequence[PageName]]]":
        """Return for each of these pages the pages it links to."""

    def pages(self, *, most_characters: int) -> "Answer[Sequence[Page] | None]":
        """Return all pages of the base, or None if they have more characters than that."""

    def write(self, draft: PageDraft) -> "Answer[Page]":
        """Write an approved page and return it as stored."""
