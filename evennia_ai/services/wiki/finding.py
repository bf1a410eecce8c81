"""Search for pages of a wiki: by words, by the start of a title, or by another spelling of it.

The search of a plain MediaWiki requires all words, does not rank results, and looks either in
titles or in texts. So a small wiki is read completely once, and searched here. A larger wiki is
asked for each word separately. The results are read and ranked here, with the same score as pages
in the game's database.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from unicodedata import normalize

from evennia_ai.engine.knowledge.pages.page import NAMESPACES, Hit, Namespace, Page, PageName
from evennia_ai.engine.knowledge.relevance import (
    MOST_QUERY_CHARACTERS,
    PageWords,
    best_chunk,
    index_page,
    index_stems,
    index_text,
    query_weights,
    rarities_among,
    score_page,
    word_rarity,
)
from evennia_ai.engine.text.word_forms import Languages
from evennia_ai.engine.text.words import split_words, unspaced_runs
from evennia_ai.services.wiki.client import (
    MOST_TITLES,
    WikiClient,
    WikiError,
    number,
    object_at,
    objects_at,
    text,
)
from evennia_ai.services.wiki.reading import MOST_KEPT, Names, PageReader

SMALL_PAGES: Final = 300
SMALL_BYTES: Final = 4_000_000
"""The largest wiki that is read completely, in bytes of its texts. The texts are cached."""

MOST_WORDS: Final = 6
"""How many words of a query are sent to a wiki.

The longest are sent, because they are most specific.
"""

MOST_LISTED: Final = 10_000
MOST_OTHERWISE: Final = 10
"""How many missing titles per call are searched for in other spellings."""

_BEGINNING_FROM: Final = 4
# From this length on, the wiki's text search covers titles too.
_NO_TITLES: Final = "search-title-disabled"


_Called = tuple[PageName, Page]
"""A page together with the name by which it was found: its own or that of a redirect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """The result of one search. `total` is how many pages the wiki has found."""

    names: tuple[PageName, ...]
    total: int


class Finder:
    """A search engine for one wiki, which has about `pages_there` pages."""

    def __init__(
        self,
        client: WikiClient,
        names: Names,
        reader: PageReader,
        *,
        pages_there: int,
        languages: Languages = (),
    ) -> None:
        self._client = client
        self._names = names
        self._reader = reader
        self._pages_there = pages_there
        self._languages = languages
        self._kept_words: dict[tuple[PageName, str], PageWords] = {}

    async def hits(self, query: str, *, namespaces: Collection[Namespace], limit: int) -> list[Hit]:
        """Return the pages that match the words of a query, best first.

        Raises:
            WikiError: the wiki gave no answer.
        """
        places = self._places(namespaces)
        asked = query_weights(query, self._languages)
        if not places or not asked or limit < 1:
            return []
        if (pages := await self._all_pages(places)) is not None:
            words = [self._words_of(*one) for one in pages]
            return self._rank_pages(pages, rarities_among(asked, words))[:limit]
        found, rarities = await self._search_wiki(_search_terms(query, self._languages), places)
        untold = {word: counts for word, counts in asked.items() if word not in rarities}
        among_these = rarities_among(untold, [self._words_of(*one) for one in found])
        return self._rank_pages(found, {**rarities, **among_these})[:limit]

    async def listed(self, namespace: Namespace, *, prefix: str) -> list[PageName]:
        """Return the names of the pages in a namespace whose titles begin with `prefix`.

        Redirects are left out.
        """
        found: list[PageName] = []
        for place, label in self._names.numbers_of(namespace).items():
            if label.casefold().startswith(prefix.casefold()):
                found += await self._in_place(place, "")
            elif prefix.casefold().startswith(label.casefold()):
                rest = prefix[len(label) :]
                found += [] if self._names.is_elsewhere(rest) else await self._in_place(place, rest)
        return sorted(found, key=lambda name: name.title)

    async def otherwise(self, names: Sequence[PageName]) -> dict[PageName, Page]:
        """Return the pages whose title or alias is one of these names in another case."""
        wanted = names[:MOST_OTHERWISE]
        found = [await self._page_called(name) for name in wanted]
        return {name: page for name, page in zip(wanted, found, strict=True) if page is not None}

    async def _page_called(self, name: PageName) -> Page | None:
        words, places = _search_terms(name.title, self._languages), self._places([name.namespace])
        if not words or not places:
            return None
        titles = (await self._find_pages(" ".join(words), places)).names[:MOST_TITLES]
        pages = await self._reader.pages(titles)
        there = [(title, page) for title, page in zip(titles, pages, strict=True) if page]
        return next((page for title, page in there if _is_called(title, page, name)), None)

    async def _all_pages(self, places: list[int]) -> list[_Called] | None:
        """Return all pages of these namespaces, or None if the wiki is too large."""
        if self._pages_there > SMALL_PAGES:
            return None
        there = await self._reader.all_current(
            places, most=SMALL_PAGES, most_bytes=SMALL_BYTES, kinds="all"
        )
        if there is None:
            return None
        read = (await self._reader.texts(there)).values()
        pages = {page.name: page for page in read}
        targets = {name: pages.get(page.meta.redirect or name) for name, page in pages.items()}
        return [
            (name, target)
            for name, target in targets.items()
            if target is not None and target.meta.redirect is None
        ]

    async def _search_wiki(
        self, words: Mapping[str, Mapping[str, float]], places: list[int]
    ) -> tuple[list[_Called], dict[str, float]]:
        """Search with the wiki's own search.

        Return the pages found, and the weight of each word.

        Args:
            words: The search terms for the wiki. Each one has the normalised words that it stands
                for, with their weights in the ranking.
        """
        asked = dict.fromkeys([" ".join(words), *words])
        all_words, *each = await asyncio.gather(*(self._find_pages(one, places) for one in asked))
        each = each or [all_words]  # A query of one word was sent only once.
        rarities = {
            ours: counts * word_rarity(one.total, pages=max(self._pages_there, one.total))
            for word, one in zip(words, each, strict=True)
            for ours, counts in words[word].items()
        }
        names = _likeliest_pages(all_words, list(zip(words.values(), each, strict=True)), rarities)
        pages = await self._reader.pages(names)
        return [(name, page) for name, page in zip(names, pages, strict=True) if page], rarities

    def _rank_pages(self, pages: Iterable[_Called], rarities: Mapping[str, float]) -> list[Hit]:
        """Return the pages that match, best first.

        A page that was found by several names gets its best score.
        """
        best: dict[PageName, tuple[float, Page]] = {}
        for name, page in pages:
            score = score_page(self._words_of(name, page), rarities)
            if score > best.get(page.name, (0.0,))[0]:
                best[page.name] = (score, page)
        return [
            Hit(page=page, passage=best_chunk(page.body, rarities, self._languages), score=score)
            for score, page in sorted(best.values(), key=lambda one: (-one[0], one[1].name.full))
        ]

    def _words_of(self, name: PageName, page: Page) -> PageWords:
        """Return the indexed words of a page.

        A redirect has its own title and the words of its target.
        """
        key = (page.name, page.revision)
        if key not in self._kept_words:
            if len(self._kept_words) >= MOST_KEPT:
                self._kept_words.clear()
            self._kept_words[key] = index_page(page, self._languages)
        words = self._kept_words[key]
        if name.folded == page.name.folded:
            return words
        title = index_text(name.title)
        stems = index_stems(name.title, self._languages)
        return PageWords(
            title=title,
            body=f"{title} {words.body}",
            title_stems=stems,
            body_stems=f"{stems} {words.body_stems}",
        )

    def _places(self, namespaces: Collection[Namespace]) -> list[int]:
        wanted = [one for one in NAMESPACES if not namespaces or one in namespaces]
        return [place for one in wanted for place in self._names.numbers_of(one)]

    async def _find_pages(self, words: str, places: list[int]) -> _Found:
        """Return the pages whose titles, or whose texts, contain all of these words."""
        titles, texts = await asyncio.gather(
            self._searched(words, places, what="title"), self._searched(words, places, what="text")
        )
        names = tuple(dict.fromkeys([*titles.names, *texts.names]))
        return _Found(names=names, total=max(titles.total, texts.total, len(names)))

    async def _searched(self, words: str, places: list[int], *, what: str) -> _Found:
        wanted = {"action": "query", "list": "search", "srsearch": words, "srwhat": what}
        within = {"srnamespace": "|".join(map(str, places)), "srlimit": str(MOST_TITLES)}
        try:
            answer = await self._client.ask(**wanted, **within, srinfo="totalhits", srprop="")
        except WikiError as error:
            if error.code != _NO_TITLES:
                raise
            return _Found(names=(), total=0)
        named = [self._name(one) for one in objects_at(answer, "query", "search")]
        total = number(object_at(answer, "query", "searchinfo"), "totalhits")
        return _Found(names=tuple(one for one in named if one is not None), total=total)

    async def _in_place(self, place: int, prefix: str) -> list[PageName]:
        wanted = {
            "action": "query",
            "list": "allpages",
            "apnamespace": str(place),
            "aplimit": "max",
        }
        found: list[PageName] = []
        asked = {**wanted, "apprefix": prefix, "apfilterredir": "nonredirects"}
        async with self._client.ask_on(**asked) as answers:
            async for answer in answers:
                named = [self._name(one) for one in objects_at(answer, "query", "allpages")]
                found += [one for one in named if one is not None]
                if len(found) >= MOST_LISTED:
                    break
        return found[:MOST_LISTED]

    def _name(self, told: dict[str, Any]) -> PageName | None:
        return self._names.name_of(number(told, "ns"), text(told, "title"))


def _search_terms(query: str, languages: Languages) -> dict[str, dict[str, float]]:
    """Return the search terms to send to a wiki: the longest words of a query.

    Each term has the normalised words that it stands for, with their weights in the ranking. Short
    words are not specific, so they are sent only if there are no others. All terms are lower-case
    letters and digits, so a query cannot contain search operators. Only this function adds the
    star, with which the wiki also finds longer forms of a word.
    """
    plain = normalize("NFC", query[:MOST_QUERY_CHARACTERS]).casefold().replace("_", " ")
    forms = {word: _search_term(word, languages) for word in split_words(plain)}
    forms |= {run: f"{run}*" for run in unspaced_runs(plain)}
    ours = {form: query_weights(word, languages) for word, form in forms.items()}
    known = [form for form in ours if ours[form]]
    telling = [form for form in known if form.endswith("*") or not form.isascii()] or known
    longest = sorted(telling, key=len, reverse=True)[:MOST_WORDS]
    return {form: ours[form] for form in longest}


def _search_term(word: str, languages: Languages) -> str:
    """Return the search term for a wiki that finds a word and its other forms, such as "lamp*"."""
    beginning = word
    while not all(ours.startswith(beginning) for ours in query_weights(word, languages)):
        beginning = beginning[:-1]
    if beginning.endswith(("y", "i")):  # "ferry" must also find "ferries".
        beginning = beginning[:-1]
    return f"{beginning}*" if len(beginning) >= _BEGINNING_FROM else word


def _likeliest_pages(
    together: _Found,
    each: Iterable[tuple[Iterable[str], _Found]],
    rarities: Mapping[str, float],
) -> list[PageName]:
    """Return the pages worth reading: those that contain the most and the rarest words."""
    worth = dict.fromkeys(together.names, 0.0)
    for words, found in each:
        for name in found.names:
            worth[name] = worth.get(name, 0.0) + sum(rarities[word] for word in words)
    all_of_them = sum(rarities.values())
    worth |= dict.fromkeys(together.names, all_of_them)
    return sorted(worth, key=lambda name: (-worth[name], name.full))[:MOST_TITLES]


def _is_called(title: PageName, page: Page, name: PageName) -> bool:
    """True if a page that was found by a title has a certain name in any case."""
    known = {title.folded, page.name.folded, *(alias.casefold() for alias in page.meta.aliases)}
    return title.namespace == name.namespace and name.folded in known
