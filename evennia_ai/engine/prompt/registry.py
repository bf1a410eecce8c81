"""The registry: an immutable set of all components of a game, with the rules for changing them.

Each change returns a new registry. The store updates its rows accordingly and then replaces the old
registry in one assignment. Keys and IDs are unique inside a scope. If several scopes have a
component with the same key, the narrowest scope wins.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from evennia_ai.engine.errors import (
    ComponentValueError,
    DuplicateComponentError,
    StaticComponentError,
    UnknownComponentError,
)
from evennia_ai.engine.prompt.components import (
    GAME,
    HISTORY_ID,
    PLACES,
    SCOPE_RANK,
    STATIC_COMPONENTS,
    PromptComponent,
    Scope,
    is_plain_int,
)

_FIRST_OWN: Final = 1200
_STEP: Final = 10

# The fields of a static component that cannot be changed, with a verb for error messages
_STATIC_KEEPS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "id": "renumbered",
        "key": "renamed",
        "is_static": "made another kind",
        "role": "given another role",
    }
)
# Further fields that cannot be changed in components that mark places for other texts
_PLACES_KEEP: Final[Mapping[str, str]] = MappingProxyType(
    {
        "injection_depth": "injected by depth",
        "placement": "injected by depth",
        "injection_order": "ordered at a depth",
    }
)


@dataclass(frozen=True, slots=True)
class ComponentRegistry:
    """The components of a game, immutable, in the order of the prompt: by ID, then key."""

    components: tuple[PromptComponent, ...] = ()
    _by_key: Mapping[tuple[Scope, str], PromptComponent] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        ordered = tuple(sorted(self.components, key=_position))
        by_key: dict[tuple[Scope, str], PromptComponent] = {}
        by_id: dict[tuple[Scope, int], PromptComponent] = {}
        for (
            component
        ) in self.components:  # check in the given order, so that the later duplicate is refused
            taken = by_key.setdefault((component.scope, component.key), component)
            if taken is not component:
                raise DuplicateComponentError("key", component.key, taken.key)
            taken = by_id.setdefault((component.scope, component.id), component)
            if taken is not component:
                raise DuplicateComponentError("id", component.id, taken.key)
        object.__setattr__(self, "components", ordered)
        object.__setattr__(self, "_by_key", by_key)

    def __iter__(self) -> Iterator[PromptComponent]:
        return iter(self.components)

    def __len__(self) -> int:
        return len(self.components)

    def get(self, wanted: str | int, *, scope: Scope = GAME) -> PromptComponent:
        """Return the component with this key or registry ID.

        Raises:
            UnknownComponentError: the scope has no such component.
        """
        if isinstance(wanted, str):
            found = self._by_key.get((scope, wanted))
            if found is not None:
                return found
            wanted = int(wanted) if wanted.isdecimal() and wanted.isascii() else wanted
        if is_plain_int(wanted):
            for component in self.components:
                if component.id == wanted and component.scope == scope:
                    return component
        known = [c.key for c in self.components if c.scope == scope]
        raise UnknownComponentError(wanted, known, where="" if scope == GAME else str(scope))

    def free_id(self, scope: Scope = GAME) -> int:
        """Return a free component ID before the history: a multiple of 10 after the builders' IDs.

        Raises:
            ComponentValueError: all IDs are taken.
        """
        taken = {one.id for one in self.components if one.scope == scope}
        own = (one.id for one in self.components if not one.is_static and one.id < HISTORY_ID)
        wanted = (max((_FIRST_OWN - _STEP, *own)) // _STEP + 1) * _STEP
        ids = (*range(wanted, HISTORY_ID, _STEP), *range(1, HISTORY_ID))
        free: int | None = next((one for one in ids if one not in taken), None)
        if free is None:
            raise ComponentValueError("id", "", "free; all before the history are taken")
        return free

    def created(self, component: PromptComponent) -> "ComponentRegistry":
        """Return a copy of the registry with one more component.

        Raises:
            DuplicateComponentError: the scope already has a component with this key or ID.
        """
        return ComponentRegistry((*self.components, component))

    def updated(
        self, wanted: str | int, *, scope: Scope = GAME, **fields: Any
    ) -> "ComponentRegistry":
        """Return a copy of the registry with fields of one component replaced.

        Args:
            wanted: The key or the registry ID.
            scope: The component's scope, which never changes.
            fields: The new values.

        Raises:
            StaticComponentError: the ID, key and role of a static component cannot be changed, nor
                the place of a component that is a place for other texts.
        """
        old = self.get(wanted, scope=scope)
        if old.is_static:
            keeps = {**_STATIC_KEEPS, **(_PLACES_KEEP if old.id in PLACES else {})}
            for name, action in keeps.items():
                if name in fields and fields[name] != getattr(old, name):
                    raise StaticComponentError(old.key, action)
        new = old.changed(**fields)
        return ComponentRegistry((*(c for c in self.components if c is not old), new))

    def removed(self, wanted: str | int, *, scope: Scope = GAME) -> "ComponentRegistry":
        """Return a copy of the registry without one component.

        Raises:
            StaticComponentError: the component is static, so it cannot be removed.
        """
        old = self.get(wanted, scope=scope)
        if old.is_static:
            raise StaticComponentError(old.key, "removed")
        return ComponentRegistry(tuple(c for c in self.components if c is not old))

    def resolved(self, scopes: Iterable[Scope]) -> "ComponentRegistry":
        """Return a registry with one component for each key: that of the narrowest given scope.

        The component keeps its own ID, so its place may differ from that in a wider scope.
        """
        wanted = set(scopes) | {GAME}
        best: dict[str, PromptComponent] = {}
        for component in sorted(self.components, key=lambda c: SCOPE_RANK[c.scope.kind]):
            if component.scope in wanted:
                best[component.key] = component
        return _unchecked(tuple(sorted(best.values(), key=_position)))


def with_statics(components: Sequence[PromptComponent]) -> ComponentRegistry:
    """Return a registry of `components`, plus the static components that they lack."""
    brought = {c.key for c in components if c.scope == GAME}
    missing = [c for c in STATIC_COMPONENTS if c.key not in brought]
    return ComponentRegistry((*components, *missing))


def _position(component: PromptComponent) -> tuple[int, str, int]:
    return component.id, component.key, SCOPE_RANK[component.scope.kind]


def _unchecked(components: tuple[PromptComponent, ...]) -> ComponentRegistry:
    """Return a registry of components from several scopes, whose IDs may repeat."""
    registry = object.__new__(ComponentRegistry)
    object.__setattr__(registry, "components", components)
    object.__setattr__(registry, "_by_key", {(c.scope, c.key): c for c in components})
    return registry
