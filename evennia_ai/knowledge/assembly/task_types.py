"""Task types: the kinds of work that a planner tells apart.

A game may change these and add its own on the page Instructions:Config (`config_page.py`); no code
asks for a type by name but for these two, which the pre-check and a failed plan come to.
"""

from dataclasses import dataclass
from typing import Final, Literal, get_args

from evennia_ai.knowledge.titles import PageName

Bypass = Literal["never", "read_only", "always"]
BYPASSES: Final[tuple[Bypass, ...]] = get_args(Bypass)

QUERY: Final = "query"
"""The type of a task that only reads."""

UNKNOWN: Final = "unknown"
"""The type of a task that could not be determined; a package is assembled for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskType:
    """A kind of work.

    `description` is what the planner reads. `instructions` are pages that tasks of this type need,
    beside those whose own metadata names the type. `bypass` says when such a task goes to the
    generator without a package: never, where the planner finds that no page is created or edited
    (`read_only`), or always.
    """

    key: str
    description: str
    instructions: tuple[PageName, ...] = ()
    bypass: Bypass = "never"


TASK_TYPES: Final = (
    TaskType(
        key="create_encyclopedia_article",
        description="Create a new encyclopedia article about an entity, event or concept",
    ),
    TaskType(key="create_source", description="Create a source document that exists in the world"),
    TaskType(key="edit_page", description="Edit or update an existing page"),
    TaskType(
        key="maintenance_report",
        description="Produce a maintenance or audit report",
        bypass="read_only",
    ),
    TaskType(key=QUERY, description="Read-only retrieval of information", bypass="always"),
    TaskType(
        key="batch_operation",
        description="Perform the same operation on several pages",
        bypass="read_only",
    ),
    TaskType(key="stub_expansion", description="Expand a stub or an incomplete article"),
    TaskType(
        key="red_link_generation", description="Create the page that a red link was found to want"
    ),
    TaskType(key=UNKNOWN, description="None of these, or it cannot be determined"),
)
"""The types that every game has, in the order in which the planner reads them."""
