"""Tasks, the requests of an assembly, and the trace of its fifteen steps.

The assembly does no I/O. It yields these requests, and its driver sends the answers: from backends,
from models, or in tests from a dict. For a page or a hit that the viewer may not see, the driver
leaves it out or answers `Hidden`, which the trace reports. If a backend cannot be read, the driver
lets its error pass, which ends the assembly.
"""

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from pydantic import BaseModel

from evennia_ai.engine.knowledge.pages.page import Namespace, Page, PageName
from evennia_ai.engine.prompt.messages import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class LoreTask:
    """A task in the words of its author."""

    text: str
    type_override: str = ""
    """The key of a task type. The pre-check and the planner are then skipped."""
    custom_pages: tuple[PageName, ...] = ()
    """Pages to show in any case, before all others of the encyclopedia."""
    world: str = ""
    """The name of the world; "" takes the one of the config page."""


STEPS: Final = (
    *("Load Instructions:Config", "Fast pre-check", "Planner", "World Bible", "Core instructions"),
    *("Resolve requires", "Encyclopedia pages", "Linked pages", "Sources", "Talk sections"),
    *("Wikipedia", "Deduplicate", "Rank", "Trim", "Serialise"),
)
"""The steps in order. The first has number 1."""


@dataclass(slots=True)
class Trace:
    """The log of a running assembly, the only value that its steps change."""

    steps: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def log_step(self, number: int, what: str) -> None:
        """Record the result of step `number`."""
        self.steps.append(f"{number}. {STEPS[number - 1]}: {what}")

    def warn(self, *warnings: str) -> None:
        """Record problems, each only once."""
        self.warnings.extend(one for one in dict.fromkeys(warnings) if one not in self.warnings)


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fetch:
    """Request pages by name. Answer for each name: a `Page`, None or `Hidden`."""

    names: tuple[PageName, ...]


@dataclass(frozen=True, slots=True)
class PageSearch:
    """Request the pages that match a query. Answer: `Hit`s or `Hidden`, best first."""

    query: str
    namespaces: tuple[Namespace, ...]
    limit: int


@dataclass(frozen=True, slots=True)
class Links:
    """Request the links of pages. Answer for each name: a sequence of `PageName`."""

    names: tuple[PageName, ...]


@dataclass(frozen=True, slots=True)
class ListTitles:
    """Request the titles of a namespace. Answer: `PageName`s in the order of their titles."""

    namespace: Namespace


@dataclass(frozen=True, slots=True)
class AskPlanner:
    """Request a plan. Answer: an object of `schema`, the text of the model, or `Failed`."""

    messages: tuple[Message, ...]
    schema: type[BaseModel]


@dataclass(frozen=True, slots=True)
class Introduction:
    """Request the introduction of a Wikipedia article. Answer: an `Article`, None or `Failed`."""

    entity: str


Request: TypeAlias = Fetch | PageSearch | Links | ListTitles | AskPlanner | Introduction
Step: TypeAlias = Generator[Request, Any, T]
"""A part of the assembly: a generator that yields requests and returns a T."""


@dataclass(frozen=True, slots=True)
class Hidden:
    """An answer for a page that exists but that the viewer may not read."""


@dataclass(frozen=True, slots=True)
class Failed:
    """An answer for a plan or an introduction that could not be had."""

    why: str


class Article(Protocol):
    """The introduction of an encyclopedia article, as plain text."""

    @property
    def title(self) -> str: ...

    @property
    def text(self) -> str: ...


def missing_page_warning(name: PageName) -> str:
    """Return the warning about a page that is not there, or that the viewer may not see.

    One sentence serves both, so that nobody learns from it that a hidden page exists.
    """
    return f"there is no page {name} that may be read here"


def fetch_pages(names: Sequence[PageName], trace: Trace) -> Step[list[Page | None]]:
    """Fetch pages by name, None for each that is missing or hidden.

    A hidden page gives a warning with its name, which the author of the task already knew.
    """
    if not names:
        return []
    answer = yield Fetch(tuple(names))
    hidden = (name for name, page in zip(names, answer, strict=True) if isinstance(page, Hidden))
    trace.warn(*map(missing_page_warning, hidden))
    return [page if isinstance(page, Page) else None for page in answer]


def fetch_listed_pages(names: Sequence[PageName], trace: Trace) -> Step[list[Page]]:
    """Fetch the pages of names that the backend listed, without duplicates.

    The warning about hidden pages has only their number, because a title may be a secret.
    """
    if not names:
        return []
    answer = yield Fetch(tuple(names))
    if hidden := sum(isinstance(page, Hidden) for page in answer):
        trace.warn(f"{hidden} of the pages that are listed may not be read here")
    return distinct(page if isinstance(page, Page) else None for page in answer)


def distinct(pages: Iterable[Page | None]) -> list[Page]:
    """Return the pages that exist, without duplicates: two titles may lead to one page."""
    return list({page.name: page for page in pages if page is not None}.values())


def page_names(pages: Iterable[Page]) -> str:
    """Join the names of pages for a line of the trace."""
    return ", ".join(page.name.full for page in pages) or "none"
