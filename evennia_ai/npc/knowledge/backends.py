"""Backends: where the pages of a knowledge base are stored.

Each base names its place: the database, a wiki, or the game's help. The backends of recently used
bases are kept, so that a wiki needs only one login. `own_pages.py` searches pages in the database.

Help entries are read when they are needed, and are never copied. They can be written only with
`sethelp` or in the game's files. A player who may not read an entry cannot see or find its page.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from evennia.help.filehelp import FILE_HELP_ENTRIES
from evennia.help.models import HelpEntry
from twisted.internet.defer import Deferred, ensureDeferred, succeed

from evennia_ai.engine.knowledge.pages.page import (
    Backend,
    BackendError,
    BaseInfo,
    Hit,
    Namespace,
    Page,
    PageDraft,
    PageMeta,
    PageName,
    TitleError,
    page_name,
)
from evennia_ai.engine.knowledge.relevance import (
    MAX_CHUNK_CHARACTERS,
    PageWords,
    best_chunk,
    index_page,
    query_weights,
    rarities_among,
    score_page,
)
from evennia_ai.engine.text.word_forms import Languages
from evennia_ai.npc.knowledge.embedding import Working
from evennia_ai.npc.knowledge.own_pages import MeaningBackend, OwnBackend, Threads
from evennia_ai.npc.senses.text import strip_markup
from evennia_ai.services.endpoints import Models
from evennia_ai.services.settings.game import Conf

BACKENDS: Final = ("database", "help", "mediawiki")
"""The names of the places where pages can be stored."""


MOST_OPENED: Final = 256


class Backends:
    """The backends of this game's knowledge bases. `conf` has the addresses of wikis."""

    def __init__(self, conf: Conf, models: Models, threads: Threads, *, work: Working) -> None:
        self._conf: Final = conf
        self._models: Final = models
        self._threads: Final = threads
        self._work: Final = work
        self._opened: Final = lru_cache(maxsize=MOST_OPENED)(self._open)
        self._makers: Final[dict[str, Callable[[str], Backend]]] = {
            "database": self._database,
            "help": lambda key: HelpBackend(key, languages=conf.knowledge_languages),
            "mediawiki": self._mediawiki,
        }

    def of(self, info: BaseInfo) -> Backend:
        """Return the backend of a knowledge base.

        Raises:
            BackendError: The base names an unknown place, or a wiki that is not in the settings.
        """
        return self._opened(info.backend, info.key)

    def _open(self, place: str, key: str) -> Backend:
        make = self._makers.get(place)
        if make is None:
            raise BackendError(
                f"knowledge base '{key}' is in '{place}', which is not a known place;"
                f" use one of {', '.join(BACKENDS)}"
            )
        return make(key)

    def _database(self, key: str) -> Backend:
        if self._conf.knowledge_embeddings:
            return MeaningBackend(key, self._threads, self._work, model=self._models.sentences)
        return OwnBackend(key, self._threads)

    def _mediawiki(self, key: str) -> Backend:
        """Return the backend of a wiki. Only this imports the wiki client."""
        from evennia_ai.services.wiki.backend import MediaWikiBackend

        site = self._conf.knowledge_wikis.get(key)
        if site is None:
            raise BackendError(
                f"knowledge base '{key}' is a wiki that EVENNIA_AI_KNOWLEDGE_WIKIS does not name;"
                " add its address there"
            )
        languages = self._conf.knowledge_languages
        return MediaWikiBackend(key, site, self._models.bridge, languages=languages)


def as_deferred(answer: Any) -> "Deferred[Any]":
    """Return a backend's answer as a Deferred. It may be a value, a coroutine or a Deferred."""
    if isinstance(answer, Deferred):
        return answer
    if hasattr(answer, "__await__"):
        return ensureDeferred(answer)
    return succeed(answer)


_CACHED: Final = 4096
_NOT_IN_TITLES: Final = str.maketrans("[]{}", "()()", "#<>|")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """A help entry as a page, with the words that a search compares."""

    page: Page
    words: PageWords


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """The content of a help entry, from a file or the database.

    `read` is its read lock, "" for none.
    """

    key: str
    aliases: tuple[str, ...]
    category: str
    text: str
    read: str


class HelpBackend:
    """The game's help as the knowledge base with this key."""

    def __init__(self, key: str, *, languages: Languages = ()) -> None:
        self._key = key
        self._languages = languages

    def fetch(self, names: Sequence[PageName]) -> list[Page | None]:
        """Return the help entries with these names or aliases, None for each that is missing."""
        known = _by_name(self._entries())
        return [known.get(name.folded) if name.namespace == "Main" else None for name in names]

    def search(
        self, query: str, *, namespaces: Collection[Namespace] = (), limit: int = 20
    ) -> list[Hit]:
        """Return the help entries that contain words of `query`, best first."""
        if namespaces and "Main" not in namespaces:
            return []
        entries = list(self._entries())
        asked = query_weights(query, self._languages)
        rarities = rarities_among(asked, [entry.words for entry in entries])
        scored = [(score_page(entry.words, rarities), entry.page) for entry in entries]
        best = sorted(
            ((score, page) for score, page in scored if score > 0),
            key=lambda found: (-found[0], found[1].name),
        )
        return [
            Hit(page=page, passage=self._passage(page, rarities), score=score)
            for score, page in best[:limit]
        ]

    def _passage(self, page: Page, rarities: Mapping[str, float]) -> str:
        return best_chunk(page.body, rarities, self._languages)[:MAX_CHUNK_CHARACTERS]

    def listed(self, namespace: Namespace, *, prefix: str = "") -> list[PageName]:
        """Return the titles of help entries that begin with `prefix`."""
        if namespace != "Main":
            return []
        names = (entry.page.name for entry in self._entries())
        return sorted(name for name in names if name.folded.startswith(prefix.casefold()))

    def linking(self, names: Sequence[PageName]) -> list[tuple[PageName, ...]]:
        """Return no pages, because help entries have no links."""
        return [() for _ in names]

    def pages(self, *, most_characters: int) -> list[Page] | None:
        """Return all help entries. None if they are longer than `most_characters` in all."""
        pages = [entry.page for entry in self._entries()]
        return pages if sum(len(page.body) for page in pages) <= most_characters else None

    def write(self, draft: PageDraft) -> Page:
        """Raise an error, because help entries are written in other ways."""
        raise BackendError(
            f"'{draft.page.name}' cannot be written: knowledge base '{self._key}' is the game's"
            " help; use sethelp, or the help files of the game"
        )

    def _entries(self) -> Iterator[_Entry]:
        for entry in _help_entries():
            try:
                yield _entry(self._key, _help_text(entry), self._languages)
            except TitleError:  # the name has only symbols, so it cannot be a title
                continue


def _help_entries() -> list[Any]:
    """Return the help entries, sorted by name. An entry of the database replaces one of a file."""
    by_key = {entry.key.lower().strip(): entry for entry in FILE_HELP_ENTRIES.all()}
    by_key |= {entry.key.lower().strip(): entry for entry in HelpEntry.objects.all()}
    return [by_key[key] for key in sorted(by_key)]


def _help_text(entry: Any) -> _Told:
    aliases = entry.aliases if isinstance(entry.aliases, list) else entry.aliases.all()
    return _Told(
        key=str(entry.key),
        aliases=tuple(map(str, aliases)),
        category=str(entry.help_category),
        text=strip_markup(str(entry.entrytext)).strip(),
        read=str(entry.locks.get("read")).partition(":")[2],
    )


@lru_cache(maxsize=_CACHED)
def _entry(base: str, told: _Told, languages: Languages) -> _Entry:
    meta = PageMeta(aliases=told.aliases, topics=(told.category,))
    locks = f"view:{told.read};search:{told.read}" if told.read else ""
    name = page_name(_title(told.key))
    page = Page(name=name, body=told.text, meta=meta, base=base, locks=locks)
    stored = replace(page, revision=page.sha256[:12])
    return _Entry(page=stored, words=index_page(stored, languages))


def _title(key: str) -> str:
    """Return the name of an entry without characters that are not allowed in titles."""
    return key.translate(_NOT_IN_TITLES)


def _by_name(entries: Iterator[_Entry]) -> dict[str, Page]:
    """Return the pages by folded name and alias. A name has priority over an equal alias."""
    pages = [entry.page for entry in entries]
    by_alias = {_title(alias).casefold(): page for page in pages for alias in page.meta.aliases}
    return by_alias | {page.name.folded: page for page in pages}
