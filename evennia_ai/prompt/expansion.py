"""Expansion: components become pieces, or verdicts that say why not.

A component that is asked again with the same values gives the same piece, with its message, its
tokens and its verdict: a turn renders and counts only what changed.

What stands before the history is the same from turn to turn, so `check_settled` refuses texts of
the request there: each door through which components come asks it, the store, scenarios, proposed
edits and the import of cards. Dice and outlets of lore may stand there; their authors are told.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from evennia_ai.errors import ComponentValueError, TemplateError
from evennia_ai.prompt.components import (
    DYNAMIC_ID,
    HISTORY_ID,
    PLUGGABLE_IDS,
    STATIC_COMPONENTS,
    PromptComponent,
)
from evennia_ai.prompt.dice import Dice
from evennia_ai.prompt.memo import typed_frozen
from evennia_ai.prompt.messages import Role
from evennia_ai.prompt.names import in_system
from evennia_ai.prompt.pieces import Claim, Joint, Piece, Tier, block_breaks, make_piece
from evennia_ai.prompt.templates.template import Template, compile_template
from evennia_ai.prompt.tokens import SEPARATOR, TokenCounter
from evennia_ai.prompt.trace import Verdict, not_expanded

Layout = Literal["cache", "classic"]
LAYOUTS: Final[tuple[Layout, ...]] = ("cache", "classic")

# Components whose texts yield before any history does, block by block.
_YIELDING = frozenset({"dialogue_examples"})
# Components that stand for a place: several texts share their message.
_LORE_JOINTS = ("world_info_before", "world_info_after")
Side = Literal["before", "after"]
DISABLED: Final = "disabled"
"""Why a component is left out that its author switched off."""

DYNAMIC: Final = Joint(
    key="dynamic_context", id=DYNAMIC_ID, role="user", block="dynamic", separator=SEPARATOR
)
_BESIDE: Final[Mapping[Side, str]] = {"before": "!", "after": "~"}


class ComponentSet:
    """All components of one view, compiled: what a turn is composed from.

    Made once for each registry snapshot, NPC and context, shared by its turns. `off` are the keys
    that the context called `context` switches off.
    """

    __slots__ = ("_listed", "_next_to", "_off", "compiled", "context", "joints", "off")

    def __init__(
        self,
        components: Iterable[PromptComponent],
        *,
        context: str = "",
        off: frozenset[str] = frozenset(),
    ) -> None:
        self.context, self.off = context, off
        listed = sorted(components, key=lambda c: (c.id, c.key))
        self._off = off.union(c.key for c in listed if not c.enabled)
        self.joints = {key: _lore_joint(key, listed) for key in _LORE_JOINTS}
        self.compiled = CompiledComponents(
            CompiledComponent(component, disabled=self.why_off(component.key))
            for component in listed
        )
        self._listed = {component.key: component for component in listed}
        self._next_to: dict[tuple[str, Side], Joint | None] = {}

    def next_to(self, key: str, *, side: Side) -> Joint | None:
        """Where texts stand right before or after the component `key`.

        None where there is no such component, or it stands in the history by its depth. The
        card's own places are there without a component, too.
        """
        if (key, side) not in self._next_to:
            self._next_to[key, side] = self._beside(key, side)
        return self._next_to[key, side]

    def reading(self, name: str) -> tuple[str, ...]:
        """The keys of the components whose texts name a value."""
        return self.compiled.reading(name)

    def needs(self, key: str, name: str) -> bool:
        """Whether the text of the component `key` stands or falls with a value."""
        return self.compiled.reads(name) and key in self.compiled.reading(name)

    def _beside(self, key: str, side: Side) -> Joint | None:
        component = self._listed.get(key)
        if component is None and key not in PLUGGABLE_IDS:
            return None
        if component is not None and component.placement == "history":
            return None
        return Joint(
            key=f"{_BESIDE[side]}{key}",  # sorts before or after the component at the same ID
            id=component.id if component else PLUGGABLE_IDS[key],
            role=component.role if component else "system",
            block="ordered",
            separator="\n",
            name=f"the message right {side} {key}",
        )

    def find(self, key: str) -> "CompiledComponent | None":
        """The component of this key."""
        return next((one for one in self.compiled.members if one.component.key == key), None)

    def place_of(self, key: str) -> "CompiledComponent":
        """The component of this static key, as it is by default where there is none."""
        return self.find(key) or _static(key)

    def why_off(self, key: str) -> str:
        """Why a component of this key is left out, where it is."""
        return f"off in the context {self.context}" if key in self.off else DISABLED

    def is_on(self, key: str) -> bool:
        """Whether the place named `key` takes part; a component that is not there does."""
        return key not in self._off


@typed_frozen
class Filling:
    """What texts are expanded with."""

    dice: Dice
    counter: TokenCounter
    layout: Layout
    values: Mapping[str, str]
    """What templates may name."""
    _in_system: list[Mapping[str, str]] = field(default_factory=list, init=False, compare=False)
    """The same as messages of role system may have it, once it was asked for."""

    def with_values(self, more: Mapping[str, str]) -> "Filling":
        """This with more values."""
        return replace(self, values={**self.values, **more})

    def values_for(self, role: Role) -> Mapping[str, str]:
        """What templates may name in a message of this role."""
        if role != "system":
            return self.values
        if not self._in_system:
            self._in_system.append(in_system(self.values))
        return self._in_system[0]


class CompiledComponents:
    """Compiled components that remember what they gave last."""

    __slots__ = ("_last", "_names", "_readers", "_rollers", "members")

    def __init__(self, members: Iterable["CompiledComponent"]) -> None:
        self.members = tuple(members)
        self._readers = _readers(self.members)
        self._rollers = [i for i, m in enumerate(self.members) if m.template and m.template.rolls]
        self._names = tuple(self._readers)
        self._last: _Last | None = None

    def expand(self, filling: Filling) -> Sequence[Piece | Verdict]:
        """What each member gives for these values, in their order.

        Only members that read a value which changed since the last call, or that roll dice, are
        asked again.
        """
        last = self._last
        seen = [filling.values.get(name) for name in self._names]
        if last is None or (last.counter, last.layout) != (filling.counter, filling.layout):
            made = [member.expand(filling) for member in self.members]
        else:
            made = last.made.copy()
            for i in self._outdated(last, seen, filling.dice):
                made[i] = self.members[i].expand(filling)
        self._last = _Last(filling.counter, filling.layout, filling.dice, seen, made)
        return made

    def reading(self, name: str) -> tuple[str, ...]:
        """The keys of the enabled members whose texts name a value."""
        members = (self.members[index].component for index in self._readers.get(name, ()))
        return tuple(component.key for component in members if component.enabled)

    def reads(self, name: str) -> bool:
        """Whether any member's text names a value."""
        return name in self._readers

    def _outdated(self, last: "_Last", seen: list[str | None], dice: Dice) -> set[int]:
        outdated = set(self._rollers) if self._rollers and last.dice != dice else set()
        if last.seen != seen:
            for name, old, new in zip(self._names, last.seen, seen, strict=True):
                if old != new:
                    outdated.update(self._readers[name])
        return outdated


class _Last(NamedTuple):
    """What was given last, and for what; `made` is never changed afterwards."""

    counter: TokenCounter
    layout: Layout
    dice: Dice
    seen: list[str | None]
    made: list[Piece | Verdict]


def _readers(members: Iterable["CompiledComponent"]) -> dict[str, list[int]]:
    """Name of a value -> indexes of the members that read it."""
    readers: dict[str, list[int]] = {}
    for index, component in enumerate(members):
        for name in component.template.names if component.template else ():
            readers.setdefault(name, []).append(index)
    return readers


class CompiledComponent:
    """A component with its template compiled."""

    __slots__ = ("_claims", "_disabled", "_problem", "_stays", "component", "origin", "template")

    def __init__(
        self,
        component: PromptComponent,
        *,
        origin: str = "",
        stays: str = "",
        disabled: str = DISABLED,
    ) -> None:
        self.component = component
        self._disabled = disabled
        self.origin = origin or f"component:{component.key}"
        self._stays = stays
        self._claims: dict[Layout, Claim] = {}
        self.template: Template | None = None
        self._problem: TemplateError | None = None
        try:
            self.template = compile_template(component.content, trust=component.trust)
        except TemplateError as error:
            self._problem = error

    def expand(self, filling: Filling) -> Piece | Verdict:
        """The piece for these values, or the verdict that says why there is none."""
        component, template = self.component, self.template
        if not component.enabled:
            return self._no(self._disabled)
        if template is None:
            return self._no(f"template error: {self._problem}")
        claim = self.claim(filling.layout)
        values = filling.values_for(claim.spoken_as)
        try:
            text = template.render(values, filling.dice)
        except TemplateError as error:
            return self._no(f"template error: {error}")
        if not text.strip():
            return self._no("empty")
        unknown = template.unknown(values)
        return make_piece(
            text,
            claim,
            counter=filling.counter,
            note=f"left as written: {', '.join(unknown)}" if unknown else "",
            breaks=self._breaks(text, values) if claim.tier is Tier.YIELDING else (),
        )

    def claim(self, layout: Layout) -> Claim:
        """What its text asks for in this layout; most are only ever asked for one."""
        if layout not in self._claims:
            made = _claim(self.component, self.origin, layout, stays=self._stays)
            self._claims[layout] = made
        return self._claims[layout]

    def unsettles(self, layout: Layout) -> bool:
        """Whether what stands before the history would change with it from turn to turn."""
        component = self.component
        stands_before = component.placement == "ordered" and component.id < HISTORY_ID
        moves = _moves_behind_history(component, layout)
        differs = self.template is not None and self.template.differs_by_turn
        return component.enabled and stands_before and not moves and differs

    def _breaks(self, text: str, values: Mapping[str, str]) -> tuple[int, ...]:
        names = self.template.names if self.template else ()
        return block_breaks(text, filled_in=(values[name] for name in names if name in values))

    def _no(self, reason: str) -> Verdict:
        return not_expanded(self.origin, reason)


@lru_cache
def _static(key: str) -> CompiledComponent:
    return CompiledComponent(next(one for one in STATIC_COMPONENTS if one.key == key))


def _claim(component: PromptComponent, origin: str, layout: Layout, *, stays: str) -> Claim:
    return Claim(
        origin=origin,
        id=component.id,
        key=component.key,
        role=component.role,
        depth=component.injection_depth if component.placement == "history" else None,
        order=component.injection_order,
        joint=DYNAMIC if _moves_behind_history(component, layout) else None,
        tier=_tier(component),
        priority=component.priority,
        revision=component.revision,
        stays=stays,
    )


def _moves_behind_history(component: PromptComponent, layout: Layout) -> bool:
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
    if placed is None:
        return Joint(key=key, id=PLUGGABLE_IDS[key], role="system", block="ordered", separator="\n")
    is_inside = placed.placement == "history"
    return Joint(
        key=key,
        id=placed.id,
        role=placed.role,
        block="history" if is_inside else "ordered",
        separator="\n",
        depth=placed.injection_depth if is_inside else None,
        order=placed.injection_order,
    )


_SPEAKER: Final = frozenset({"speaker"})
# Names that others fill with the moment; here they have no value, and would be sent as written.
_MOMENT: Final = frozenset({"time", "date", "weekday", "isotime", "isodate"})


def check_settled(component: PromptComponent) -> None:
    """Refuse a component whose text is about the request where every request begins with it.

    A volatile one moves behind the history, and a disabled one stands nowhere. Imported text knows
    no names of the moment: they stay as they are written, the same in each turn.
    ComponentValueError: it says what the component may not have, and the way out.
    """
    c = component
    if not c.enabled or c.volatile or c.placement == "history" or c.id >= HISTORY_ID:
        return
    names = _SPEAKER if c.trust == "imported" else _SPEAKER | _MOMENT
    found = [name for name in _names_in(c) if name in names]
    if found:
        written = " and ".join(f"{{{{{name}}}}}" for name in found)
        raise ComponentValueError(
            "content",
            c.content,
            f"without {written}, because '{c.key}' (ID {c.id}) stands before the history, which"
            " begins alike in every turn; give it a place behind the history (an ID from"
            f" {HISTORY_ID + 1} on), a depth in it, or make it volatile first",
        )


def _names_in(component: PromptComponent) -> tuple[str, ...]:
    """The names of values in its text; none where it is no template, which is told elsewhere."""
    try:
        return compile_template(component.content, trust=component.trust).names
    except TemplateError:
        return ()
