"""PromptContext: which components take part in which kind of event.

The built-in contexts are conversation, whisper and autonomous; `context_for` picks one. A context
names components that are off in it, component IDs, overrides and a token budget. Layers are put
over each other (game, NPC, moment) and may only restrict: switch components off, lower the budget,
narrow the tools. The depth of a component is injected in the same way in every context.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from evennia_ai.engine.errors import ContextError
from evennia_ai.engine.prompt.budget import BudgetRules, Reserve
from evennia_ai.engine.prompt.components import PromptComponent

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
