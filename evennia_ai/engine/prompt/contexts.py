"""Contexts: which components take part in the prompt for a kind of event.

The built-in contexts are conversation, whisper and autonomous; `context_for` picks one. A context
has the keys of disabled components, component IDs, overrides and a token budget. Layers of the
game, the NPC and the moment are applied over it. A layer may only restrict the context: disable
components, lower the budget, allow fewer tools. The depth of a component means the same in every
context.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from evennia_ai.engine.errors import ContextError
from evennia_ai.engine.prompt.budget import BudgetRules, Reserve
from evennia_ai.engine.prompt.components import PromptComponent

T = TypeVar("T")

# Fields of a component that a context may override
OVERRIDABLE: Final = frozenset(
    {"content", "role", "injection_depth", "injection_order", "priority", "required"}
)
# Fields of a component that a layer may override. None of them gives a text more weight.
_RESTRICTING: Final = frozenset({"content"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptContext:
    """The components, overrides and limits of a prompt that answers some kinds of events."""

    name: str
    description: str = ""
    events: frozenset[str] = frozenset()
    """The kinds of event that the context is for; empty for all kinds."""
    is_private: bool = False
    """True if the context is only for private conversations, such as whispers."""
    off: frozenset[str] = frozenset()
    """The keys of components that are left out."""
    enabled_ids: frozenset[int] | None = None
    """The IDs of the components that take part; None for all components."""
    overrides: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    reserves: Mapping[str, Reserve] = field(default_factory=dict)
    limit_tokens: int | None = None
    """The token limit of the prompt; None for the limit of the game."""
    tools: frozenset[str] | None = None
    """The tools that are offered to the model; None for all tools."""

    def __post_init__(self) -> None:
        for key, fields in self.overrides.items():
            wrong = sorted(set(fields) - OVERRIDABLE)
            if wrong:
                raise ContextError(
                    f"context '{self.name}' overrides {key}.{wrong[0]}, which is not possible;"
                    f" it may override {', '.join(sorted(OVERRIDABLE))}"
                )

    def restricted(self, layer: "PromptContext") -> "PromptContext":
        """Return this context restricted by a layer of the game, the NPC or the moment.

        Raises:
            ContextError: the layer gives a component more weight, or reserves tokens for one.
        """
        if layer.reserves:
            raise ContextError(
                f"layer '{layer.name}' over context '{self.name}' reserves tokens for"
                f" {', '.join(sorted(layer.reserves))}; a layer may only restrict its context"
            )
        for key, fields in layer.overrides.items():
            wrong = sorted(set(fields) - _RESTRICTING)
            if wrong:
                raise ContextError(
                    f"layer '{layer.name}' over context '{self.name}' overrides {key}.{wrong[0]};"
                    " a layer may only restrict its context and override the content of components"
                )
        return replace(
            self,
            name=f"{self.name}+{layer.name}",
            off=self.off | layer.off,
            enabled_ids=_intersect(self.enabled_ids, layer.enabled_ids),
            overrides=_merge_overrides(self.overrides, layer.overrides),
            limit_tokens=_lower_limit(self.limit_tokens, layer.limit_tokens),
            tools=_intersect(self.tools, layer.tools),
        )

    def serves(self, event: str, *, private: bool) -> bool:
        """True if the context is for events of this kind.

        A context for private conversations only is never used if `private` is False.
        """
        return (private or not self.is_private) and (not self.events or event in self.events)

    def applied(self, components: Iterable[PromptComponent]) -> tuple[PromptComponent, ...]:
        """Return the components as the context changes them: with its overrides, or disabled."""
        return tuple(self._apply_overrides(component) for component in components)

    def budget(self, limit_tokens: int) -> BudgetRules:
        """Return the budget for a prompt of `limit_tokens`, or of the context's lower limit."""
        lower = _lower_limit(self.limit_tokens, limit_tokens)
        assert lower is not None  # one of the two limits is always a number
        return BudgetRules(limit_tokens=lower, reserves=self.reserves)

    def _apply_overrides(self, component: PromptComponent) -> PromptComponent:
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
    description="Somebody speaks or acts in public.",
)
BUILT_IN: Final = (AUTONOMOUS, WHISPER, CONVERSATION)
"""The built-in contexts, in the order in which they are tried. The last fits all events."""


def context_for(
    event: str, contexts: Sequence[PromptContext] = BUILT_IN, *, private: bool = False
) -> PromptContext:
    """Return the first of the contexts that is for this kind of event.

    Raises:
        ContextError: no context is for it.
    """
    for context in contexts:
        if context.serves(event, private=private):
            return context
    names = ", ".join(context.name for context in contexts)
    raise ContextError(f"no context serves events of kind '{event}'; there are {names}")


def _intersect(first: frozenset[T] | None, second: frozenset[T] | None) -> frozenset[T] | None:
    if first is None or second is None:
        return second if first is None else first
    return first & second


def _lower_limit(first: int | None, second: int | None) -> int | None:
    given = [limit for limit in (first, second) if limit is not None]
    return min(given) if given else None


def _merge_overrides(
    base: Mapping[str, Mapping[str, Any]], layer: Mapping[str, Mapping[str, Any]]
) -> Mapping[str, Mapping[str, Any]]:
    """Return a context's overrides by component key, updated with those of a layer."""
    keys = dict.fromkeys((*base, *layer))
    return {key: {**base.get(key, {}), **layer.get(key, {})} for key in keys}
