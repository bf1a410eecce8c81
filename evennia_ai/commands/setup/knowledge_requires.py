"""What a page requires, as a tree: found breadth first, as an assembly of pages reads it.

Each page stands under the page that was the first to require it. Where it is required again, the
line says that it stands elsewhere, or that it leads back to a page above it.
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from twisted.internet.defer import Deferred

from evennia_ai.game.knowing.opening import later
from evennia_ai.knowledge.backends import Backend
from evennia_ai.knowledge.pages import Page
from evennia_ai.knowledge.titles import PageName

MOST_PAGES: Final = 300
_DEEPEST_INDENT: Final = 16

Place = tuple[PageName, PageName]
"""A page, and a name it requires another page by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequiresTree:
    """The pages by the names they are required by, None where there is none.

    `places` says for each page by its own name where it stands: under which page, and required by
    which name. `is_cut` says that there were more than `MOST_PAGES`.
    """

    root: Page
    pages: Mapping[PageName, Page | None]
    places: Mapping[PageName, Place]
    is_cut: bool


def requires_tree(
    root: Page, backend: Backend, *, seen: Callable[[Page], bool]
) -> Generator[Deferred[Any], Any, RequiresTree]:
    """Everything that `root` requires; a page that may not be `seen` is as if it was not there."""
    pages: dict[PageName, Page | None] = {root.name: root}
    places: dict[PageName, Place] = {root.name: (root.name, root.name)}
    level: Sequence[Page] = [root]
    while level:
        wanted = {name: page.name for page in reversed(level) for name in page.meta.requires}
        new = [name for page in level for name in page.meta.requires if name not in pages]
        new = list(dict.fromkeys(new))
        if len(pages) + len(new) > MOST_PAGES:
            return RequiresTree(root=root, pages=pages, places=places, is_cut=True)
        found = (yield later(backend.fetch(new))) if new else ()
        level = []
        for name, page in zip(new, found, strict=True):
            pages[name] = page if page is not None and seen(page) else None
            if pages[name] is not None and page.name not in places:
                places[page.name] = (wanted[name], name)
                level.append(page)
    return RequiresTree(root=root, pages=pages, places=places, is_cut=False)


def tree_lines(tree: RequiresTree) -> list[str]:
    """The tree in lines, each page two columns further in than the one that requires it."""
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
    """What is to be said of a page that is required."""
    _, name = place
    if name not in tree.pages:
        return " (not read)"
    if found is None:
        return " (there is no such page)"
    if found.name in above:
        return " (a circle: it stands above)"
    if tree.places[found.name] != place:
        return " (stands elsewhere in this tree)"
    return f" (is {found.name})" if found.name != name else ""
