"""Components: the registry, the changes builders make to it, and what is off in which context.

The rules (free keys and IDs, what a static component refuses) are the pure registry's own: a
change is made on the values first, and the row is written when the values accept it. Two builders
who edit one component: the second is told, nothing is overwritten in silence. Of a context the
newest row counts; a turn keeps what was off in its own, so no row is needed to compose it again.
"""

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from evennia_ai import models
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import (
    ComponentValueError,
    EditConflictError,
    EvenniaAIError,
    NotStoredError,
    StaticComponentError,
    StoreError,
    UnknownComponentError,
)
from evennia_ai.engine.history.records import canonical_json, make_storable
from evennia_ai.engine.prompt.components import GAME, PromptComponent, Scope
from evennia_ai.engine.prompt.contexts import BUILT_IN, PromptContext
from evennia_ai.engine.prompt.prefix_rules import check_before_history
from evennia_ai.engine.prompt.registry import ComponentRegistry, with_statics
from evennia_ai.engine.prompt.templates.template import compile_template
from evennia_ai.engine.prompt.templates.value_names import OUTLET
from evennia_ai.store.core.authoring import Change, Revisions
from evennia_ai.store.core.snapshots import COMPONENTS, Snapshot, changing, value_of

VALUE_FIELDS: Final = tuple(
    f.name for f in fields(PromptComponent) if f.name not in ("scope", "revision")
)
"""What a component says of itself; where it is and how often it changed is the row's."""

# Columns that are named otherwise than the field of the value.
_COLUMNS: Final = {"id": "registry_id"}
_TEXTS: Final = ("name", "description", "content")
# What only the store decides.
_KEPT: Final = ("is_static", "revision")

_revisions: Final = Revisions(models.ComponentRevision)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentRevision(Change):
    """One change of a component: created, updated, removed or reverted."""

    key: str
    scope: Scope
    old: PromptComponent | None
    """None for a creation."""
    new: PromptComponent | None
    """None for a removal."""


def create(component: PromptComponent, *, by: Actor) -> PromptComponent:
    """Store a new component; the component with its revision.

    DuplicateComponentError: its key or ID is taken in its scope. TemplateError: its content is no
    valid template. Custom components are never static.
    """
    if component.is_static:
        raise StaticComponentError(component.key, "created")
    with changing(COMPONENTS, f"creating component '{component.key}'", by=by):
        _load().created(component)
        _check(component)
        return _save(None, component, action="created", by=by)


def update(
    wanted: str | int,
    *,
    by: Actor,
    scope: Scope = GAME,
    seen_revision: int | None = None,
    **fields: Any,
) -> PromptComponent:
    """Replace `fields` of the component with this key or registry ID; the component as it is now.

    `seen_revision` is the revision the editor looked at; EditConflictError says who changed the
    component since. A change that changes nothing gives no revision.
    """
    refused = [name for name in _KEPT if name in fields]
    if refused:
        raise ComponentValueError(refused[0], fields[refused[0]], "left as it is")
    with changing(COMPONENTS, f"changing component '{wanted}'", by=by):
        return _update(wanted, scope, seen_revision, fields, action="updated", by=by)


def remove(
    wanted: str | int, *, by: Actor, scope: Scope = GAME, seen_revision: int | None = None
) -> None:
    """Remove a custom component; its revisions stay, and it can be reverted to one of them.

    EditConflictError: it was changed since `seen_revision`.
    """
    with changing(COMPONENTS, f"removing component '{wanted}'", by=by):
        current = _load()
        current.removed(wanted, scope=scope)
        old = current.get(wanted, scope=scope)
        _refuse_stale(old, seen_revision)
        _record(action="removed", by=by, old=old, new=None)
        models.Component.objects.filter(**_named(old.key, old.scope)).delete()
        registry.all_written()


def revisions(key: str, *, scope: Scope = GAME) -> tuple[ComponentRevision, ...]:
    """All changes of a component, oldest first; also of one that was removed."""
    return tuple(_change(row) for row in _revisions.of(**_named(key, scope)))


def revision(key: str, number: int, *, scope: Scope) -> ComponentRevision:
    """One change; NotStoredError: there is no such number."""
    rows = _revisions.of(**_named(key, scope))
    return _change(_revisions.numbered(rows, number, what=f"component '{key}'"))


def component_then(key: str, number: int, *, scope: Scope) -> PromptComponent:
    """A component as its revision of this number left it.

    NotStoredError: there is no such number, or it is the one that removed the component.
    """
    then = revision(key, number, scope=scope).new
    if then is None:
        raise NotStoredError("component in revision", f"{key} {number}: it removed it")
    return then


def revert(
    key: str,
    number: int,
    *,
    by: Actor,
    scope: Scope = GAME,
    seen_revision: int | None = None,
) -> PromptComponent:
    """Give a component the value of an earlier revision, as a change of its own.

    A component that was removed comes back. NotStoredError: there is no such revision, or it is
    the one that removed the component. EditConflictError: it was changed or removed since
    `seen_revision`, its newest then.
    """
    with changing(COMPONENTS, f"reverting component '{key}'", by=by):
        _revisions.refuse_stale(f"component '{key}'", seen_revision, **_named(key, scope))
        then = component_then(key, number, scope=scope)
        current = _load()
        try:
            current.get(key, scope=scope)
        except UnknownComponentError:
            current.created(then)
            return _save(None, then, action="reverted", by=by)
        fields = {name: getattr(then, name) for name in VALUE_FIELDS}
        return _update(key, scope, None, fields, action="reverted", by=by)


def _update(
    wanted: str | int,
    scope: Scope,
    seen_revision: int | None,
    fields: dict[str, Any],
    *,
    action: str,
    by: Actor,
) -> PromptComponent:
    current = _load()
    old = current.get(wanted, scope=scope)
    _refuse_stale(old, seen_revision)
    new = current.updated(wanted, scope=scope, **fields).get(
        fields.get("key", old.key), scope=scope
    )
    if new == old:
        return old
    _check(new)
    return _save(old, new, action=action, by=by)


def _refuse_stale(old: PromptComponent, seen_revision: int | None) -> None:
    if seen_revision is not None and seen_revision != old.revision:
        by_whom = _revisions.last_changed_by(**_named(old.key, old.scope))
        raise EditConflictError(f"component '{old.key}'", seen_revision, old.revision, by_whom)


def _check(component: PromptComponent) -> None:
    """Refuse what could be stored and never be shown as it was written, or not where it stands."""
    for name in _TEXTS:
        if make_storable(text := getattr(component, name)) != text:
            raise ComponentValueError(name, text, "text without null characters or half pairs")
    compile_template(component.content, trust=component.trust)
    check_before_history(component)


def _save(
    old: PromptComponent | None, new: PromptComponent, *, action: str, by: Actor
) -> PromptComponent:
    number = _record(action=action, by=by, old=old, new=new)
    saved = new.changed(revision=number)
    models.Component.objects.update_or_create(
        **_named(old.key if old else saved.key, saved.scope), defaults=_columns(saved)
    )
    registry.all_written()
    return saved


def _record(
    *, action: str, by: Actor, old: PromptComponent | None, new: PromptComponent | None
) -> int:
    """Write down one change, in the transaction that makes it; the number it got."""
    component = new or old
    assert component is not None
    named = _named(component.key, component.scope)
    number = _revisions.next_number(least=old.revision if old else 0, **named)
    return _revisions.write(
        number, action=action, by=by, old=_as_json(old), new=_as_json(new), **named
    )


def _change(row: models.ComponentRevision) -> ComponentRevision:
    scope = Scope(kind=row.scope_kind, ref=row.scope_ref)
    return value_of(
        ComponentRevision,
        row,
        scope=scope,
        old=_then(row.old, scope, row.number - 1),
        new=_then(row.new, scope, row.number),
    )


def _as_json(component: PromptComponent | None) -> str:
    if component is None:
        return ""
    return canonical_json({name: getattr(component, name) for name in VALUE_FIELDS})


def _then(text: str, scope: Scope, number: int) -> PromptComponent | None:
    """The component of a revision; fields it did not have yet get their defaults."""
    if not text:
        return None
    told: Mapping[str, Any] = json.loads(text)
    known = {name: told[name] for name in VALUE_FIELDS if name in told}
    return PromptComponent(**known, scope=scope, revision=number)


def _named(key: str, scope: Scope) -> dict[str, str]:
    """The columns that say which component is meant, in both tables."""
    return {"scope_kind": scope.kind, "scope_ref": scope.ref, "key": key}


def _columns(component: PromptComponent) -> dict[str, Any]:
    named = {
        _COLUMNS.get(name, name): getattr(component, name) for name in (*VALUE_FIELDS, "revision")
    }
    return {**named, "scope_kind": component.scope.kind, "scope_ref": component.scope.ref}


def _load() -> ComponentRegistry:
    """The registry of the rows; a static component without a row is there all the same."""
    names = (*VALUE_FIELDS, "revision")
    columns = [_COLUMNS.get(name, name) for name in names]
    rows = models.Component.objects.values_list("pk", "scope_kind", "scope_ref", *columns)
    return with_statics([_component(names, *row) for row in rows])


def _component(
    names: tuple[str, ...], pk: int, scope_kind: Any, scope_ref: str, *values: Any
) -> PromptComponent:
    scope = Scope(kind=scope_kind, ref=scope_ref)
    try:
        return PromptComponent(**dict(zip(names, values, strict=True)), scope=scope)
    except EvenniaAIError as error:
        raise StoreError(
            f"row {pk} of the components is not a component: {error};"
            " somebody wrote it past the store: correct it in the database"
        ) from error


registry: Final = Snapshot(COMPONENTS, _load)
"""All components of all scopes; the same object until one is changed."""


def shown_outlets() -> frozenset[str]:
    """The outlets that some component of the game shows, by name."""
    names = (name for c in registry() for name in compile_template(c.content, trust=c.trust).names)
    return frozenset(name.removeprefix(OUTLET) for name in names if name.startswith(OUTLET))


CONTEXTS: Final = "contexts"
CONTEXT_NAMES: Final = tuple(context.name for context in BUILT_IN)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRevision:
    """One change of a context: what was off in it from then on; `changed_at` in epoch seconds."""

    context: str
    number: int
    off: frozenset[str]
    changed_by: str
    changed_at: float


def context(name: str) -> PromptContext:
    """The context of this name; NotStoredError: there is none."""
    for one in contexts():
        if one.name == name:
            return one
    raise NotStoredError("context", name, CONTEXT_NAMES)


def switch_off(name: str, keys: Iterable[str], *, by: Actor) -> PromptContext:
    """Leave exactly the components of these keys out of the prompts of a context.

    What is so already makes no revision. NotStoredError: there is no such context.
    """
    off = frozenset(keys)
    context(name)
    with changing(CONTEXTS, f"changing context '{name}'", by=by):
        rows = models.ContextRevision.objects.filter(context=name).order_by("-number")
        newest = rows.first()
        if (frozenset(json.loads(newest.off)) if newest else frozenset()) != off:
            models.ContextRevision.objects.create(
                context=name,
                number=newest.number + 1 if newest else 1,
                off=canonical_json(sorted(off)),
                changed_by=by.name,
                changed_at=time.time(),
            )
            contexts.all_written()
    return context(name)


def context_revisions(name: str) -> tuple[ContextRevision, ...]:
    """All changes of a context, oldest first."""
    rows = models.ContextRevision.objects.filter(context=name).order_by("number")
    return tuple(value_of(ContextRevision, row, off=frozenset(json.loads(row.off))) for row in rows)


def _load_contexts() -> tuple[PromptContext, ...]:
    """The built-in contexts with what the newest row of each says; others' rows do not count."""
    rows = models.ContextRevision.objects.order_by("number").values_list("context", "off")
    off = {name: frozenset(json.loads(text)) for name, text in rows}
    return tuple(replace(one, off=off.get(one.name, frozenset())) for one in BUILT_IN)


contexts: Final = Snapshot(CONTEXTS, _load_contexts)
"""The contexts in the order in which they are asked; a warm read makes no query."""
