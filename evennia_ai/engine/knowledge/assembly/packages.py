"""Packages: the wiki pages that were chosen for a task, and the text that a model reads.

The headers of sections, their order and the two lines of caution never change, because instruction
pages refer to them. A line of a page that looks like such a header is quoted. Instructions are an
exception, because their authors may write anything.

Pages are ranked by words only. The score counts how often the words of the task occur in the page,
twice in its title, and divides that by the number of words of the page.

If a package is too long, pages are dropped section by section, the lowest score first. The order of
sections is: Wikipedia, talk, sources, encyclopedia. Instructions are never dropped.

A package is placed before the generator's system prompt. In a conversation only the instructions
are placed there, and all other pages before the task. So the beginning of the prompt stays the same
from task to task.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, get_args

from evennia_ai.engine.errors import BudgetError
from evennia_ai.engine.knowledge.assembly.requests import LoreTask
from evennia_ai.engine.knowledge.pages.page import Page, PageName
from evennia_ai.engine.knowledge.settings import Placement
from evennia_ai.engine.prompt.tokens import TokenCounter
from evennia_ai.engine.text.words import split_signs

Bucket = Literal["instructions", "encyclopedia", "sources", "talk", "wikipedia"]
BUCKETS: Final[tuple[Bucket, ...]] = get_args(Bucket)
"""The sections of a package, in order. A page that belongs to several is put into the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedPage:
    """A wiki page that was chosen for a task."""

    bucket: Bucket
    heading: str
    """The header of the page in the text for the model."""
    text: str
    """The text below that header."""
    why: str
    """The reason why the page was chosen."""
    sha256: str
    """The hash of the page's name, text and metadata."""
    name: PageName | None = None
    """The name of the page; None for a Wikipedia article."""
    article: str = ""
    """The title of a Wikipedia article; "" for a page of the wiki."""
    base: str = ""
    revision: str = ""
    depth: int = 0
    """How many `requires` links lead from a chosen page to this one."""
    score: float = 0.0
    forced: bool = False
    """True if the author of the task asked for the page by name.

    Such a page is dropped last in its section.
    """

    @property
    def identity(self) -> tuple[str, str]:
        """Return a key that is equal if two chosen pages are the same page."""
        if self.name is None:
            return "Wikipedia", self.article
        return self.name.namespace, self.name.title

    def to_record(self) -> dict[str, Any]:
        """Return everything except the text, for the record of the choice of pages."""
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
    """A wiki page that was chosen for a task and dropped later, with the reason."""

    page: PackedPage
    why: str

    def to_record(self) -> dict[str, Any]:
        """Return what the record of the choice of pages contains about the dropped page."""
        return self.page.to_record() | {"dropped": self.why}


def pack_page(page: Page, bucket: Bucket, *, why: str, depth: int = 0) -> PackedPage:
    """Return a whole wiki page as a chosen page of this section."""
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


def render_pages(
    pages: Sequence[PackedPage], *, world: str, buckets: Sequence[Bucket] = BUCKETS
) -> str:
    """Render the chosen pages of some sections as text for the model; "" if there are none."""
    sections = (
        render_section(bucket, [one for one in pages if one.bucket == bucket], world=world)
        for bucket in buckets
    )
    return "\n\n".join(filter(None, sections))


def render_section(bucket: Bucket, pages: Sequence[PackedPage], *, world: str) -> str:
    """Render the pages of one section below its header; "" if there are none."""
    if not pages:
        return ""
    lines = [HEADERS[bucket]]
    if bucket == "wikipedia":
        lines.append(CAUTION.format(world=one_line(world) or A_WORLD))
    for page in pages:
        lines += _page_lines(page)
    return "\n".join(lines)


def one_line(text: str) -> str:
    """Return a name from an untrusted source as a short text without line breaks."""
    return " ".join(text.split())[:MOST_OF_A_NAME]


def _page_lines(page: PackedPage) -> list[str]:
    lines = [f"--- {page.heading} ---"]
    if page.bucket == "wikipedia":
        lines.append(f"Wikipedia: {one_line(page.article)}")
    text = page.text
    if page.bucket != "instructions":
        # `splitlines` also finds unusual line breaks. So a line that looks like a header cannot
        # hide behind one.
        text = _LIKE_A_HEADER.sub("> ", "\n".join(text.splitlines()))
    return [*lines, *filter(None, [text.strip()])]


TypeFrom = Literal["override", "precheck", "planner", "fallback"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """The wiki pages that the generator gets with a task, and how they were chosen."""

    task: LoreTask
    task_type: str
    type_from: TypeFrom
    """How the task type was determined: by the author, the pre-check, the planner or a fallback."""
    entities: tuple[str, ...] = ()
    bypass_reason: str = ""
    """Why the generator gets no wiki pages for this task; "" if it gets some."""
    world: str = ""
    pages: tuple[PackedPage, ...] = ()
    dropped: tuple[DroppedPage, ...] = ()
    tokens: Mapping[str, int] = field(default_factory=dict)
    """The tokens of each section, by name of the section."""
    total_tokens: int = 0
    """The tokens of the whole text for the model."""
    limit_tokens: int = 0
    """The maximum number of tokens of the whole text for the model."""
    steps: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def bypassed(self) -> bool:
        """True if the generator gets no wiki pages."""
        return bool(self.bypass_reason)

    @property
    def sections(self) -> dict[Bucket, tuple[PackedPage, ...]]:
        """Return the chosen pages by section. Sections without pages are left out."""
        found = {one: tuple(it for it in self.pages if it.bucket == one) for one in BUCKETS}
        return {bucket: pages for bucket, pages in found.items() if pages}

    def render(self, *buckets: Bucket) -> str:
        """Render the chosen pages for the model that writes, with all sections or only `buckets`.

        Return "" if no wiki page was chosen.
        """
        return render_pages(self.pages, world=self.world, buckets=buckets or BUCKETS)

    def context_meta(self) -> dict[str, Any]:
        """Return the record of how the pages were chosen, without their texts, as JSON values."""
        text = self.render()
        return {
            "task_type": self.task_type,
            "type_from": self.type_from,
            "entities": list(self.entities),
            "bypassed": self.bypassed,
            "reason": self.bypass_reason,
            "world": self.world,
            "tokens": {**self.tokens, "total": self.total_tokens, "limit": self.limit_tokens},
            "sha256": hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
            "pages": [one.to_record() for one in self.pages],
            "dropped": [one.to_record() for one in self.dropped],
            "warnings": list(self.warnings),
            "steps": list(self.steps),
        }


TITLE_WEIGHT: Final = 2
MOST_RANKED: Final = 40_000
"""How many characters of a wiki page its score depends on, from its beginning."""


def rank_pages(
    pages: Sequence[PackedPage], *, task: str, stop_words: Collection[str]
) -> tuple[PackedPage, ...]:
    """Return the chosen pages with their scores: by section, and best first in each section.

    Instructions keep their order. Forced pages come first in their section, in the order in which
    the author named them. Pages with equal scores keep their order.
    """
    terms = frozenset(_content_words(task, stop_words))
    scored = [
        replace(
            one,
            score=task_word_share(one.heading, one.text, terms=terms, stop_words=stop_words),
        )
        for one in pages
    ]
    ranked: list[PackedPage] = []
    for bucket in BUCKETS:
        of_bucket = [one for one in scored if one.bucket == bucket]
        if bucket != "instructions":
            forced = [one for one in of_bucket if one.forced]
            free = [one for one in of_bucket if not one.forced]
            of_bucket = forced + sorted(free, key=lambda one: -one.score)
        ranked += of_bucket
    return tuple(ranked)


def task_word_share(
    title: str, text: str, *, terms: Collection[str], stop_words: Collection[str]
) -> float:
    """Return the share of a wiki page's words that the task contains; 0 for an empty page."""
    in_title = Counter(_content_words(title, stop_words))
    in_text = Counter(_content_words(text[:MOST_RANKED], stop_words))
    length = in_title.total() + in_text.total()
    found = sum(in_text[term] + TITLE_WEIGHT * in_title[term] for term in terms)
    return found / length if length else 0.0


def _content_words(text: str, stop_words: Collection[str]) -> list[str]:
    return [word for word in split_signs(text) if word not in stop_words]


DROP_ORDER: Final[tuple[Bucket, ...]] = ("wikipedia", "talk", "sources", "encyclopedia")


class ContextBudgetError(BudgetError):
    """The error if the instructions for a task need more tokens than all its pages may have."""


def trim_pages(
    pages: Sequence[PackedPage], *, limit_tokens: int, world: str, counter: TokenCounter
) -> tuple[tuple[PackedPage, ...], tuple[DroppedPage, ...]]:
    """Return the wiki pages that fit into the limit, and the dropped pages in order of dropping.

    Pages are added, most important first, until one does not fit. So the tokens of long pages that
    do not fit anyway are not counted.

    Args:
        pages: The ranked pages. The last page of a section is dropped first.
        limit_tokens: The maximum number of tokens of the package.
        world: The name of the world.
        counter: Counts the tokens of the rendered text.

    Raises:
        ContextBudgetError: The instructions do not fit.
    """

    def fits(number: int) -> bool:
        text = render_pages(last_dropped[:number], world=world)
        return counter.count(text) <= limit_tokens

    # The page that is dropped first comes last. Instructions, which are never dropped, come first.
    order = (*DROP_ORDER, "instructions")
    last_dropped = sorted(pages, key=lambda one: -order.index(one.bucket))
    needed = sum(one.bucket == "instructions" for one in pages)
    if needed and not fits(needed):
        costs = [(one.heading, counter.count(one.text)) for one in last_dropped[:needed]]
        raise ContextBudgetError(limit_tokens, costs)
    over = next((at for at in range(needed, len(pages)) if not fits(at + 1)), len(pages))
    why = f"trimmed: the package would have more than {limit_tokens} tokens with it"
    return (
        tuple(sorted(last_dropped[:over], key=lambda one: BUCKETS.index(one.bucket))),
        tuple(DroppedPage(page=one, why=why) for one in reversed(last_dropped[over:])),
    )


def count_section_tokens(
    pages: Sequence[PackedPage], *, world: str, counter: TokenCounter
) -> dict[str, int]:
    """Return the tokens of each section that has pages, by name of the section."""
    texts = {bucket: render_pages(pages, world=world, buckets=(bucket,)) for bucket in BUCKETS}
    return {bucket: counter.count(text) for bucket, text in texts.items() if text}


def place_package(package: Package, system_prompt: str, placement: Placement) -> tuple[str, str]:
    """Return the system text and the text before the task, with the chosen pages put into them."""
    if placement == "prepend":
        return _joined(package.render(), system_prompt), ""
    instructions, *rest = BUCKETS
    return _joined(package.render(instructions), system_prompt), package.render(*rest)


def _joined(*texts: str) -> str:
    return "\n\n".join(filter(None, texts))
