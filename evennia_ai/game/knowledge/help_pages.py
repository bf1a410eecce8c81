"""Help entries as pages: the game's own help as a knowledge base that nobody has to write.

The entries of files and of the database are read as they are now; of two that have one name the
one of the database counts, as for the command `help`. Who may not read an entry may not see, and
not search, its page. Nothing is written here: `sethelp` and the game's files are for that.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from evennia.help.filehelp import FILE_HELP_ENTRIES
from evennia.help.models import HelpEntry

from evennia_ai.game.senses.text import unmarked
from evennia_ai.knowledge.backends import BackendError, Hit, PageDraft
from evennia_ai.knowledge.pages.page import (
    Namespace,
    Page,
    PageMeta,
    PageName,
    TitleError,
    page_name,
)
from evennia_ai.knowledge.relevance import (
    MAX_CHARACTERS,
    PageWords,
    asked_words,
    passage,
    rarities_in,
    relevance,
    words_of_page,
)

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

    def __init__(self, key: str) -> None:
        self._key = key

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
        rarities = rarities_in(asked_words(query), [entry.words for entry in entries])
        scored = [(relevance(entry.words, rarities), entry.page) for entry in entries]
        best = sorted(
            ((score, page) for score, page in scored if score > 0),
            key=lambda found: (-found[0], found[1].name),
        )
        return [
            Hit(page=page, passage=passage(page.body, rarities)[:MAX_CHARACTERS], score=score)
            for score, page in best[:limit]
        ]

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
                yield _entry(self._key, _told(entry))
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
def _entry(base: str, told: _Told) -> _Entry:
    meta = PageMeta(aliases=told.aliases, topics=(told.category,))
    locks = f"view:{told.read};search:{told.read}" if told.read else ""
    name = page_name(_title(told.key))
    page = Page(name=name, body=told.text, meta=meta, base=base, locks=locks)
    stored = replace(page, revision=page.sha256[:12])
    return _Entry(page=stored, words=words_of_page(stored))


def _title(key: str) -> str:
    """The name of an entry without what no title may have."""
    return key.translate(_NOT_IN_TITLES)


def _by_name(entries: Iterator[_Entry]) -> dict[str, Page]:
    """The pages by their folded names and aliases; a name counts before an alias."""
    pages = [entry.page for entry in entries]
    by_alias = {_title(alias).casefold(): page for page in pages for alias in page.meta.aliases}
    return by_alias | {page.name.folded: page for page in pages}
