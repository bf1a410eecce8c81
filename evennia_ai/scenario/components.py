"""The components of a scenario: what the file lists, its settings and its card, as one set.

A component without an ID gets a free one. Which one does not depend on its place in the list, so
that a prompt does not depend on the order of `components`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from evennia_ai.errors import ComponentValueError, FormatError, NotYetError
from evennia_ai.prompt.components import (
    GAME,
    MAX_DEPTH,
    PLUGGABLE_IDS,
    SCOPE_RANK,
    STATIC_COMPONENTS,
    PromptComponent,
    is_plain_int,
)
from evennia_ai.prompt.registry import with_statics
from evennia_ai.prompt.templates.template import check_settled
from evennia_ai.scenario.tables import KIND, Table, wrong

FIELDS: Final = (
    *("id", "key", "name", "description", "content", "role", "enabled", "is_static"),
    *("injection_depth", "injection_order", "placement", "volatile", "trust", "priority"),
    *("required", "scope"),
)
COPIED: Final = tuple(name for name in FIELDS if name not in ("id", "key", "is_static", "scope"))
FIRST_FREE_ID: Final = 1201
_STATIC_BY_KEY: Final = {component.key: component for component in STATIC_COMPONENTS}
_STATIC_BY_ID: Final = {component.id: component for component in STATIC_COMPONENTS}


def read_components(rows: Sequence[tuple[str, Any]]) -> tuple[PromptComponent, ...]:
    """The listed components, each with an ID and a key of its own."""
    tables = [_Row(Table(row, path=path, known=FIELDS)) for path, row in rows]
    taken = {row.id for row in tables if row.id is not None}
    free = _free_ids(taken)
    for row in sorted((row for row in tables if row.id is None), key=_Row.rank):
        row.id = next(free, None)
        if row.id is None:
            raise FormatError(KIND, f"{row.table.path}: no ID below 5000 is free; give it one")
    components = tuple(row.component() for row in tables)
    _check_unique(tables, components)
    return components


def component_set(
    listed: Sequence[PromptComponent],
    *,
    settings: Sequence[PromptComponent],
    card: Sequence[PromptComponent],
) -> tuple[PromptComponent, ...]:
    """All components of a scenario: the listed ones, those of its settings, its card, the game.

    A listed component stands for the card's one of the same key. FormatError: two want one ID, one
    key comes from the list and from the settings, or a text is about who speaks where every prompt
    begins with it.
    """
    keys = {component.key for component in listed}
    for component in settings:
        if component.key in keys:
            raise FormatError(
                KIND, f"settings.{component.key} and a component of that key: leave one out"
            )
    keys |= {component.key for component in settings}
    plugged = [component for component in card if component.key not in keys]
    _check_ids(listed, plugged)
    made = [*listed, *settings, *plugged]
    _check_settled(made)
    return tuple(with_statics(made))


def _check_settled(components: Sequence[PromptComponent]) -> None:
    for component in components:
        try:
            check_settled(component)
        except ComponentValueError as error:
            raise FormatError(KIND, f"component '{component.key}': {error}") from error


def _check_ids(listed: Sequence[PromptComponent], plugged: Sequence[PromptComponent]) -> None:
    """The card's components keep their IDs; a listed one may not want one of them."""
    taken = {component.id: component.key for component in plugged}
    for component in listed:
        if component.id in taken:
            raise FormatError(
                KIND,
                f"components: ID {component.id} of '{component.key}' is that of"
                f" '{taken[component.id]}'; take one that is no multiple of 10",
            )


class _Row:
    """One item of the list with the ID it gets."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.key = table.text("key") if "key" in table.data else None
        self.id = table.whole("id", 0) if "id" in table.data else None
        self.base = _base(table, key=self.key, at=self.id)
        if self.id is None:
            self.id = self.base.id if self.base else PLUGGABLE_IDS.get(self.key or "")

    def rank(self) -> tuple[str, str]:
        """What decides who gets the next free ID: nothing but the component itself."""
        return self.key or "", json.dumps(self.table.data, sort_keys=True)

    def component(self) -> PromptComponent:
        fields = {name: self.table.data[name] for name in COPIED if name in self.table.data}
        fields.setdefault("trust", "author")
        depth: Any = fields.get("injection_depth")
        if is_plain_int(depth) and depth > MAX_DEPTH:  # the top of the history all the same
            fields["injection_depth"] = MAX_DEPTH
        try:
            if self.base is not None:
                return self.base.changed(**fields)
            key = self.key if self.key is not None else f"component_{self.id}"
            return PromptComponent(id=self.id or 0, key=key, **fields)
        except ComponentValueError as error:
            raise FormatError(KIND, f"{self.table.path}.{error}") from error


def _base(table: Table, *, key: str | None, at: int | None) -> PromptComponent | None:
    """The static component that a row means by its key or ID; its ID and key cannot be changed."""
    if table.choice("scope", tuple(SCOPE_RANK), GAME.kind) != GAME.kind:
        raise NotYetError("a scope other than game", table.at("scope"))
    base = _STATIC_BY_KEY.get(key or "") or _STATIC_BY_ID.get(-1 if at is None else at)
    is_static = base is not None
    if table.flag("is_static", is_static) is not is_static:
        raise wrong(table.at("is_static"), not is_static, f"{str(is_static).lower()} here")
    if base is not None and (key or base.key, base.id if at is None else at) != (base.key, base.id):
        raise FormatError(
            KIND,
            f"{table.path}: ID {base.id} belongs to the static component '{base.key}', which keeps"
            " its ID and key; take another ID or key",
        )
    return base


def _free_ids(taken: set[int]) -> Iterator[int]:
    """IDs that nobody has; multiples of 10 are the engine's."""
    return (n for n in range(FIRST_FREE_ID, 5000) if n % 10 and n not in taken)


def _check_unique(rows: Sequence[_Row], components: Sequence[PromptComponent]) -> None:
    seen: dict[Mapping[str, object] | object, str] = {}
    for row, component in zip(rows, components, strict=True):
        for field, value in (("id", component.id), ("key", component.key)):
            first = seen.setdefault((field, value), row.table.path)
            if first != row.table.path:
                raise FormatError(
                    KIND, f"{row.table.path}: {field} {value!r} is already taken by {first}"
                )
