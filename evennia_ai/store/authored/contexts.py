"""Contexts: which components each kind of prompt leaves out.

Contexts are built in, so they have no table of their own. The newest revision of a context has its
current value. Every turn stores the components that its own prompt left out.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from evennia_ai import models
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import NotStoredError
from evennia_ai.engine.history.records import canonical_json
from evennia_ai.engine.prompt.contexts import BUILT_IN, PromptContext
from evennia_ai.store.core.authoring import Change, Revisions
from evennia_ai.store.core.snapshots import Snapshot, changing, value_of

_STATE: Final = "contexts"
CONTEXT_NAMES: Final = tuple(context.name for context in BUILT_IN)


_revisions: Final = Revisions(models.Revision)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRevision(Change):
    """One change of a context. The newest change of each context is the current one."""

    off: frozenset[str]
    """The keys of the components that prompts of the context leave out."""


def context(name: str) -> PromptContext:
    """Return the context with this name.

    Raises:
        NotStoredError: there is none.
    """
    for one in contexts():
        if one.name == name:
            return one
    raise NotStoredError("context", name, CONTEXT_NAMES)


def switch_off(name: str, keys: Iterable[str], *, by: Actor) -> PromptContext:
    """Set which components the prompts of a context leave out: exactly those with these keys.

    Returns:
        The context. If nothing is different, no revision is made.

    Raises:
        NotStoredError: there is no such context.
    """
    off = frozenset(keys)
    context(name)
    with changing(_STATE, f"changing context '{name}'", by=by):
        changes = context_revisions(name)
        if (changes[-1].off if changes else frozenset()) != off:
            _revisions.write(
                _revisions.next_number(kind="context", key=name),
                action="updated",
                by=by,
                kind="context",
                key=name,
                value=canonical_json(sorted(off)),
            )
            contexts.note_any_change()
    return context(name)


def context_revisions(name: str) -> tuple[ContextRevision, ...]:
    """Return all changes of a context, oldest first."""
    rows = _revisions.of(kind="context", key=name)
    return tuple(
        value_of(ContextRevision, row, off=frozenset(json.loads(row.value))) for row in rows
    )


def _load_contexts() -> tuple[PromptContext, ...]:
    """Return the built-in contexts, each with the components that it now leaves out."""
    rows = _revisions.of(kind="context").values_list("key", "value")
    off = {name: frozenset(json.loads(text)) for name, text in rows}
    return tuple(replace(one, off=off.get(one.name, frozenset())) for one in BUILT_IN)


contexts: Final = Snapshot(_STATE, _load_contexts)
"""Return the contexts, in the order in which they are tried.

No query is made if they are in memory.
"""
