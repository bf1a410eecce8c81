"""Components: the registry and the changes that builders make to it.

The rules of the registry (free keys and IDs, the limits of static components) are pure. A change is
first applied to the registry's values. The row is written only if the rules accept it.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from evennia_ai import models
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import (
    ComponentValueError,
    EvenniaAIError,
    StaticComponentError,
    StoreError,
)
from evennia_ai.engine.history.records import make_storable
from evennia_ai.engine.prompt.components import GAME, STATIC_COMPONENTS, PromptComponent, Scope
from evennia_ai.engine.prompt.prefix_rules import check_before_history
from evennia_ai.engine.prompt.registry import ComponentRegistry, with_statics
from evennia_ai.engine.prompt.templates.template import compile_template
from evennia_ai.engine.prompt.templates.value_names import OUTLET
from evennia_ai.store.authored.life_cycle import Kind
from evennia_ai.store.core.snapshots import Snapshot, changing

VALUE_FIELDS: Final = tuple(
    f.name for f in fields(PromptComponent) if f.name not in ("scope", "revision")
)
"""The fields of a component that a revision stores."""
_FIXED: Final = ("key", "is_static", "revision")
"""The fields that no change may set after the component was created."""
# Columns whose names differ from the fields of the value.
_COLUMNS: Final = {"id": "registry_id"}
_TEXTS: Final = ("name", "description", "content")
_STATIC: Final = {component.key: component for component in STATIC_COMPONENTS}


class ComponentKind(Kind[PromptComponent]):
    """The kind "component". A static component exists even without a row."""

    name = "component"
    state = "components"
    table = models.Component
    columns = _COLUMNS

    def from_row(self, row: Any) -> PromptComponent:
        values = {name: getattr(row, _COLUMNS.get(name, name)) for name in VALUE_FIELDS}
        scope = Scope(kind=row.scope_kind, ref=row.scope_ref)
        try:
            return PromptComponent(**values, scope=scope, revision=row.revision)
        except EvenniaAIError as error:
            raise StoreError(
                f"row {row.pk} of the components is not a component: {error};"
                " something other than evennia_ai wrote it: correct it in the database"
            ) from error

    def to_json(self, value: PromptComponent) -> dict[str, Any]:
        return {name: getattr(value, name) for name in VALUE_FIELDS}

    def from_json(self, fields: Mapping[str, Any], row: models.Revision) -> PromptComponent:
        scope = Scope(kind=row.scope_kind, ref=row.scope_ref)
        return PromptComponent(**fields, scope=scope, revision=row.number)

    def refresh(self, key: str, scope: Scope) -> None:
        registry.note_any_change()

    def current(self, key: str, scope: Scope = GAME) -> PromptComponent | None:
        stored = super().current(key, scope)
        return stored or (_STATIC.get(key) if scope == GAME else None)

    def existing(self, key: str, scope: Scope = GAME) -> PromptComponent:
        return self.current(key, scope) or _load().get(key, scope=scope)

    def check(
        self,
        old: PromptComponent | None,
        new: PromptComponent | None,
        *,
        doing: str,
        by: Actor,
    ) -> None:
        if old is not None and new is not None:
            _changed_component(_load(), old, self.to_json(new))
        elif new is not None:
            _new_component(_load(), new)
        elif old is not None:
            _load().removed(old.key, scope=old.scope)


COMPONENTS: Final = ComponentKind()


def create(component: PromptComponent, *, by: Actor) -> PromptComponent:
    """Store a new component, which must not be static.

    Returns:
        The component with its revision.

    Raises:
        DuplicateComponentError: the scope already has a component with this key or ID.
        TemplateError: the content is not a valid template.
    """
    if component.is_static:
        raise StaticComponentError(component.key, "created")
    key, scope = component.key, component.scope
    doing = f"creating {COMPONENTS.called(key, scope)}"
    with changing(COMPONENTS.state, doing, by=by):
        new = _new_component(_load(), component)
        return COMPONENTS.save(key, new, action="created", by=by, scope=scope)


def update(
    wanted: str | int,
    *,
    by: Actor,
    scope: Scope = GAME,
    seen_revision: int | None = None,
    **fields: Any,
) -> PromptComponent:
    """Set fields of a component. Its other fields stay as they are.

    Args:
        wanted: The key or the registry ID.
        seen_revision: See `Kind.refuse_stale`.
        fields: Fields of `PromptComponent`.

    Returns:
        The component. If the values are not new, no revision is made.

    Raises:
        UnknownComponentError: the scope has no such component.
        ComponentValueError: a value is not allowed.
        EditConflictError: somebody changed the component after `seen_revision`.
    """
    refused = [name for name in _FIXED if name in fields]
    if refused:
        raise ComponentValueError(
            refused[0], fields[refused[0]], "no value, because this field cannot be changed"
        )
    doing = f"changing component '{wanted}'"
    with changing(COMPONENTS.state, doing, by=by):
        known = _load()
        old = known.get(wanted, scope=scope)
        COMPONENTS.refuse_stale(old.key, seen_revision, old, scope=scope)
        new = _changed_component(known, old, fields)
        if new == old:
            return old
        return COMPONENTS.save(old.key, new, action="updated", by=by, scope=scope)


def _new_component(known: ComponentRegistry, new: PromptComponent) -> PromptComponent:
    """Return a new component.

    Raises the errors of `create` if the registry or the component's own text does not allow it.
    """
    known.created(new)
    _check_texts(new)
    return new


def _changed_component(
    known: ComponentRegistry, old: PromptComponent, fields: Mapping[str, Any]
) -> PromptComponent:
    """Return a component with changed fields.

    Raises the errors of `update` if the registry or the component's own text does not allow it.
    """
    new = known.updated(old.key, scope=old.scope, **fields).get(old.key, scope=old.scope)
    _check_texts(new)
    return new


def _check_texts(component: PromptComponent) -> None:
    """Check that a component's texts can be stored and that its content fits its position."""
    for name in _TEXTS:
        if make_storable(text := getattr(component, name)) != text:
            raise ComponentValueError(name, text, "text without null characters or lone surrogates")
    compile_template(component.content, trust=component.trust)
    check_before_history(component)


def _load() -> ComponentRegistry:
    """Build the registry from the rows, with default values for static components without a row."""
    return with_statics([COMPONENTS.from_row(row) for row in models.Component.objects.all()])


registry: Final = Snapshot(COMPONENTS.state, _load)
"""Return the components of all scopes.

Every call returns the same object until a component is changed.
"""


def shown_outlets() -> frozenset[str]:
    """Return the names of the lorebook outlets that the game's components contain."""
    names = (name for c in registry() for name in compile_template(c.content, trust=c.trust).names)
    return frozenset(name.removeprefix(OUTLET) for name in names if name.startswith(OUTLET))
