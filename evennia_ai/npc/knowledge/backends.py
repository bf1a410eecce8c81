"""Backends: where the pages of a knowledge base are in the running game.

A base says by a word where its pages are: in the database, in a wiki, or in the game's own help.
One backend a base is made and kept, of the bases that were asked last, so that a wiki is logged
into once. Help is read as it is now, and written with `sethelp` or in the game's files alone; who
may not read an entry may not see, and not search, its page. How pages of the database are searched
is told in `own_pages.py`.
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
from evennia_ai.npc.senses.text import unmarked
from evennia_ai.services.endpoints import Models
from evennia_ai.services.settings.game import Conf

BACKENDS: Final = ("database", "help", "mediawiki")
"""The words by which a base says where its pages are."""


MOST_OPENED: Final = 256


class Backends:
    """The backends of the bases of this game; `conf` says which wikis there are."""

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
        """Where the pages of a base are.

        BackendError: the game has no such place, or not this one.
        """
        return self._opened(info.backend, info.key)

    def _open(self, place: str, key: str) -> Backend:
        make = self._makers.get(place)
        if make is None:
            raise BackendError(
                f"knowledge base '{key}' is in '{place}', which is no place for pages;"
                f" there are {', '.join(BACKENDS)}"
            )
        return make(key)

    def _database(self, key: str) -> Backend:
        if self._conf.knowledge_embeddings:
            return MeaningBackend(key, self._threads, self._work, model=self._models.sentences)
        return OwnBackend(key, self._threads)

    def _mediawiki(self, key: str) -> Backend:
        """A wiki; its client is imported where a game has one, and nowhere else."""
        from evennia_ai.services.wiki.backend import MediaWikiBackend

        site = self._conf.knowledge_wikis.get(key)
        if site is None:
            raise BackendError(
                f"knowledge base '{key}' is a wiki that EVENNIA_AI_KNOWLEDGE_WIKIS does not name;"
                " say there where it is"
            )
        languages = self._conf.knowledge_languages
        return MediaWikiBackend(key, site, self._models.bridge, languages=languages)


def later(answer: Any) -> "Deferred[Any]":
    """What a backend says, as a Deferred, whether it is there at once or comes later."""
    if isinstance(answer, Deferred):
        return answer
    if hasattr(answer, "__await__"):
        return ensureDeferred(answer)
    return succeed(answer)


_CACHED: Final = 4096
_NOT_IN_TITLES: Final = str.maketrans("[]{}", "()()", "#<>|")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """A help entry as a page, and the words it is found by."""

    page: Page
    words: PageWords


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """What a help entry of either kind says; `read` is its lock of that type, "" for none."""

    key: str
    aliases: tuple[str, ...]
    category: str
    text: str
    read: str


class HelpBackend:
    """The help of this game as the knowledge base `key`."""

    def __init__(self, key: str, *, languages: Languages = ()) -> None:
        self._key = key
        self._languages = languages

    def fetch(self, names: Sequence[PageName]) -> list[Page | None]:
        """The entries of these names or aliases."""
        known = _by_name(self._entries())
        return [known.get(name.folded) if name.namespace == "Main" else None for name in names]

    def search(
        self, query: str, *, namespaces: Collection[Namespace] = (), limit: int = 20
    ) -> list[Hit]:
        """The entries that have words of `query`, best first."""
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
        """The entries whose titles begin so."""
        if namespace != "Main":
            return []
        names = (entry.page.name for entry in self._entries())
        return sorted(name for name in names if name.folded.startswith(prefix.casefold()))

    def linking(self, names: Sequence[PageName]) -> list[tuple[PageName, ...]]:
        """Help entries link to nothing."""
        return [() for _ in names]

    def pages(self, *, most_characters: int) -> list[Page] | None:
        """All entries, None where they are longer than that."""
        pages = [entry.page for entry in self._entries()]
        return pages if sum(len(page.body) for page in pages) <= most_characters else None

    def write(self, draft: PageDraft) -> Page:
        """Refuse: help is written elsewhere."""
        raise BackendError(
            f"'{draft.page.name}' cannot be written: knowledge base '{self._key}' is the game's"
            " help; use sethelp, or the help files of the game"
        )

    def _entries(self) -> Iterator[_Entry]:
        for entry in _help_entries():
            try:
                yield _entry(self._key, _told(entry), self._languages)
            except TitleError:  # an entry whose name is nothing but signs: nobody could ask for it
                continue


def _help_entries() -> list[Any]:
    """The game's help entries by their names, those of the database before those of files."""
    by_key = {entry.key.lower().strip(): entry for entry in FILE_HELP_ENTRIES.all()}
    by_key |= {entry.key.lower().strip(): entry for entry in HelpEntry.objects.all()}
    return [by_key[key] for key in sorted(by_key)]


def _told(entry: Any) -> _Told:
    aliases = entry.aliases if isinstance(entry.aliases, list) else entry.aliases.all()
    return _Told(
        key=str(entry.key),
        aliases=tuple(map(str, aliases)),
        category=str(entry.help_category),
        text=unmarked(str(entry.entrytext)).strip(),
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
    """The name of an entry without what no title may have."""
    return key.translate(_NOT_IN_TITLES)


def _by_name(entries: Iterator[_Entry]) -> dict[str, Page]:
    """The pages by their folded names and aliases; a name counts before an alias."""
    pages = [entry.page for entry in entries]
    by_alias = {_title(alias).casefold(): page for page in pages for alias in page.meta.aliases}
    return by_alias | {page.name.folded: page for page in pages}
