"""Requests: what an assembly needs to know, and the answers that are no plain values.

The assembly does no I/O. It yields these, and whoever drives it sends the answers back: from
backends, from models, or in tests from a dict. Where a page or a hit is not for the eyes of who
asks, the driver leaves it out, or answers `Hidden` in its place, which the trace tells. A backend
that cannot be read ends the assembly: the driver lets its error go.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

from pydantic import BaseModel

from evennia_ai.knowledge.titles import Namespace, PageName
from evennia_ai.prompt.messages import Message

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fetch:
    """The pages of these names. Answer: for each `Page`, None or `Hidden`."""

    names: tuple[PageName, ...]


@dataclass(frozen=True, slots=True)
class Search:
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
class Intro:
    """The introduction of a Wikipedia article. Answer: an `Article`, None or `Failed`."""

    entity: str


Request: TypeAlias = Fetch | Search | Links | Listed | Plan | Intro
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
