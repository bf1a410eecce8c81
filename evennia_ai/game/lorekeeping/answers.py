"""Answers of the lorekeeper: what it wrote, what it was shown, and which drafts came of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evennia_ai.knowledge.assembly.packages import Package


@dataclass(frozen=True, slots=True, kw_only=True)
class LorekeeperAnswer:
    """What came of a task.

    `text` is what the generator wrote, `drafts` are the numbers of the pages in it, which wait for
    a builder. `context_meta` tells, as JSON, what the generator was shown and why; it is there
    whatever way the task went, also where no package was assembled. `notes` say what of the answer
    was of no use. `number` is that of the stored task.
    """

    base: str
    task: str
    text: str
    context_meta: Mapping[str, Any]
    package: Package
    number: int
    drafts: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def draft(self) -> int | None:
        """The number of the first draft, None where the answer has no page."""
        return self.drafts[0] if self.drafts else None
