"""Expansion: components become pieces, or verdicts that say why not.

A component that is asked again with the same values gives the same piece, with its message, its
tokens and its verdict: a turn renders and counts only what changed.

Variables go from one component to the next in the order of the list, ID and then key, also through
those that stand in the history and those that give no text. What a component did to them is kept
with what it gave: while all it reads is as it was, neither is done again. The work of its macros
goes the same way: all texts share what one turn may do (`templates.work`).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from evennia_ai.engine.foreign.fields import plain_form
from evennia_ai.engine.prompt.carried import (
    Carried,
    Changed,
    Effect,
    Store,
)
from evennia_ai.engine.prompt.compiled import DISABLED, CompiledComponent, Fields, Filling, Layout
from evennia_ai.engine.prompt.components import (
    PLUGGABLE_IDS,
    STATIC_COMPONENTS,
    PromptComponent,
)
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.pieces import Joint, Piece
from evennia_ai.engine.prompt.settled import SaidSources, UnsettledComponents, unsettled_components
from evennia_ai.engine.prompt.templates.value_names import OF_THE_MOMENT
from evennia_ai.engine.prompt.tokens import TokenCounter
from evennia_ai.engine.prompt.trace import Verdict, not_expanded

# Components that stand for a place: several texts share their message.
_LORE_JOINTS = ("world_info_before", "world_info_after")
Side = Literal["before", "after"]
_BESIDE: Final[Mapping[Side, str]] = {"before": "!", "after": "~"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listed:
    """A set of components as it is written, with what its context switches off."""

    listed: tuple[PromptComponent, ...] = ()
    context: str = ""
    off: tuple[str, ...] = ()


class ComponentSet:
    """All components of one view, compiled: what a turn is composed from.

    Made once for each registry snapshot, NPC and context, shared by its turns. `off` are the keys
    that the context called `context` switches off.
    """

    __slots__ = (
        *("_listed", "_next_to", "_off", "_unsettled", "compiled", "context", "fields", "joints"),
        *("names_moment", "off"),
    )

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
        self.fields = Fields(
            {m.component.key: (m.component, m.template) for m in self.compiled.members}
        )
        self.names_moment = self.compiled.names_moment or self.fields.names_moment
        """Whether any text names what was said last or the time, one of a field among them."""
        self._next_to: dict[tuple[str, Side], Joint | None] = {}
        self._unsettled: tuple[SaidSources, UnsettledComponents] | None = None

    def unsettled(self, lore: SaidSources) -> UnsettledComponents:
        """Return which components depend on what is said; `lore` are the sources in their books."""
        known = self._unsettled
        if known is None or known[0] != lore:
            found = unsettled_components(self.compiled.members, self.fields, lore)
            known = self._unsettled = (lore, found)
        return known[1]

    __get_pydantic_core_schema__ = plain_form(
        lambda: _Listed,
        written=lambda components: _Listed(
            listed=tuple(member.component for member in components.compiled.members),
            context=components.context,
            off=tuple(sorted(components.off)),
        ),
        made=lambda it: ComponentSet(it.listed, context=it.context, off=frozenset(it.off)),
    )

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


class Expanded(NamedTuple):
    """What each member of a list gave, in their order, and the variables that it leaves set."""

    made: Sequence[Piece | Verdict]
    left: Carried


class CompiledComponents:
    """Compiled components that remember what they gave last."""

    __slots__ = (
        "_filled_in",
        "_last",
        "_readers",
        "_rollers",
        "members",
        "names",
        "names_moment",
    )

    def __init__(self, members: Iterable["CompiledComponent"]) -> None:
        self.members = tuple(members)
        self._readers = _readers(self.members)
        self._rollers = [i for i, m in enumerate(self.members) if m.template and m.template.rolls]
        self.names = tuple(self._readers)
        """Of the values that any member's text names."""
        self.names_moment = not OF_THE_MOMENT.isdisjoint(self._readers)
        """Whether any member's text names what was said last, or the time."""
        self._filled_in = [i for i, member in enumerate(self.members) if member.has_macros]
        self._last: _Last | None = None

    def expand(self, filling: Filling) -> Expanded:
        """What each member gives for these values.

        Only members that read a value or a variable which changed since the last call, or that
        roll dice, are asked again.
        """
        last, values = self._last, filling.all_values
        seen = [values.get(name) for name in self.names]
        if last is None or (last.counter, last.layout) != (filling.counter, filling.layout):
            made: list[Piece | Verdict] = [
                _NOT_FILLED_IN if member.has_macros else member.expand(filling, filling.carried)[0]
                for member in self.members
            ]
            walk = self._walked(filling)
        else:
            made = last.made.copy()
            outdated = self._outdated(last, seen, filling.dice)
            walk = self._walked_again(last.walk, outdated, filling)
        for i, one in walk.made.items() if last is None or walk is not last.walk else ():
            made[i] = one
        self._last = _Last(filling.counter, filling.layout, filling.dice, seen, made, walk)
        return Expanded(made, walk.left)

    def _walked_again(self, last: "_Walk", outdated: set[int], filling: Filling) -> "_Walk":
        """What the members with macros give, when they gave `last` the last time."""
        if not outdated and last.before == filling.carried:
            return last
        again = None if last.ran_out else self._walked(filling, last, outdated)
        # Where work runs out, who comes first does it: that is known of a whole walk alone.
        return self._walked(filling) if again is None or again.ran_out else again

    def _walked(
        self, filling: Filling, last: "_Walk | None" = None, outdated: Collection[int] = ()
    ) -> "_Walk":
        """The members with macros, expanded one after the other where that is needed."""
        store, changed = Store(filling.carried), Changed()
        made = {} if last is None else {**last.made}
        effects = {} if last is None else {**last.effects}
        if last is not None:
            changed.since(last.before, filling.carried)
        for i in self._filled_in:
            before = effects.get(i)
            if before is None or i in outdated or (changed and self.members[i].reads_one(changed)):
                made[i], effects[i] = self.members[i].expand(filling, store.now)
                if before is not None:
                    changed.note(before, effects[i])
            elif changed:
                changed.again(before)
            store.take(effects[i])
        ran_out = store.ran_out or store.is_too_much
        return _Walk(filling.carried, made, effects, store.now, ran_out)

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
            for name, old, new in zip(self.names, last.seen, seen, strict=True):
                if old != new:
                    outdated.update(self._readers[name])
        return outdated


_NOT_FILLED_IN: Final = not_expanded("", "not filled in yet")


class _Walk(NamedTuple):
    """What the members with macros gave, by their index, and what each did."""

    before: Carried
    made: Mapping[int, Piece | Verdict]
    effects: Mapping[int, Effect]
    left: Carried
    ran_out: bool


class _Last(NamedTuple):
    """What was given last, and for what; nothing of it is changed afterwards."""

    counter: TokenCounter
    layout: Layout
    dice: Dice
    seen: list[str | None]
    made: list[Piece | Verdict]
    walk: _Walk


def _readers(members: Iterable["CompiledComponent"]) -> dict[str, list[int]]:
    """Name of a value -> indexes of the members that read it."""
    readers: dict[str, list[int]] = {}
    for index, component in enumerate(members):
        for name in component.template.names if component.template else ():
            readers.setdefault(name, []).append(index)
    return readers


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


@lru_cache
def _static(key: str) -> CompiledComponent:
    return CompiledComponent(next(one for one in STATIC_COMPONENTS if one.key == key))
