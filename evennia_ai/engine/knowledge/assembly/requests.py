"""Tasks, the requests that an assembly makes about them, and the trace of its fifteen steps.

The assembly does no I/O. It yields these, and whoever drives it sends the answers back: from
backends, from models, or in tests from a dict. Where a page or a hit is not for the eyes of who
asks, the driver leaves it out, or answers `Hidden` in its place, which the trace tells. A backend
that cannot be read ends the assembly: the driver lets its error go.
"""

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from pydantic import BaseModel

from evennia_ai.engine.knowledge.pages.page import Namespace, Page, PageName
from evennia_ai.engine.prompt.messages import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class LoreTask:
    """What is to be done, in the words of who asks for it."""

    text: str
    type_override: str = ""
    """The key of a task type, which neither the pre-check nor the planner then decides."""
    custom_pages: tuple[PageName, ...] = ()
    """Shown in any case, before all others of the encyclopedia."""
    world: str = ""
    """What the world is called, "" for what the config page says."""


STEPS: Final = (
    *("Load Instructions:Config", "Fast pre-check", "Planner", "World Bible", "Core instructions"),
    *("Resolve requires", "Encyclopedia pages", "Linked pages", "Sources", "Talk sections"),
    *("Wikipedia", "Deduplicate", "Rank", "Trim", "Serialise"),
)
"""The steps in their order; the first has number 1."""


@dataclass(slots=True)
class Trace:
    """Grows while an assembly runs: the one thing that its steps change."""

    steps: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def did(self, number: int, what: str) -> None:
        """Tell what came of step `number`."""
        self.steps.append(f"{number}. {STEPS[number - 1]}: {what}")

    def warn(self, *warnings: str) -> None:
        """Tell what is wrong in the wiki or went wrong, each of it once."""
        self.warnings.extend(one for one in dict.fromkeys(warnings) if one not in self.warnings)


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fetch:
    """The pages of these names. Answer: for each `Page`, None or `Hidden`."""

    names: tuple[PageName, ...]


@dataclass(frozen=True, slots=True)
class PageSearch:
    """The pages that fit a query best. Answer: `Hit`s, best first, or `Hidden` in place of one."""

    query: str
    namespaces: tuple[Namespace, ...]
    limit: int


@dataclass(frozen=True, slots=True)
class Links:
    """What these pages link to. Answer: for each a sequence of `PageName`."""

    names: tuple[PageName, ...]


@dataclass(frozen=True, slots=True)
class Listed:
    """The titles of a namespace. Answer: `PageName`s in the order of their titles."""

    namespace: Namespace


@dataclass(frozen=True, slots=True)
class Plan:
    """Ask the planner model. Answer: an object of `schema`, the text it wrote, or `Failed`."""

    messages: tuple[Message, ...]
    schema: type[BaseModel]


@dataclass(frozen=True, slots=True)
class Introduction:
    """The introduction of a Wikipedia article. Answer: an `Article`, None or `Failed`."""

    entity: str


Request: TypeAlias = Fetch | PageSearch | Links | Listed | Plan | Introduction
Step: TypeAlias = Generator[Request, Any, T]
"""A part of the assembly: it yields requests and comes to a T."""


@dataclass(frozen=True, slots=True)
class Hidden:
    """In place of a page: there is one, and who asks may not read it."""


@dataclass(frozen=True, slots=True)
class Failed:
    """In place of a plan or an introduction: why there is none."""

    why: str


class Article(Protocol):
    """The introduction of an encyclopedia's article, as plain text."""

    @property
    def title(self) -> str: ...

    @property
    def text(self) -> str: ...


def no_page(name: PageName) -> str:
    """Return the warning about a page that is not there, or that the viewer may not see.

    One sentence serves both, so that nobody learns from it whether a hidden page exists.
    """
    return f"there is no page {name} that may be read here"


def read(names: Sequence[PageName], trace: Trace) -> Step[list[Page | None]]:
    """The pages of these names in their order, None for each that is not there or not to be seen.

    A hidden page is a warning; what it is called was known to whoever asked for it.
    """
    if not names:
        return []
    answer = yield Fetch(tuple(names))
    hidden = (name for name, page in zip(names, answer, strict=True) if isinstance(page, Hidden))
    trace.warn(*map(no_page, hidden))
    return [page if isinstance(page, Page) else None for page in answer]


def read_listed(names: Sequence[PageName], trace: Trace) -> Step[list[Page]]:
    """The pages of these names, each once, where the names are the backend's own.

    Of those that may not be seen the number alone is told: a title may be a secret as well.
    """
    if not names:
        return []
    answer = yield Fetch(tuple(names))
    if hidden := sum(isinstance(page, Hidden) for page in answer):
        trace.warn(f"{hidden} of the pages that are listed may not be read here")
    return distinct(page if isinstance(page, Page) else None for page in answer)


def distinct(pages: Iterable[Page | None]) -> list[Page]:
    """The pages that are there, each once: two titles may lead to one."""
    return list({page.name: page for page in pages if page is not None}.values())


def titles(pages: Iterable[Page]) -> str:
    """The names of pages for a line of the trace."""
    return ", ".join(page.name.full for page in pages) or "none"
