"""ComponentRegistry: an immutable set of components with its rules, and contexts that narrow it.

Every change gives a new registry; the store keeps rows in step with it and swaps the snapshot by
one assignment. Keys and IDs are unique inside a scope; between scopes the narrowest wins.

A context says which components take part in which kind of event (`context_for`). It names
components that are off in it, component IDs, overrides and a token budget. Layers stand on each
other (game, NPC, moment) and may only restrict: switch components off, lower the budget, narrow the
tools. How the depth of a component is injected is the same in every context.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, TypeVar

from evennia_ai.errors import (
    ComponentValueError,
    ContextError,
    DuplicateComponentError,
    StaticComponentError,
    UnknownComponentError,
)
from evennia_ai.prompt.budget import BudgetRules, Reserve
from evennia_ai.prompt.components import (
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

# Fields that a static component keeps, and what changing one would be.
_STATIC_KEEPS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "id": "renumbered",
        "key": "renamed",
        "is_static": "made another kind",
        "role": "given another role",
    }
)
# What those keep besides that are places for others.
_PLACES_KEEP: Final[Mapping[str, str]] = MappingProxyType(
    {
        "injection_depth": "injected by depth",
        "placement": "injected by depth",
        "injection_order": "ordered at a depth",
    }
)


@dataclass(frozen=True, slots=True)
class ComponentRegistry:
    """Components in the order of the prompt: by ID, then key."""

    components: tuple[PromptComponent, ...] = ()
    _by_key: Mapping[tuple[Scope, str], PromptComponent] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        ordered = tuple(sorted(self.components, key=_position))
        by_key: dict[tuple[Scope, str], PromptComponent] = {}
        by_id: dict[tuple[Scope, int], PromptComponent] = {}
        for component in self.components:  # as given: a newcomer stands last and is the one refused
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
        """The component of this key or registry ID in `scope`; UnknownComponentError if none."""
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
        """A free ID for a component before the history: a round one behind those of its kind."""
        taken = {one.id for one in self.components if one.scope == scope}
        own = (one.id for one in self.components if not one.is_static and one.id < HISTORY_ID)
        wanted = (max((_FIRST_OWN - _STEP, *own)) // _STEP + 1) * _STEP
        ids = (*range(wanted, HISTORY_ID, _STEP), *range(1, HISTORY_ID))
        free: int | None = next((one for one in ids if one not in taken), None)
        if free is None:
            raise ComponentValueError("id", "", "free; all before the history are taken")
        return free

    def created(self, component: PromptComponent) -> "ComponentRegistry":
        """With one component more; its key and ID must be free in its scope."""
        return ComponentRegistry((*self.components, component))

    def updated(
        self, wanted: str | int, *, scope: Scope = GAME, **fields: Any
    ) -> "ComponentRegistry":
        """With `fields` of one component replaced.

        `scope` says whose component it is and is never changed. Static ones keep their ID, key and
        role; those that are places for others stay where they are, too.
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
        """Without one component; static ones cannot be removed."""
        old = self.get(wanted, scope=scope)
        if old.is_static:
            raise StaticComponentError(old.key, "removed")
        return ComponentRegistry(tuple(c for c in self.components if c is not old))

    def resolved(self, scopes: Iterable[Scope]) -> "ComponentRegistry":
        """What counts where all of `scopes` apply: for each key the narrowest scope's component.

        A narrower component keeps its own ID, so it may stand elsewhere than the wider one.
        """
        wanted = set(scopes) | {GAME}
        best: dict[str, PromptComponent] = {}
        for component in sorted(self.components, key=lambda c: SCOPE_RANK[c.scope.kind]):
            if component.scope in wanted:
                best[component.key] = component
        return _unchecked(tuple(sorted(best.values(), key=_position)))


def with_statics(components: Sequence[PromptComponent]) -> ComponentRegistry:
    """`components` and the static ones that they do not bring themselves."""
    brought = {c.key for c in components if c.scope == GAME}
    missing = [c for c in STATIC_COMPONENTS if c.key not in brought]
    return ComponentRegistry((*components, *missing))


def _position(component: PromptComponent) -> tuple[int, str, int]:
    return component.id, component.key, SCOPE_RANK[component.scope.kind]


def _unchecked(components: tuple[PromptComponent, ...]) -> ComponentRegistry:
    """A registry of components from several scopes, where IDs may meet."""
    registry = object.__new__(ComponentRegistry)
    object.__setattr__(registry, "components", components)
    object.__setattr__(registry, "_by_key", {(c.scope, c.key): c for c in components})
    return registry


T = TypeVar("T")

# Fields of a component a context may override.
OVERRIDABLE: Final = frozenset(
    {"content", "role", "injection_depth", "injection_order", "priority", "required"}
)
# A layer over a base may change these only: nothing that gives a text more weight.
_RESTRICTING: Final = frozenset({"content"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptContext:
    """One profile.

    `events` are the kinds of event it serves, empty for all; where `is_private` it serves those of
    conversations in private alone. `off` are keys of components that are left out; `enabled_ids`
    None means every component; `limit_tokens` None leaves the budget as it is; `tools` None offers
    every tool.
    """

    name: str
    description: str = ""
    events: frozenset[str] = frozenset()
    is_private: bool = False
    off: frozenset[str] = frozenset()
    enabled_ids: frozenset[int] | None = None
    overrides: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    reserves: Mapping[str, Reserve] = field(default_factory=dict)
    limit_tokens: int | None = None
    tools: frozenset[str] | None = None

    def __post_init__(self) -> None:
        for key, fields in self.overrides.items():
            wrong = sorted(set(fields) - OVERRIDABLE)
            if wrong:
                raise ContextError(
                    f"context '{self.name}' overrides {key}.{wrong[0]}, which is not possible;"
                    f" it may override {', '.join(sorted(OVERRIDABLE))}"
                )

    def restricted(self, layer: "PromptContext") -> "PromptContext":
        """This context with `layer` on top, which can take away and never add.

        ContextError: the layer overrides a field that would give a component more weight, or
        reserves room for one.
        """
        if layer.reserves:
            raise ContextError(
                f"layer '{layer.name}' over context '{self.name}' reserves room for"
                f" {', '.join(sorted(layer.reserves))}; a layer may only restrict"
            )
        for key, fields in layer.overrides.items():
            wrong = sorted(set(fields) - _RESTRICTING)
            if wrong:
                raise ContextError(
                    f"layer '{layer.name}' over context '{self.name}' overrides {key}.{wrong[0]};"
                    " a layer may only restrict, and give other content"
                )
        return replace(
            self,
            name=f"{self.name}+{layer.name}",
            off=self.off | layer.off,
            enabled_ids=_both(self.enabled_ids, layer.enabled_ids),
            overrides=_overlaid(self.overrides, layer.overrides),
            limit_tokens=_lower(self.limit_tokens, layer.limit_tokens),
            tools=_both(self.tools, layer.tools),
        )

    def serves(self, event: str, *, private: bool) -> bool:
        """Whether it is the one for an event of this kind, in private or not."""
        return (private or not self.is_private) and (not self.events or event in self.events)

    def applied(self, components: Iterable[PromptComponent]) -> tuple[PromptComponent, ...]:
        """The components as this context wants them; those left out are disabled."""
        return tuple(self._applied(component) for component in components)

    def budget(self, limit_tokens: int) -> BudgetRules:
        """The rules of a prompt of at most `limit_tokens`; the context may ask for fewer."""
        lower = _lower(self.limit_tokens, limit_tokens)
        assert lower is not None  # one of the two is a number
        return BudgetRules(limit_tokens=lower, reserves=self.reserves)

    def _applied(self, component: PromptComponent) -> PromptComponent:
        fields = dict(self.overrides.get(component.key, {}))
        is_out = self.enabled_ids is not None and component.id not in self.enabled_ids
        if is_out or component.key in self.off:
            fields["enabled"] = False
        return component.changed(**fields) if fields else component


AUTONOMOUS: Final = PromptContext(
    name="autonomous",
    description="Time passes and the NPC may act by itself.",
    events=frozenset({"tick"}),
)
WHISPER: Final = PromptContext(
    name="whisper",
    description="Somebody speaks to the NPC in private.",
    is_private=True,
)
CONVERSATION: Final = PromptContext(
    name="conversation",
    description="Somebody speaks or does something before everybody.",
)
BUILT_IN: Final = (AUTONOMOUS, WHISPER, CONVERSATION)
"""In the order in which they are asked: the last one serves what none before it does."""


def context_for(
    event: str, contexts: Sequence[PromptContext] = BUILT_IN, *, private: bool = False
) -> PromptContext:
    """The first context that serves this kind of event; ContextError if none does."""
    for context in contexts:
        if context.serves(event, private=private):
            return context
    names = ", ".join(context.name for context in contexts)
    raise ContextError(f"no context serves events of kind '{event}'; there are {names}")


def _both(first: frozenset[T] | None, second: frozenset[T] | None) -> frozenset[T] | None:
    if first is None or second is None:
        return second if first is None else first
    return first & second


def _lower(first: int | None, second: int | None) -> int | None:
    given = [limit for limit in (first, second) if limit is not None]
    return min(given) if given else None


def _overlaid(
    base: Mapping[str, Mapping[str, Any]], layer: Mapping[str, Mapping[str, Any]]
) -> Mapping[str, Mapping[str, Any]]:
    """The base's overrides with the layer's texts over them."""
    keys = dict.fromkeys((*base, *layer))
    return {key: {**base.get(key, {}), **layer.get(key, {})} for key in keys}
