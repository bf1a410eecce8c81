"""Packages: what an assembly comes to, which pages are in it, and the text that a model reads.

Headers, their order and the two lines of caution are fixed: instruction pages are written with them
in mind. A line of a page that would read as one of our headers is quoted, except in instructions,
whose authors may say anything. Pages are ranked by their words alone: how often each different word
of the task stands in one, in the title twice, divided by the words that the page has. What does not
fit goes in this order: Wikipedia, talk, sources, the encyclopedia, in each the lowest first;
instructions never. A package stands before the generator's system prompt or, in a conversation,
the instructions there and the rest before the task, so that the prompt's start stays the same.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Final, Literal, get_args

from evennia_ai.engine.errors import BudgetError
from evennia_ai.engine.knowledge.assembly.requests import LoreTask
from evennia_ai.engine.knowledge.pages.page import Page, PageName
from evennia_ai.engine.knowledge.settings import Placement
from evennia_ai.engine.prompt.tokens import TokenCounter
from evennia_ai.engine.text.words import signs_of

Bucket = Literal["instructions", "encyclopedia", "sources", "talk", "wikipedia"]
BUCKETS: Final[tuple[Bucket, ...]] = get_args(Bucket)
"""The sections of a package in their order; a page that is in several stays in the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedPage:
    """A page that was chosen."""

    bucket: Bucket
    heading: str
    """What its header says."""
    text: str
    """What stands below it."""
    why: str
    """What brought it here."""
    sha256: str
    """With base and revision: which text of the page this was."""
    name: PageName | None = None
    """None for an article of Wikipedia."""
    article: str = ""
    """The title of such an article."""
    base: str = ""
    revision: str = ""
    depth: int = 0
    """Over how many hops of `requires` it came."""
    score: float = 0.0
    forced: bool = False
    """Asked for by name, and trimmed after all others of its bucket."""

    @property
    def identity(self) -> tuple[str, str]:
        """What two packed pages share that are the same page."""
        if self.name is None:
            return "Wikipedia", self.article
        return self.name.namespace, self.name.title

    def recorded(self) -> dict[str, Any]:
        """What a record keeps of it: everything but its text."""
        return {
            "section": self.bucket,
            "page": self.article if self.name is None else self.name.full,
            "why": self.why,
            "base": self.base,
            "revision": self.revision,
            "sha256": self.sha256,
            "depth": self.depth,
            "score": round(self.score, 6),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedPage:
    """A page that was chosen and then left out, and why."""

    page: PackedPage
    why: str

    def recorded(self) -> dict[str, Any]:
        """What a record keeps of it."""
        return self.page.recorded() | {"dropped": self.why}


def packed(page: Page, bucket: Bucket, *, why: str, depth: int = 0) -> PackedPage:
    """A whole page as it stands in a bucket."""
    return PackedPage(
        bucket=bucket,
        heading=page.name.full,
        text=page.body,
        why=why,
        sha256=page.sha256,
        name=page.name,
        base=page.base,
        revision=page.revision,
        depth=depth,
    )


HEADERS: Final[Mapping[Bucket, str]] = {
    "instructions": "[INSTRUCTIONS]",
    "encyclopedia": "[ENCYCLOPEDIA CONTEXT]",
    "sources": "[SOURCES]",
    "talk": "[EDITORIAL NOTES]",
    "wikipedia": "[REAL-WORLD REFERENCE — Wikipedia]",
}
CAUTION: Final = (
    "Factual real-world information for grounding only.\n"
    "Do NOT treat as in-universe canon for {world}."
)
A_WORLD: Final = "this world"
MOST_OF_A_NAME: Final = 120

_LIKE_A_HEADER: Final = re.compile(
    r"^(?=[ \t]*(?:---\ .*\ ---|\[(?:INSTRUCTIONS|ENCYCLOPEDIA\ CONTEXT|SOURCES|EDITORIAL\ NOTES"
    r"|REAL-WORLD\ REFERENCE.*)\])[ \t]*$)",
    re.MULTILINE | re.IGNORECASE | re.VERBOSE,
)


def serialised(
    pages: Sequence[PackedPage], *, world: str, buckets: Sequence[Bucket] = BUCKETS
) -> str:
    """The text of these pages, those of other buckets left out; "" where there are none."""
    sections = (
        section(bucket, [one for one in pages if one.bucket == bucket], world=world)
        for bucket in buckets
    )
    return "\n\n".join(filter(None, sections))


def section(bucket: Bucket, pages: Sequence[PackedPage], *, world: str) -> str:
    """One section with its header, "" where it has no pages."""
    if not pages:
        return ""
    lines = [HEADERS[bucket]]
    if bucket == "wikipedia":
        lines.append(CAUTION.format(world=one_line(world) or A_WORLD))
    for page in pages:
        lines += _lines_of(page)
    return "\n".join(lines)


def one_line(text: str) -> str:
    """A name from outside, as it may stand in a line of ours."""
    return " ".join(text.split())[:MOST_OF_A_NAME]


def _lines_of(page: PackedPage) -> list[str]:
    lines = [f"--- {page.heading} ---"]
    if page.bucket == "wikipedia":
        lines.append(f"Wikipedia: {one_line(page.article)}")
    text = page.text if page.bucket == "instructions" else _quoted(page.text)
    return [*lines, *filter(None, [text.strip()])]


def _quoted(text: str) -> str:
    return _LIKE_A_HEADER.sub("> ", "\n".join(text.splitlines()))


TypeFrom = Literal["override", "precheck", "planner", "fallback"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """The pages that go to the generator with a task."""

    task: LoreTask
    task_type: str
    type_from: TypeFrom
    """Who determined the task type."""
    entities: tuple[str, ...] = ()
    bypass_reason: str = ""
    """Why there are no pages, and the task goes to the generator as it is."""
    world: str = ""
    pages: tuple[PackedPage, ...] = ()
    dropped: tuple[DroppedPage, ...] = ()
    tokens: Mapping[str, int] = field(default_factory=dict)
    """Those of each section."""
    total_tokens: int = 0
    """Those of the whole text."""
    limit_tokens: int = 0
    """How many there may be."""
    steps: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def bypassed(self) -> bool:
        """Whether the generator is asked without any pages."""
        return bool(self.bypass_reason)

    @property
    def sections(self) -> dict[Bucket, tuple[PackedPage, ...]]:
        """The pages of each section that has any."""
        found = {one: tuple(it for it in self.pages if it.bucket == one) for one in BUCKETS}
        return {bucket: pages for bucket, pages in found.items() if pages}

    def serialised(self, *buckets: Bucket) -> str:
        """The text for the generator, of these sections or of all; "" where it is bypassed."""
        return serialised(self.pages, world=self.world, buckets=buckets or BUCKETS)

    def context_meta(self) -> dict[str, Any]:
        """What stands on every answer and in every record: all but the texts, as JSON."""
        text = self.serialised()
        return {
            "task_type": self.task_type,
            "type_from": self.type_from,
            "entities": list(self.entities),
            "bypassed": self.bypassed,
            "reason": self.bypass_reason,
            "world": self.world,
            "tokens": {**self.tokens, "total": self.total_tokens, "limit": self.limit_tokens},
            "sha256": hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
            "pages": [one.recorded() for one in self.pages],
            "dropped": [one.recorded() for one in self.dropped],
            "warnings": list(self.warnings),
            "steps": list(self.steps),
        }


TITLE_WEIGHT: Final = 2
MOST_RANKED: Final = 40_000
"""Characters of a page that are looked through: a longer one is judged by its beginning."""


def ranked(
    pages: Sequence[PackedPage], *, task: str, stop_words: Collection[str]
) -> tuple[PackedPage, ...]:
    """The pages with their scores, by bucket and in each the best ones first.

    Instructions keep their order, forced pages stand before the others of their bucket in the order
    they were asked for. Pages of one score keep their order, in which what the task names is before
    what is only linked.
    """
    terms = frozenset(_content(task, stop_words))
    scored = [
        replace(one, score=score(one.heading, one.text, terms=terms, stop_words=stop_words))
        for one in pages
    ]
    buckets = ([one for one in scored if one.bucket == bucket] for bucket in BUCKETS)
    return tuple(chain.from_iterable(map(_best_first, buckets)))


def score(title: str, text: str, *, terms: Collection[str], stop_words: Collection[str]) -> float:
    """How much of a page are the words of a task; 0 where it has no words."""
    in_title = Counter(_content(title, stop_words))
    in_text = Counter(_content(text[:MOST_RANKED], stop_words))
    length = in_title.total() + in_text.total()
    found = sum(in_text[term] + TITLE_WEIGHT * in_title[term] for term in terms)
    return found / length if length else 0.0


def _best_first(pages: Sequence[PackedPage]) -> list[PackedPage]:
    if pages and pages[0].bucket == "instructions":
        return list(pages)
    forced = [one for one in pages if one.forced]
    free = [one for one in pages if not one.forced]
    return forced + sorted(free, key=lambda one: -one.score)


def _content(text: str, stop_words: Collection[str]) -> list[str]:
    return [word for word in signs_of(text) if word not in stop_words]


DROP_ORDER: Final[tuple[Bucket, ...]] = ("wikipedia", "talk", "sources", "encyclopedia")


class ContextBudgetError(BudgetError):
    """The instructions alone are more than a package may have; no generator can be asked."""


def trimmed(
    pages: Sequence[PackedPage], *, limit_tokens: int, world: str, counter: TokenCounter
) -> tuple[tuple[PackedPage, ...], tuple[DroppedPage, ...]]:
    """The pages that fit, and those that do not in the order in which they went.

    `pages` are ranked: the last of a bucket is its lowest. They are put in from the one that would
    go last, until one is too much, so that long texts with no place in it cost nothing.

    Raises:
        ContextBudgetError: the instructions alone do not fit.
    """

    def fits(number: int) -> bool:
        text = serialised(last_to_go[:number], world=world)
        return counter.count(text) <= limit_tokens

    last_to_go = sorted(pages, key=_place_in_line)
    needed = sum(one.bucket == "instructions" for one in pages)
    if needed and not fits(needed):
        costs = [(one.heading, counter.count(one.text)) for one in last_to_go[:needed]]
        raise ContextBudgetError(limit_tokens, costs)
    over = next((at for at in range(needed, len(pages)) if not fits(at + 1)), len(pages))
    why = f"trimmed: the package would have more than {limit_tokens} tokens with it"
    return (
        tuple(sorted(last_to_go[:over], key=lambda one: BUCKETS.index(one.bucket))),
        tuple(DroppedPage(page=one, why=why) for one in reversed(last_to_go[over:])),
    )


def _place_in_line(page: PackedPage) -> int:
    """How early the bucket of a page goes, negated: the one that goes first is the greatest."""
    return -DROP_ORDER.index(page.bucket) if page.bucket in DROP_ORDER else -len(DROP_ORDER)


def section_tokens(
    pages: Sequence[PackedPage], *, world: str, counter: TokenCounter
) -> dict[str, int]:
    """The tokens of each section that has pages."""
    texts = {bucket: serialised(pages, world=world, buckets=(bucket,)) for bucket in BUCKETS}
    return {bucket: counter.count(text) for bucket, text in texts.items() if text}


def placed(package: Package, system_prompt: str, placement: Placement) -> tuple[str, str]:
    """The system text and the context text; either may be ""."""
    if placement == "prepend":
        return _joined(package.serialised(), system_prompt), ""
    instructions, *rest = BUCKETS
    return _joined(package.serialised(instructions), system_prompt), package.serialised(*rest)


def _joined(*texts: str) -> str:
    return "\n\n".join(filter(None, texts))
