"""Pages: what a knowledge base is made of, what authors say of them, and where they are kept.

A page is a value: its text without the block of metadata it may have been written with, what that
block said, and the revision it is of. Which notations a text may have is told in `markup.py`. Of a
block what the engine knows is checked here, everything else is kept as it is. Required titles are
of the encyclopedia where they name no namespace; on an instruction page they are of the
instructions. A `Backend` is the game's own database, a MediaWiki, or what a game adds; it answers
at once or later, and never makes the game wait.
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


MediationKind = Literal["summary", "hints"]
MEDIATIONS: Final[tuple[MediationKind, ...]] = get_args(MediationKind)
"""What a search of a restricted base may come to."""

NOTHING: Final[Mapping[str, Any]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class PageMeta:
    """What the author of a page says about it."""

    summary: str = ""
    """With the topics: what it is about."""
    topics: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    requires: tuple[PageName, ...] = ()
    """Pages that must be read with this one, in the order that counts."""
    redirect: PageName | None = None
    """Sends readers to another page."""
    fields: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    """Whatever else was said, such as `type`, `task_type` or `reliability`, as JSON."""


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page of a knowledge base."""

    name: PageName
    body: str
    meta: PageMeta = PageMeta()
    links: tuple[PageName, ...] = ()
    """The pages it links to, in the order of their first link."""
    base: str = ""
    """The key of its base, "" for a page that belongs to none yet."""
    revision: str = ""
    """The backend's own id of this text, "" where it is not stored."""
    locks: str = ""
    """An Evennia lock string, "" where there is none."""

    @cached_property
    def sha256(self) -> str:
        """The hash of everything an author wrote: name, text and metadata."""
        meta = self.meta
        written = [
            *(self.name.full, self.body, meta.summary, meta.topics, meta.aliases, meta.tags),
            [one.full for one in meta.requires],
            meta.redirect.full if meta.redirect else "",
            dict(meta.fields),
        ]
        told = json.dumps(written, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseInfo:
    """What is known of a knowledge base without reading its pages."""

    key: str
    """The id that tools and commands take."""
    name: str
    summary: str = ""
    """With the topics: for everybody who may search the base."""
    topics: tuple[str, ...] = ()
    hint: str = ""
    """With the keywords: all that is told of a restricted base; its author wrote it to be told."""
    keywords: tuple[str, ...] = ()
    restricted: bool = False
    keeps_chunks: bool = True
    direct_characters: int = 0
    """The most the whole base may have to be shown whole, 0 for never."""
    pages: int = 0
    characters: int = 0
    revision: int = 0
    locks: str = ""
    """May have `view`, `search` and `restricted`."""
    backend: str = "database"
    mediation: MediationKind = "summary"
    """What a search comes to: a summary that a mediator makes, or hints that authors wrote."""


MAX_ITEMS: Final = 200
"""Of one list: requires, aliases, topics or tags."""

LISTS: Final = ("topics", "aliases", "tags", "requires")
KNOWN: Final = frozenset({"summary", "redirect", "locks", *LISTS})


class MetaError(EvenniaAIError):
    """A field of a page's metadata has a value it cannot have."""

    def __init__(self, field: str, problem: str) -> None:
        self.field = field
        self.problem = problem
        super().__init__(f"{field} {problem}")


def meta_of(values: Mapping[str, Any], name: PageName) -> PageMeta:
    """What a block of metadata says about the page of this name; `locks` is left aside.

    MetaError: a field that is known has a value it cannot have.
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
        fields={key: value for key, value in values.items() if key not in KNOWN},
    )
    alias_names(meta, name)
    return meta


def locks_of(values: Mapping[str, Any]) -> str:
    """The lock string in a block of metadata, "" where there is none."""
    return _text(values, "locks")


def values_of(meta: PageMeta, name: PageName, *, locks: str = "") -> dict[str, Any]:
    """The block that says this: `meta_of` of it is `meta` again. Nothing empty is in it."""
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
    """The other names of a page; those that name no namespace are in its own.

    MetaError: one is no title.
    """
    named = (_named(alias, "aliases", name.namespace) for alias in meta.aliases)
    return tuple(dict.fromkeys(named))


def _named(text: str, field: str, default: Namespace) -> PageName:
    try:
        return page_name(text, default=default)
    except TitleError as error:
        raise MetaError(field, f"names no page: {error}") from error


def _home(name: PageName) -> Namespace:
    """The namespace of required titles that name none, in the metadata of this page."""
    return "Instructions" if name.namespace == "Instructions" else "Main"


def _written(target: PageName, name: PageName) -> str:
    """A title as the metadata of the page `name` has it."""
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
    """The texts of a list, each once; one text alone is a list of it."""
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
    by: Actor
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
