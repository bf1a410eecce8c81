"""Wiki pages of a knowledge base: their names, their metadata, and the backends that store them.

A page is a value. It has a text without the block of metadata, the metadata, and a revision.
`markup.py` reads the notations of texts. Known metadata fields are checked here. All other fields
are kept unchanged.

The field `requires` lists page titles. A title without a namespace belongs to the encyclopedia, or
on an instruction page to the instructions.

A `Backend` is the game's own database, a MediaWiki, or a backend that a game adds. It answers at
once or later, and never blocks the game.
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
"""The maximum length of a page title in bytes of UTF-8. MediaWiki has the same limit."""

# A text with more characters than this is too long for a title in any script.
_MOST_READ: Final = 4 * MAX_TITLE_BYTES

_NAMED: Final[dict[str, Namespace]] = {one.casefold(): one for one in NAMESPACES}
_FORBIDDEN: Final = re.compile(
    r"[#<>\[\]{}|\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
)


class TitleError(EvenniaAIError):
    """The error for a text that is no valid page title."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class PageName:
    """The name of a wiki page: a namespace, and a title in it, both as readers see them."""

    namespace: Namespace
    title: str

    @property
    def full(self) -> str:
        """Return the title after its namespace. The encyclopedia has no prefix."""
        return self.title if self.namespace == "Main" else f"{self.namespace}:{self.title}"

    @property
    def folded(self) -> str:
        """Return the title in the form that look-ups compare: without letter case."""
        return self.title.casefold()

    @property
    def talk(self) -> "PageName":
        """Return the name of the talk page that belongs to this page."""
        return self if self.namespace == "Talk" else PageName(namespace="Talk", title=self.full)

    def __str__(self) -> str:
        return self.full


def page_name(text: str, *, default: Namespace = "Main") -> PageName:
    """Parse the name of a wiki page.

    Args:
        text: The name, with or without a namespace.
        default: The namespace if the name has none.

    Raises:
        TitleError: The name is empty or too long, or has a character that titles may not have.
    """
    if len(text) > _MOST_READ:
        raise _too_long(text)
    namespace, title = default, " ".join(normalize("NFC", text).replace("_", " ").split())
    head, rest = _split_namespace(title)
    if head:
        namespace, title = head, rest
    if not title:
        raise TitleError(
            f"'{text[:80]}' is not a title: write one, such as Ferry or Sources:Ledger"
        )
    if namespace == "Main" and _split_namespace(title)[0]:
        raise TitleError(f"'{text[:80]}' begins with two namespaces; remove one")
    if found := _FORBIDDEN.search(title):
        raise TitleError(f"the title '{text[:80]}' has {found[0]!r} in it, which no title may have")
    title = normalize("NFC", title[0].upper() + title[1:])
    if len(title.encode("utf-8", "replace")) > MAX_TITLE_BYTES:
        raise _too_long(text)
    return PageName(namespace=namespace, title=title)


def _too_long(text: str) -> TitleError:
    return TitleError(f"the title '{text[:80]}...' is longer than {MAX_TITLE_BYTES} bytes")


def _split_namespace(title: str) -> tuple[Namespace | None, str]:
    """Split a title at its first colon into a namespace (None if unknown) and the rest."""
    head, colon, rest = title.partition(":")
    namespace = _NAMED.get(head.strip().casefold()) if colon else None
    return namespace, rest.strip() if namespace else title


MediationKind = Literal["summary", "hints"]
MEDIATIONS: Final[tuple[MediationKind, ...]] = get_args(MediationKind)
"""The kinds of answers from a search of a restricted knowledge base."""

NO_FIELDS: Final[Mapping[str, Any]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class PageMeta:
    """The metadata that the author of a wiki page wrote."""

    summary: str = ""
    """A description of the page. Like the topics, it says what the page is about."""
    topics: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    requires: tuple[PageName, ...] = ()
    """Pages that a writer must read together with this page, in order."""
    redirect: PageName | None = None
    """The page to which readers are sent instead; None if there is none."""
    fields: Mapping[str, Any] = field(default_factory=lambda: NO_FIELDS)
    """All other fields as JSON values, for example `type`, `task_type` or `reliability`."""


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page of a knowledge base, with its text, its metadata and its version."""

    name: PageName
    body: str
    meta: PageMeta = PageMeta()
    links: tuple[PageName, ...] = ()
    """The pages to which this page links, in the order of the first links."""
    base: str = ""
    """The key of the knowledge base that the page belongs to; "" if it is not stored."""
    revision: str = ""
    """The backend's id of this version of the text; "" if the page is not stored."""
    locks: str = ""
    """An Evennia lock string that decides who may read the page; "" for no lock of its own."""

    @cached_property
    def sha256(self) -> str:
        """Return the hash of everything that authors write: the name, the text and the metadata."""
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
    """Facts about a knowledge base, without its pages."""

    key: str
    """The id by which tools and commands call the knowledge base."""
    name: str
    summary: str = ""
    """What the base is about. Everybody who may search the base sees the summary and the topics."""
    topics: tuple[str, ...] = ()
    hint: str = ""
    """A hint about the content of a restricted base.

    The author writes the hint and the keywords to be revealed.
    """
    keywords: tuple[str, ...] = ()
    restricted: bool = False
    keeps_chunks: bool = True
    direct_characters: int = 0
    """If all pages of the base have at most this many characters, they are put into the prompt.

    0 means that the base is only searched.
    """
    pages: int = 0
    characters: int = 0
    revision: int = 0
    locks: str = ""
    """An Evennia lock string with the access types `view`, `search` and `restricted`."""
    backend: str = "database"
    mediation: MediationKind = "summary"
    """How a search of the base is answered if the base is restricted.

    "summary" is a safe summary by a second model. "hints" are hints that the authors wrote.
    """


MAX_ITEMS: Final = 200
"""How many items a list in metadata may have: required pages, aliases, topics or tags."""

LIST_FIELDS: Final = ("topics", "aliases", "tags", "requires")
KNOWN_FIELDS: Final = frozenset({"summary", "redirect", "locks", *LIST_FIELDS})


class MetaError(EvenniaAIError):
    """The error for a metadata field of a page that has an invalid value."""

    def __init__(self, field: str, problem: str) -> None:
        self.field = field
        self.problem = problem
        super().__init__(f"{field} {problem}")


def parse_meta(values: Mapping[str, Any], name: PageName) -> PageMeta:
    """Parse the metadata of the page with this name, except for `locks`.

    Raises:
        MetaError: A known field has an invalid value.
    """
    required = (
        _parse_name_field(one, "requires", _default_namespace(name))
        for one in _texts(values, "requires")
    )
    redirect = _text(values, "redirect")
    meta = PageMeta(
        summary=_text(values, "summary"),
        topics=_texts(values, "topics"),
        aliases=_texts(values, "aliases"),
        tags=_texts(values, "tags"),
        requires=tuple(dict.fromkeys(required)),
        redirect=_parse_name_field(redirect, "redirect", "Main") if redirect else None,
        fields={key: value for key, value in values.items() if key not in KNOWN_FIELDS},
    )
    alias_names(meta, name)
    return meta


def parse_locks(values: Mapping[str, Any]) -> str:
    """Return the lock string in the metadata of a page; "" if there is none."""
    return _text(values, "locks")


def meta_values(meta: PageMeta, name: PageName, *, locks: str = "") -> dict[str, Any]:
    """Return the metadata of a page as a dict, without empty fields.

    `parse_meta` reads the same metadata from the dict.
    """
    said = {
        "summary": meta.summary,
        "redirect": meta.redirect.full if meta.redirect else "",
        "topics": list(meta.topics),
        "aliases": list(meta.aliases),
        "tags": list(meta.tags),
        "requires": [_written_name(one, name) for one in meta.requires],
        "locks": locks,
    }
    return {key: value for key, value in said.items() if value} | dict(meta.fields)


def alias_names(meta: PageMeta, name: PageName) -> tuple[PageName, ...]:
    """Return the aliases of a page. Without a namespace, an alias belongs to that of the page.

    Raises:
        MetaError: An alias is no valid title.
    """
    named = (_parse_name_field(alias, "aliases", name.namespace) for alias in meta.aliases)
    return tuple(dict.fromkeys(named))


def _parse_name_field(text: str, field: str, default: Namespace) -> PageName:
    try:
        return page_name(text, default=default)
    except TitleError as error:
        raise MetaError(field, f"names no page: {error}") from error


def _default_namespace(name: PageName) -> Namespace:
    """Return the namespace of required titles that name none, on the page with this name."""
    return "Instructions" if name.namespace == "Instructions" else "Main"


def _written_name(target: PageName, name: PageName) -> str:
    """Return the name of the page `target` as the metadata of the page `name` writes it.

    The namespace is left out if it is the default there.
    """
    if target.namespace == "Main" and _default_namespace(name) != "Main":
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
    """Return the texts in a list of metadata, without duplicates. One text counts as a list."""
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
"""The answer of a backend: a value, or an awaitable such as a Deferred of Twisted."""


class BackendError(EvenniaAIError):
    """The error if a knowledge base cannot be read or written now. It says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A wiki page that a search of a knowledge base found.

    `passage` is the part of its text that matches best. It has at most
    `relevance.MAX_CHUNK_CHARACTERS` characters. A higher `score` is a better match. Scores of
    different searches cannot be compared.
    """

    page: Page
    passage: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PageDraft:
    """A new version of a wiki page, for a backend to write.

    `was` is the revision on which the draft is based, or "" for a new page. If the page has another
    revision by now, the backend writes nothing.
    """

    page: Page
    was: str
    by: Actor
    note: str = ""


class Backend(Protocol):
    """The interface of a knowledge base. All methods and awaited answers may raise BackendError."""

    def fetch(self, names: Sequence[PageName]) -> "Answer[Sequence[Page | None]]":
        """Return the wiki pages with these names. The result has None for each missing page.

        Aliases and one redirect are followed. The returned page has its own name, not that of the
        alias.
        """

    def search(
        self, query: str, *, namespaces: Collection[Namespace] = (), limit: int = 20
    ) -> "Answer[Sequence[Hit]]":
        """Return the wiki pages that match the words of a query, best first.

        A page is better if it has more of the words, rarer words, or words in its title. Signs in
        the query have no special meaning. Equal queries give equal hits.

        Args:
            query: The words.
            namespaces: The namespaces to search; empty means all.
            limit: The maximum number of hits.
        """

    def listed(self, namespace: Namespace, *, prefix: str = "") -> "Answer[Sequence[PageName]]":
        """Return the pages of a namespace whose titles begin with a prefix, sorted by title."""

    def linking(self, names: Sequence[PageName]) -> "Answer[Sequence[Sequence[PageName]]]":
        """Return for each of these pages the pages to which it links."""

    def pages(self, *, most_characters: int) -> "Answer[Sequence[Page] | None]":
        """Return all pages of the knowledge base.

        Returns None if their texts have more than `most_characters` characters.
        """

    def write(self, draft: PageDraft) -> "Answer[Page]":
        """Write a page that somebody approved, and return the page as it was stored."""
