"""Resolve what builders type in `kb`, and show knowledge bases and pages.

If a `view` lock hides a base or a page from a builder, it does not exist for that builder. Pages
come from the backend of their base, so it makes no difference whether they are in the database or
on another machine.

What a page requires is shown as a tree, breadth first, in the order in which a package reads it:
each page is under the first page that requires it. If it is required again, a line says that it is
elsewhere in the tree, or that it leads back to a page above.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from twisted.internet.defer import Deferred

from evennia_ai.commands.base import CommandError, and_more, counted, revision_in_words, titled
from evennia_ai.commands.naming import scope_in_words
from evennia_ai.engine.knowledge.pages.page import Backend, BaseInfo, Hit, Page, PageName, page_name
from evennia_ai.engine.prompt.tokens import ESTIMATE
from evennia_ai.engine.text.columns import (
    WIDTH,
    clip_text,
    escape_controls,
    first_line,
    pad_text,
    wrap_hanging,
    wrap_text,
)
from evennia_ai.npc.knowledge.backends import as_deferred
from evennia_ai.npc.mind.viewers import lock_allows
from evennia_ai.npc.runtime import runtime
from evennia_ai.store.knowledge import knowledge_bases
from evennia_ai.store.knowledge import knowledge_bases as bases
from evennia_ai.store.knowledge.backend import safe_hint_of
from evennia_ai.store.knowledge.pages import PageRevision

PAGE: Final = 40
_KEY_COLUMNS: Final = 14
_NAME_COLUMNS: Final = 24
_MOST_LINKS: Final = 60
_PASSAGE_LINES: Final = 3


def listed(infos: Iterable[BaseInfo]) -> list[str]:
    """Return a table of bases: their number of pages, whether restricted, and where assigned."""
    head = f"{pad_text('base', _KEY_COLUMNS)} {pad_text('name', _NAME_COLUMNS)}"
    lines = [f"{head} pages restricted  assigned to", "-" * WIDTH]
    for info in infos:
        key = pad_text(escape_controls(info.key), _KEY_COLUMNS)
        name = pad_text(escape_controls(info.name), _NAME_COLUMNS)
        count = str(info.pages) if info.backend == "database" else "-"
        state = "yes" if info.restricted else "no"
        row = f"{key} {name} {count:>5} {state:10}  {assigned_in_words(info)}"
        lines.append(clip_text(row, WIDTH))
    return lines


def base_shown(info: BaseInfo) -> list[str]:
    """Return one knowledge base: its description, and where it is assigned."""
    return [
        *wrap_hanging(f"Knowledge base {info.key}: {info.name}"),
        *titled("pages", _pages_in_words(info)),
        *titled("summary", info.summary or "none; kb/set writes one for those who may search it"),
        *titled("topics", ", ".join(info.topics) or "none"),
        *titled("restricted", _restricted_in_words(info)),
        *titled("hint", info.hint or "none"),
        *(titled("NPCs read", safe_hint_of(info.key) or "no hint") if info.restricted else []),
        *titled("keywords", ", ".join(info.keywords) or "none"),
        *(titled("shown whole", _direct_in_words(info)) if info.direct_characters else []),
        *([] if info.keeps_chunks else titled("vault", "off")),
        *(titled("lock", info.locks) if info.locks else []),
        *titled("assigned to", assigned_in_words(info)),
    ]


def assigned_in_words(info: BaseInfo) -> str:
    """Return where a knowledge base is assigned, in words."""
    return ", ".join(map(scope_in_words, knowledge_bases.assigned_to(info.key))) or "nothing"


def names_shown(typed: str, names: Sequence[PageName], *, page: int, pages: int) -> list[str]:
    """Return one page of the list of pages that match what was `typed`."""
    part = f", part {page} of {pages}" if pages > 1 else ""
    lines = [*wrap_hanging(f"Pages of {typed}{part}:")]
    lines += [clip_text(f"  {escape_controls(name.full)}", WIDTH) for name in names]
    return [*lines, *(wrap_hanging(f"More: kb/pages {typed} = {page + 1}") if page < pages else [])]


def page_shown(page: Page, *, asked: PageName | None = None) -> list[str]:
    """Return a page in full: its metadata, then its text.

    `asked` is the name that was typed; a line says so if a redirect led to the page.
    """
    meta = page.meta
    told = {
        "summary": meta.summary,
        "topics": ", ".join(meta.topics),
        "aliases": ", ".join(meta.aliases),
        "tags": ", ".join(meta.tags),
        "requires": ", ".join(name.full for name in meta.requires),
        "redirect": meta.redirect.full if meta.redirect else "",
        **{name: str(value) for name, value in meta.fields.items()},
        "lock": page.locks,
    }
    led = f", found as {asked}" if asked is not None and asked.folded != page.name.folded else ""
    lines = wrap_hanging(f"{page.base}/{page.name}, revision {page.revision or 'unknown'}{led}")
    for title, text in told.items():
        lines += titled(title, text) if text else []
    if not page.body.strip():
        return [*lines, "  no text"]
    return [
        *lines,
        f"  about {ESTIMATE.count(page.body)} tokens:",
        "",
        *wrap_text(page.body, WIDTH),
    ]


def hits_shown(info: BaseInfo, query: str, hits: Sequence[Hit]) -> list[str]:
    """Return the pages that a search found, best first."""
    if not hits:
        return wrap_text(f"No page of knowledge base {info.key} has the words '{query}'.", WIDTH)
    lines = []
    for hit in hits:
        lines.append(clip_text(escape_controls(hit.page.name.full), WIDTH))
        passage = wrap_text(" ".join(hit.passage.split()), WIDTH - 4)
        more = ["..."] if len(passage) > _PASSAGE_LINES else []
        lines += [f"    {line}" for line in (*passage[:_PASSAGE_LINES], *more)]
    return lines


def links_shown(
    page: Page, missing: Iterable[PageName], linked_from: Sequence[PageName]
) -> list[str]:
    """Return where a page links to, and which pages link to it."""
    gone = frozenset(missing)
    lines = wrap_hanging(f"{page.base}/{page.name} links to:")
    there = [
        clip_text(
            f"  {escape_controls(name.full)}{' (there is no such page)' * (name in gone)}", WIDTH
        )
        for name in page.links
    ]
    lines += and_more(there or ["  nothing"], most=_MOST_LINKS)
    if not linked_from:
        return lines
    back = [clip_text(f"  {escape_controls(name.full)}", WIDTH) for name in linked_from]
    return [*lines, "Linked from:", *and_more(back, most=_MOST_LINKS)]


def history_of(page: str, changes: Sequence[PageRevision]) -> list[str]:
    """Return the revisions of a page, oldest first."""
    lines = wrap_hanging(f"Revisions of {page}; kb/revert goes back to one of them:")
    for change in changes:
        note = f": {first_line(change.note)}" if change.note else ""
        lines += wrap_hanging(f"{revision_in_words(change)}{note}")
    return lines


def _pages_in_words(info: BaseInfo) -> str:
    if info.backend != "database":
        return f"stored in '{info.backend}'"
    return f"{counted(info.pages, 'page')}, {info.characters} characters"


def _direct_in_words(info: BaseInfo) -> str:
    return f"up to {info.direct_characters} characters of it, instead of what a search finds"


def _restricted_in_words(info: BaseInfo) -> str:
    if not info.restricted:
        return "no: NPCs that may search it read its pages"
    if info.mediation == "hints":
        return "yes: NPCs get only the hints of its pages, besides its own hint and keywords"
    return "yes: NPCs get only safe summaries of its pages, besides its hint and keywords"


MOST_PAGES: Final = 300
_DEEPEST_INDENT: Final = 16

Place = tuple[PageName, PageName]
"""A page, and the name by which another page requires it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequiresTree:
    """Pages by the names under which they are required; None for names that no page has.

    `places` has the page under which each page is shown, and the required name there. `is_cut` is
    True if there were more than `MOST_PAGES`.
    """

    root: Page
    pages: Mapping[PageName, Page | None]
    places: Mapping[PageName, Place]
    is_cut: bool


def requires_tree(
    root: Page, backend: Backend, *, seen: Callable[[Page], bool]
) -> Generator[Deferred[Any], Any, RequiresTree]:
    """Read everything that `root` requires. Fires with a tree without pages that are not `seen`."""
    pages: dict[PageName, Page | None] = {root.name: root}
    places: dict[PageName, Place] = {root.name: (root.name, root.name)}
    level: Sequence[Page] = [root]
    while level:
        wanted = {name: page.name for page in reversed(level) for name in page.meta.requires}
        new = [name for page in level for name in page.meta.requires if name not in pages]
        new = list(dict.fromkeys(new))
        if len(pages) + len(new) > MOST_PAGES:
            return RequiresTree(root=root, pages=pages, places=places, is_cut=True)
        found = (yield as_deferred(backend.fetch(new))) if new else ()
        level = []
        for name, page in zip(new, found, strict=True):
            pages[name] = page if page is not None and seen(page) else None
            if pages[name] is not None and page.name not in places:
                places[page.name] = (wanted[name], name)
                level.append(page)
    return RequiresTree(root=root, pages=pages, places=places, is_cut=False)


def tree_lines(tree: RequiresTree) -> list[str]:
    """Return the tree in lines, each page two columns further in than the page that requires it."""
    if not tree.root.meta.requires:
        return [f"{tree.root.name} requires nothing."]
    lines = [f"{tree.root.name} requires:", *_below(tree, tree.root, above=(tree.root.name,))]
    if tree.is_cut:
        lines.append(f"It is more than {MOST_PAGES} pages; what is not shown was not read.")
    return lines


def _below(tree: RequiresTree, page: Page, *, above: tuple[PageName, ...]) -> Iterator[str]:
    indent = "  " * min(len(above), _DEEPEST_INDENT)
    for name in dict.fromkeys(page.meta.requires):
        place, found = (page.name, name), tree.pages.get(name)
        yield f"{indent}{name}{_mark(tree, place, found, above)}"
        if found is not None and found.name not in above and tree.places[found.name] == place:
            yield from _below(tree, found, above=(*above, found.name))


def _mark(tree: RequiresTree, place: Place, found: Page | None, above: tuple[PageName, ...]) -> str:
    """Return a remark on a required page, such as that it is missing or shown elsewhere."""
    _, name = place
    if name not in tree.pages:
        return " (not read)"
    if found is None:
        return " (there is no such page)"
    if found.name in above:
        return " (a circle: see above)"
    if tree.places[found.name] != place:
        return " (shown elsewhere in this tree)"
    return f" (is {found.name})" if found.name != name else ""


STORED: Final = "database"
ACCESS: Final = ("view", "search", "restricted")
BASE_ACCESS: Final = (*ACCESS, "edit")
LOSABLE: Final = ("view", "edit")
"""The access types of a base's lock that a builder could lose by setting it."""
_MOST_NAMES: Final = 12
_MOST_NEAR: Final = 4

# A generator that waits for backends and ends with the type of its parameter.
Asked = Generator[Deferred[Any], Any, Page]


def visible_bases(caller: Any) -> Iterator[BaseInfo]:
    """Return the knowledge bases that `caller` may see, by key."""
    for info in bases.list_bases():
        if lock_allows(caller, info.locks, "view"):
            yield info


def base_named(caller: Any, text: str) -> BaseInfo:
    """Return the knowledge base with this key.

    Raises:
        CommandError: There is no such knowledge base, or its lock `view` refuses `caller`.
    """
    info = bases.base_or_none(text.strip().lower())
    if info is None or not lock_allows(caller, info.locks, "view"):
        known = ", ".join(seen.key for seen in list(visible_bases(caller))[:_MOST_NAMES])
        there = f"; there are {known}" if known else "; kb/create <base> makes one"
        raise CommandError(f"There is no knowledge base '{text}'{there}.")
    return info


def base_to_change(caller: Any, text: str) -> BaseInfo:
    """Return the knowledge base with this key, which `caller` wants to change.

    Raises:
        CommandError: There is no such knowledge base, or its lock `view` or `edit` refuses
            `caller`.
    """
    info = base_named(caller, text)
    refuse_change(caller, info)
    return info


def refuse_change(caller: Any, info: BaseInfo) -> None:
    """Raise CommandError if the lock `edit` of a knowledge base refuses `caller`."""
    if not lock_allows(caller, info.locks, "edit"):
        raise CommandError(
            f"You may not change knowledge base '{info.key}': its lock 'edit' does not allow it."
            " Nothing was changed."
        )


def split(text: str) -> tuple[str, str]:
    """Split `text` into the knowledge base and the page, "" for no page.

    A page's title may have slashes.
    """
    base, _, page = text.partition("/")
    return base.strip(), page.strip()


def page_typed(caller: Any, text: str, *, usage: str) -> tuple[BaseInfo, PageName]:
    """Return the knowledge base and the page's name in `<base>/<page>`. The page need not exist."""
    base, title = split(text)
    if not base or not title:
        raise CommandError(f"Name a page of a knowledge base: {usage}.")
    return base_named(caller, base), page_name(title)


def stored_base(info: BaseInfo) -> BaseInfo:
    """Return the knowledge base. CommandError if its pages are not in the game's database."""
    if info.backend != STORED:
        raise CommandError(
            f"The pages of knowledge base '{info.key}' are not in the game's database but in"
            f" '{info.backend}', and this switch cannot change them there. Nothing was changed."
        )
    return info


def page_seen(caller: Any, info: BaseInfo, name: PageName) -> Asked:
    """Return the page of this name, if `caller` may see it. One redirect is followed."""
    page = yield from page_or_none(caller, info, name)
    if page is None:
        near = yield from _near(caller, info, name)
        raise CommandError(f"Knowledge base '{info.key}' has no page '{name}'{near}.")
    return page


def page_or_none(
    caller: Any, info: BaseInfo, name: PageName
) -> Generator[Deferred[Any], Any, Page | None]:
    """Return the page of this name, or None if there is none that `caller` may see."""
    (page,) = yield as_deferred(runtime().backends.of(info).fetch([name]))
    return page if page is not None and may_see(caller, page) else None


def may_see(caller: Any, page: Page) -> bool:
    """True if `caller` may see this page of a visible base."""
    return lock_allows(caller, page.locks, "view")


def _near(caller: Any, info: BaseInfo, name: PageName) -> Generator[Deferred[Any], Any, str]:
    """Return the end of a message: which pages have words of the title."""
    hits = yield as_deferred(runtime().backends.of(info).search(name.title, limit=_MOST_NEAR))
    found = ", ".join(f"{hit.page.name}" for hit in hits if may_see(caller, hit.page))
    return (
        f"; similar pages are {found}" if found else f"; kb/pages {info.key} lists those there are"
    )
