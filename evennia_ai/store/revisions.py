"""Revisions of components: who changed what, when, from which value to which."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from django.db.models import Max

from evennia_ai import models
from evennia_ai.history.records import canonical_json
from evennia_ai.prompt.components import PromptComponent, Scope
from evennia_ai.store.errors import NotStoredError

# What a component says of itself; where it is and how often it changed is the row's.
VALUE_FIELDS: Final = tuple(
    f.name for f in fields(PromptComponent) if f.name not in ("scope", "revision")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentRevision:
    """One change of a component.

    `action` is created, updated, removed or reverted; `old` is None for a creation, `new` for a
    removal. `changed_at` is in epoch seconds.
    """

    key: str
    scope: Scope
    number: int
    action: str
    changed_by: str
    changed_at: float
    old: PromptComponent | None
    new: PromptComponent | None


def record_revision(
    *, action: str, by: str, old: PromptComponent | None, new: PromptComponent | None
) -> int:
    """Write down one change, in the transaction that makes it; the number it got."""
    component = new or old
    assert component is not None
    number = 1 + max(newest_number(component), old.revision if old else 0)
    models.ComponentRevision.objects.create(
        scope_kind=component.scope.kind,
        scope_ref=component.scope.ref,
        key=component.key,
        number=number,
        action=action,
        changed_by=by,
        changed_at=time.time(),
        old=_json(old),
        new=_json(new),
    )
    return number


def newest_number(component: PromptComponent) -> int:
    """The newest revision number of this key in this scope, removed ones counted."""
    found = _rows(component.key, component.scope).aggregate(newest=Max("number"))
    return found["newest"] or 0


def revisions(key: str, *, scope: Scope) -> tuple[ComponentRevision, ...]:
    """All changes of a component, oldest first; also of one that was removed."""
    return tuple(_value(row) for row in _rows(key, scope).order_by("number"))


def revision(key: str, number: int, *, scope: Scope) -> ComponentRevision:
    """One change; NotStoredError: there is no such number."""
    rows = _rows(key, scope)
    row = rows.filter(number=number).first()
    if row is None:
        known = [str(n) for n in rows.order_by("number").values_list("number", flat=True)]
        raise NotStoredError(f"revision of component '{key}' with number", number, known)
    return _value(row)


def last_changed_by(component: PromptComponent) -> str:
    """Who made the newest change of a component."""
    row = _rows(component.key, component.scope).order_by("-number").first()
    return row.changed_by if row else "somebody"


def _rows(key: str, scope: Scope) -> Any:
    return models.ComponentRevision.objects.filter(
        key=key, scope_kind=scope.kind, scope_ref=scope.ref
    )


def _value(row: models.ComponentRevision) -> ComponentRevision:
    scope = Scope(kind=row.scope_kind, ref=row.scope_ref)
    return ComponentRevision(
        key=row.key,
        scope=scope,
        number=row.number,
        action=row.action,
        changed_by=row.changed_by,
        changed_at=row.changed_at,
        old=_component(row.old, scope, row.number - 1),
        new=_component(row.new, scope, row.number),
    )


def _json(component: PromptComponent | None) -> str:
    if component is None:
        return ""
    return canonical_json({name: getattr(component, name) for name in VALUE_FIELDS})


def _component(text: str, scope: Scope, number: int) -> PromptComponent | None:
    """The component of a revision; fields it did not have yet get their defaults."""
    if not text:
        return None
    told: Mapping[str, Any] = json.loads(text)
    known = {name: told[name] for name in VALUE_FIELDS if name in told}
    return PromptComponent(**known, scope=scope, revision=number)
