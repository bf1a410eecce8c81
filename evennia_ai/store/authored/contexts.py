"""Contexts: which components builders switched off in each kind of event, and who did.

Every change is a row that says what is off from then on; the newest of a context counts. A turn
keeps what was off in its own context, so none of it is needed to compose it again.
"""

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from evennia_ai import models
from evennia_ai.errors import NotStoredError
from evennia_ai.history.records import canonical_json
from evennia_ai.prompt.registry import BUILT_IN, PromptContext
from evennia_ai.store.core.rows import value_of
from evennia_ai.store.core.snapshots import Snapshots
from evennia_ai.store.core.state import changing

CONTEXTS: Final = "contexts"
NAMES: Final = tuple(context.name for context in BUILT_IN)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRevision:
    """One change of a context: what was off in it from then on; `changed_at` in epoch seconds."""

    context: str
    number: int
    off: frozenset[str]
    changed_by: str
    changed_at: float


def contexts() -> tuple[PromptContext, ...]:
    """The contexts in the order in which they are asked; a warm read makes no query."""
    return _contexts.read(None)


def context(name: str) -> PromptContext:
    """The context of this name; NotStoredError: there is none."""
    for one in contexts():
        if one.name == name:
            return one
    raise NotStoredError("context", name, NAMES)


def switch_off(name: str, keys: Iterable[str], *, by: str) -> PromptContext:
    """Leave exactly the components of these keys out of the prompts of a context.

    What is so already makes no revision. NotStoredError: there is no such context.
    """
    off = frozenset(keys)
    context(name)
    with changing(CONTEXTS, f"changing context '{name}'"):
        rows = models.ContextRevision.objects.filter(context=name).order_by("-number")
        newest = rows.first()
        if (frozenset(json.loads(newest.off)) if newest else frozenset()) != off:
            models.ContextRevision.objects.create(
                context=name,
                number=newest.number + 1 if newest else 1,
                off=canonical_json(sorted(off)),
                changed_by=by,
                changed_at=time.time(),
            )
            _contexts.written(None)
    return context(name)


def revisions(name: str) -> tuple[ContextRevision, ...]:
    """All changes of a context, oldest first."""
    rows = models.ContextRevision.objects.filter(context=name).order_by("number")
    return tuple(value_of(ContextRevision, row, off=frozenset(json.loads(row.off))) for row in rows)


def _load(_: None) -> tuple[PromptContext, ...]:
    """The built-in contexts with what the newest row of each says; others' rows do not count."""
    rows = models.ContextRevision.objects.order_by("number").values_list("context", "off")
    off = {name: frozenset(json.loads(text)) for name, text in rows}
    return tuple(replace(one, off=off.get(one.name, frozenset())) for one in BUILT_IN)


_contexts: Final[Snapshots[None, tuple[PromptContext, ...]]] = Snapshots(CONTEXTS, _load)
