"""Writing tasks, the requests that context assembly makes, and the trace of its fifteen steps.

The assembly chooses wiki pages for a task and does no I/O. It yields these requests, and its caller
sends it the answers: from backends, from models, or from a dict in tests.

If the viewer may not see a page or a hit, the caller leaves it out or answers `Hidden`, which the
trace reports. If a backend cannot be read, its error ends the assembly.
"""

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from pydantic import BaseModel

from evennia_ai.engine.knowledge.pages.page import Namespace, Page, PageName
from evennia_ai.engine.prompt.messages import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class LoreTask:
    """A task for the model that writes a page, in the words of the author."""

    text: str
    type_override: str = ""
    """The key of the task type; "" to have the type determined.

    With a key, neither the pre-check nor the planner is used.
    """
    custom_pages: tuple[PageName, ...] = ()
    """Wiki pages that are always chosen, and come before all other encyclopedia pages."""
    world: str = ""
    """The name of the world; "" means the name that the config page gives."""


STEPS: Final = (
    *("Load Instructions:Config", "Fast pre-check", "Planner", "World Bible", "Core instructions"),
    *("Resolve requires", "Encyclopedia pages", "Linked pages", "Sources", "Talk sections"),
    *("Wikipedia", "Deduplicate", "Rank", "Trim", "Serialise"),
)
"""The names of the steps of context assembly. The first step has the number 1."""


@dataclass(slots=True)
class Trace:
    """The log of context assembly for one task: a line for each step, and all warnings."""

    steps: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def log_step(self, number: int, what: str) -> None:
        """Add what step `number` did to the trace."""
        self.steps.append(f"{number}. {STEPS[number - 1]}: {what}")

    def warn(self, *warnings: str) -> None:
        """Add warnings to the trace. Each text is added only once."""
        self.warnings.extend(one for one in dict.fromkeys(warnings) if one not in self.warnings)


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fetch:
    """A request for wiki pages by name.

    Answer: for each name a `Page`, None or `Hidden`.
    """

    names: tuple[PageName, ...]


@dataclass(frozen=True, slots=True)
class PageSearch:
    """A request for the wiki pages that match a query.

    Answer: `Hit`s or `Hidden`, best first.
    """

    query: str
    namespaces: tuple[Namespace, ...]
    limit: int


@dataclass(frozen=True, slots=True)
class Links:
    """A request for the links of wiki pages.

    Answer: for each name a sequence of `PageName`.
    """

    names: tuple[PageName, ...]


@dataclass(frozen=True, slots=True)
class ListTitles:
    """A request for the titles of all pages in a namespace.

    Answer: `PageName`s in the order of their titles.
    """

    namespace: Namespace


@dataclass(frozen=True, slots=True)
class AskPlanner:
    """A request to ask the planner model for a plan of the task.

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
"""A part of context assembly that yields requests and returns a value of type T."""


@dataclass(frozen=True, slots=True)
class Hidden:
    """The answer for a wiki page that exists but that the viewer may not read."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The answer if a plan or a Wikipedia introduction could not be obtained."""

    why: str


class Article(Protocol):
    """The introduction of a Wikipedia article, as plain text."""

    @property
    def title(self) -> str: ...

    @property
    def text(self) -> str: ...


def missing_page_warning(name: PageName) -> str:
    """Return the warning that a wiki page does not exist, or that the viewer may not see it.

    The sentence is the same in both cases, so it does not reveal that a hidden page exists.
    """
    return f"there is no page {name} that may be read here"


def fetch_pages(names: Sequence[PageName], trace: Trace) -> Step[list[Page | None]]:
    """Fetch wiki pages by name. The result has None for each missing or hidden page.

    A warning names each hidden page, because the author of the task knew its name already.
    """
    if not names:
        return []
    answer = yield Fetch(tuple(names))
    hidden = (name for name, page in zip(names, answer, strict=True) if isinstance(page, Hidden))
    trace.warn(*map(missing_page_warning, hidden))
    return [page if isinstance(page, Page) else None for page in answer]


def fetch_listed_pages(names: Sequence[PageName], trace: Trace) -> Step[list[Page]]:
    """Fetch the wiki pages that a backend listed, without duplicates.

    A warning tells only how many of them are hidden, because a title may be a secret.
    """
    if not names:
        return []
    answer = yield Fetch(tuple(names))
    if hidden := sum(isinstance(page, Hidden) for page in answer):
        trace.warn(f"{hidden} of the listed pages may not be read here")
    return distinct_pages(page if isinstance(page, Page) else None for page in answer)


def distinct_pages(pages: Iterable[Page | None]) -> list[Page]:
    """Return the existing wiki pages without duplicates. Two titles may lead to one page."""
    return list({page.name: page for page in pages if page is not None}.values())


def page_names(pages: Iterable[Page]) -> str:
    """Join the names of wiki pages for a line of the trace; "none" if there are none."""
    return ", ".join(page.name.full for page in pages) or "none"
