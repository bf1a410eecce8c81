"""Co-occurrence: which other pages the pages at hand have in common.

A page that many of them link to comes first, then one that they link to more often, then by title.
"""

import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from evennia_ai.knowledge.prose import without_code
from evennia_ai.knowledge.titles import PageName, TitleError, page_name

_LINK: Final = re.compile(r"\[\[([^\[\]{}|<>#\n]{1,600})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seed:
    """A page at hand: what it links to, and how often where a link stands more than once."""

    name: PageName
    links: Sequence[PageName]
    mentions: Sequence[PageName] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Related:
    """A page that seeds link to: how many of them, and with how many links."""

    name: PageName
    seeds: int
    links: int


def related(seeds: Sequence[Seed]) -> tuple[Related, ...]:
    """The pages of the encyclopedia that the seeds link to, without the seeds, best first."""
    linking = Counter[PageName]()
    links = Counter[PageName]()
    for seed in seeds:
        targets = set(seed.links)
        linking.update(targets)
        mentioned = Counter(seed.mentions)
        links.update({name: max(1, mentioned[name]) for name in targets})
    own = {seed.name for seed in seeds}
    found = [
        Related(name=name, seeds=count, links=links[name])
        for name, count in linking.items()
        if name.namespace == "Main" and name not in own
    ]
    return tuple(sorted(found, key=lambda one: (-one.seeds, -one.links, one.name.title)))


def mentions(body: str) -> tuple[PageName, ...]:
    """Every link in a text, as often as it stands there."""
    found: list[PageName] = []
    for link in _LINK.finditer(without_code(body)):
        with suppress(TitleError):  # what is no title is no link either
            found.append(page_name(link[1]))
    return tuple(found)
