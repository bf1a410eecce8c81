"""Expansion: components become pieces, or verdicts that say why not.

A component that is asked again with the same values gives the same piece, with its message, its
tokens and its verdict: a turn renders and counts only what changed.
"""

from collections.abc import Iterable, Mapping
from typing import Literal

from evennia_ai.prompt.components import HISTORY_ID, PLUGGABLE_IDS, PromptComponent
from evennia_ai.prompt.dice import Dice
from evennia_ai.prompt.errors import TemplateError
from evennia_ai.prompt.pieces import DYNAMIC, Joint, Piece, Tier, make_piece
from evennia_ai.prompt.template import Template, compile_template
from evennia_ai.prompt.tokens import TokenCounter
from evennia_ai.prompt.trace import Verdict

Layout = Literal["cache", "classic"]

# Components whose texts yield before any history does.
_YIELDING = frozenset({"dialogue_examples"})
# Components that stand for a place: several texts share their message.
_LORE_JOINTS = ("world_info_before", "world_info_after")


class ComponentSet:
    """All components of one view, compiled: what a turn is composed from.

    Made once for each registry snapshot and NPC, shared by its turns.
    """

    __slots__ = ("_off", "components", "joints")

    def __init__(self, components: Iterable[PromptComponent]) -> None:
        listed = sorted(components, key=lambda c: (c.id, c.key))
        self._off = frozenset(c.key for c in listed if not c.enabled)
        self.joints = {key: _lore_joint(key, listed) for key in _LORE_JOINTS}
        self.components = tuple(CompiledComponent(component) for component in listed)

    def is_on(self, key: str) -> bool:
        """Whether the place named `key` takes part; a component that is not there does."""
        return key not in self._off


class CompiledComponent:
    """A component with its template compiled; remembers what it gave last."""

    __slots__ = ("_last", "_problem", "component", "origin", "template", "tier")

    def __init__(self, component: PromptComponent, *, origin: str = "") -> None:
        self.component = component
        self.origin = origin or f"component:{component.key}"
        self.tier = _tier(component)
        self.template: Template | None = None
        self._problem: TemplateError | None = None
        self._last: tuple[object, Piece | Verdict] | None = None
        try:
            self.template = compile_template(component.content, trust=component.trust)
        except TemplateError as error:
            self._problem = error

    def expand(
        self, values: Mapping[str, str], *, dice: Dice, counter: TokenCounter, layout: Layout
    ) -> Piece | Verdict:
        """The piece for these values, or the verdict that says why there is none."""
        template = self.template
        if template is None:
            return self._no(f"template error: {self._problem}")
        seen = (
            [values.get(name) for name in template.names],
            dice if template.rolls else None,
            counter,
            layout,
        )
        last = self._last
        if last is not None and last[0] == seen:
            return last[1]
        made = self._expand(template, values, dice, counter, layout)
        self._last = (seen, made)
        return made

    def _expand(
        self,
        template: Template,
        values: Mapping[str, str],
        dice: Dice,
        counter: TokenCounter,
        layout: Layout,
    ) -> Piece | Verdict:
        component = self.component
        if not component.enabled:
            return self._no("disabled")
        try:
            text = template.render(values, dice)
        except TemplateError as error:
            return self._no(f"template error: {error}")
        if not text.strip():
            return self._no("empty")
        in_history = component.placement == "history"
        moved = moves_behind_history(component, layout)
        unknown = template.unknown(values)
        return make_piece(
            text,
            origin=self.origin,
            component_id=component.id,
            key=component.key,
            role=component.role,
            counter=counter,
            depth=component.injection_depth if in_history else None,
            order=component.injection_order,
            joint=DYNAMIC if moved else None,
            tier=self.tier,
            priority=component.priority,
            revision=component.revision,
            note=f"left as written: {', '.join(unknown)}" if unknown else "",
        )

    def _no(self, reason: str) -> Verdict:
        return Verdict(stage="expand", item=self.origin, kept=False, reason=reason)


def moves_behind_history(component: PromptComponent, layout: Layout) -> bool:
    """Whether a component leaves its ID for the dynamic message, to keep the head unchanged."""
    volatile = component.volatile and component.placement == "ordered"
    return volatile and layout == "cache" and component.id < HISTORY_ID


def _tier(component: PromptComponent) -> Tier:
    if component.required:
        return Tier.REQUIRED
    return Tier.YIELDING if component.key in _YIELDING else Tier.FLEXIBLE


def _lore_joint(key: str, components: Iterable[PromptComponent]) -> Joint:
    """Where lore of this position stands: at the component of that key, if a builder made one."""
    placed = next((c for c in components if c.key == key), None)
    return Joint(
        key=key,
        id=placed.id if placed else PLUGGABLE_IDS[key],
        role=placed.role if placed else "system",
        block="ordered",
        separator="\n",
    )
