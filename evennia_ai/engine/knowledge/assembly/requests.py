"""Tasks, the requests of an assembly, and the trace of its fifteen steps.

The assembly does no I/O. It yields these requests, and its driver sends the answers: from backends,
from models, or in tests from a dict. If the viewer may not see a page or a hit, the driver leaves
it out or answers `Hidden`, which the trace reports. If a backend cannot be read, the driver does
not catch the error, which ends the assembly.
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
    """The key of the task type, or "" to determine the type.

    With a key, the pre-check and the planner are skipped.
    """
    custom_pages: tuple[PageName, ...] = ()
    """Pages that are always included, before all other encyclopedia pages."""
    world: str = ""
    """The name of the world; "" means the name on the config page."""


STEPS: Final = (
    *("Load Instructions:Config", "Fast pre-check", "Planner", "World Bible", "Core instructions"),
    *("Resolve requires", "Encyclopedia pages", "Linked pages", "Sources", "Talk sections"),
    *("Wikipedia", "Deduplicate", "Rank", "Trim", "Serialise"),
)
"""The names of the steps in order. The first step has the number 1."""


@dataclass(slots=True)
class Trace:
    """The log of a running assembly. It is the only value that the steps modify."""

    steps: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def log_step(self, number: int, what: str) -> None:
        """Record the result of step `number`."""
        self.steps.append(f"{number}. {STEPS[number - 1]}: {what}")

    def warn(self, *warnings: str) -> None:
        """Record warnings, each only once."""
        self.warnings.extend(one for one in dict.fromkeys(warnings) if one not in self.warnings)


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fetch:
    """A request for pages by name.

    Answer: for each name a `Page`, None or `Hidden`.
    """

    names: tuple[PageName, ...]


@dataclass(frozen=True, slots=True)
class PageSearch:
    """A request for the pages that match a query.

    Answer: `Hit`s or `Hidden`, best first.
    """

    query: str
    namespaces: tuple[Namespace, ...]
    limit: int


@dataclass(frozen=True, slots=True)
class Links:
    """A request for the links of pages.

    Answer: for each name a sequence of `PageName`.
    """

    names: tuple[PageName, ...]


@dataclass(frozen=True, slots=True)
class ListTitles:
    """A request for the titles of a namespace.

    Answer: `PageName`s in the order of their titles.
    """

    namespace: Namespace


@dataclass(frozen=True, slots=True)
class AskPlanner:
    """A request for a plan.

    Answer: an object of `schema`, the text of the model, or `Failed`.
    """

    messages: tuple[Message, ...]
    schema: type[BaseModel]


@dataclass(frozen=True, slots=True)
class Introduction:
    """A request for the introduction of a Wikipedia article.

    Answer: an `Article`, None or `Failed`.
    """

    entity: str


Request: TypeAlias = Fetch | PageSearch | Links | ListTitles | AskPlanner | Introduction
Step: TypeAlias = Generator[Request, Any, T]
"""A part of the assembly: a generator that yields requests and returns a value of type T."""


@dataclass(frozen=True, slots=True)
class Hidden:
    """The answer for a page that exists but that the viewer may not read."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The answer for a plan or an introduction that could not be obtained."""

    why: str


class Article(Protocol):
    """The introduction of an encyclopedia article, as plain text."""

    @property
    def title(self) -> str: ...

    @property
    def text(self) -> str: ...


def missing_page_warning(name: PageName) -> str:
    """Return the warning about a page that does not exist or that the viewer may not see.

    Both cases have the same sentence, so that the warning does not reveal that a hidden page
    exists.
    """
    return f"there is no page {name} that may be read here"


def fetch_pages(names: Sequence[PageName], trace: Trace) -> Step[list[Page | None]]:
    """Fetch pages by name; the result has None for each page that is missing or hidden.

    The warning about a hidden page contains its name, which the author of the task already knew.
    """
    if not names:
        return []
    answer = yield Fetch(tuple(names))
    hidden = (name for name, page in zip(names, answer, strict=True) if isinstance(page, Hidden))
    trace.warn(*map(missing_page_warning, hidden))
    return [page if isinstance(page, Page) else None for page in answer]


def fetch_listed_pages(names: Sequence[PageName], trace: Trace) -> Step[list[Page]]:
    """Fetch the pages whose names the backend listed, each only once.

    The warning about hidden pages contains only their number, because a title may be a secret.
    """
    if not names:
        return []
    answer = yield Fetch(tuple(names))
    if hidden := sum(isinstance(page, Hidden) for page in answer):
        trace.warn(f"{hidden} of the pages that are listed may not be read here")
    return distinct_pages(page if isinstance(page, Page) else None for page in answer)


def distinct_pages(pages: Iterable[Page | None]) -> list[Page]:
    """Return the existing pages without duplicates, because two titles may lead to one page."""
    return list({page.name: page for page in pages if page is not None}.values())


def page_names(pages: Iterable[Page]) -> str:
    """Join the names of pages for a line of the trace."""
    return ", ".join(page.name.full for page in pages) or "none"
