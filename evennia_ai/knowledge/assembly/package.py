"""Packages: what an assembly comes to, for the generator and for whoever looks at it."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from evennia_ai.knowledge.assembly.packed import BUCKETS, Bucket, DroppedPage, PackedPage
from evennia_ai.knowledge.assembly.serialising import serialised
from evennia_ai.knowledge.assembly.tasks import Task

TypeFrom = Literal["override", "precheck", "planner", "fallback"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """The pages that go to the generator with a task.

    `type_from` says who determined the task type. A package with a `bypass_reason` has no pages:
    its task goes to the generator as it is. `tokens` has those of each section, `total_tokens`
    those of the whole text, of which there may be `limit_tokens`.
    """

    task: Task
    task_type: str
    type_from: TypeFrom
    entities: tuple[str, ...] = ()
    bypass_reason: str = ""
    world: str = ""
    pages: tuple[PackedPage, ...] = ()
    dropped: tuple[DroppedPage, ...] = ()
    tokens: Mapping[str, int] = field(default_factory=dict)
    total_tokens: int = 0
    limit_tokens: int = 0
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
            "pages": [one.told() for one in self.pages],
            "dropped": [one.told() for one in self.dropped],
            "warnings": list(self.warnings),
            "steps": list(self.steps),
        }
