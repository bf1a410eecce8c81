"""Expansion: components become fragments, or verdicts that say why not.

A component that is asked again with the same values gives the same fragment, with its message, its
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

from evennia_ai.engine.errors import TemplateError
from evennia_ai.engine.foreign.fields import plain_form
from evennia_ai.engine.prompt.components import (
    HISTORY_ID,
    PLUGGABLE_IDS,
    STATIC_COMPONENTS,
    PromptComponent,
)
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.filling import Fields, Filling
from evennia_ai.engine.prompt.fragments import (
    DYNAMIC,
    Claim,
    Fragment,
    Layout,
    SharedMessage,
    Tier,
    block_breaks,
    make_fragment,
)
from evennia_ai.engine.prompt.macro_state import (
    NO_EFFECT,
    ChangedVariables,
    Effect,
    MacroState,
    MacroStore,
    describe_variables,
)
from evennia_ai.engine.prompt.prefix_rules import (
    Dependence,
    SpeechSources,
    field_dependences,
    template_dependence,
)
from evennia_ai.engine.prompt.templates.template import Template, Uses, compile_template
from evennia_ai.engine.prompt.templates.value_names import OF_THE_MOMENT
from evennia_ai.engine.prompt.templates.variables import Found
from evennia_ai.engine.prompt.templates.work import COUNTED_A_UNIT
from evennia_ai.engine.prompt.tokens import TokenCounter
from evennia_ai.engine.prompt.trace import Verdict, not_expanded

# Components whose texts yield before any history does, block by block.
_YIELDING = frozenset({"dialogue_examples"})


DISABLED: Final = "disabled"
"""Why a component is left out that its author switched off."""


_ERROR: Final = "template error: "


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

    @property
    def has_macros(self) -> bool:
        """True if filling in its text is work."""
        return self.component.enabled and self.template is not None and self.template.reads

    @property
    def has_variables(self) -> bool:
        """True if its text reads or sets variables."""
        return self.has_macros and self.template is not None and self.template.uses.has_variables

    def reads_one(self, changed: ChangedVariables) -> bool:
        """Whether it reads a variable that is changed."""
        uses = self.template.uses if self.template else Uses()
        contained = self.component.is_contained
        return changed.concerns(uses.reads, reads_any=uses.computes_names, contained=contained)

    def expand_into(self, filling: Filling, store: MacroStore) -> Fragment | Verdict:
        """Return the fragment, or the verdict that says why not; the store takes what it did."""
        made, effect = self.expand(filling, store.now)
        store.take(effect)
        return made

    def expand(self, filling: Filling, state: MacroState) -> tuple[Fragment | Verdict, Effect]:
        """Return the fragment, or the verdict that says why there is none, and what the text did.

        `state` is what the texts before it hand on.
        """
        template, contained = self.template, self.component.is_contained
        if not self.component.enabled:
            return self._no(self._disabled), NO_EFFECT
        if template is None:
            return self._no(f"{_ERROR}{self._problem}"), NO_EFFECT
        claim = self.claim(filling.layout)
        values = filling.values_for(claim.spoken_as, contained=claim.depth is not None)
        if not template.reads:
            return self._fragment(template.source, claim, filling, values), NO_EFFECT
        meter = state.meter(contained=contained)
        variables = state.variables(meter, contained=contained)
        changed: Found = {}
        try:
            text = template.render(
                values,
                filling.dice,
                meter=meter,
                variables=variables,
                kept=values if contained else filling.values_for("system"),
            )
            meter.pay(len(text) // COUNTED_A_UNIT)
        except TemplateError as error:
            made: Fragment | Verdict = self._no(f"{_ERROR}{error}")
        else:
            changed = variables.changed
            made = self._fragment(text, claim, filling, values, describe_variables(variables))
        return made, Effect(changed, meter.spent, contained, meter.ran_out)

    def _fragment(
        self,
        text: str,
        claim: Claim,
        filling: Filling,
        values: Mapping[str, str],
        describe_variables: str = "",
    ) -> Fragment | Verdict:
        """What becomes of the text; `describe_variables` is what else is to be known of it."""
        notes = [describe_variables, self._left_as_written(values)]
        note = "; ".join(filter(None, notes)) if any(notes) else ""
        if not text.strip():
            return self._no(f"empty; {note}" if note else "empty")
        breaks = self._breaks(text, values) if claim.tier is Tier.YIELDING else ()
        return make_fragment(text, claim, counter=filling.counter, note=note, breaks=breaks)

    def _left_as_written(self, values: Mapping[str, str]) -> str:
        unknown = self.template.unknown(values) if self.template else ()
        return f"left as written: {', '.join(unknown)}" if unknown else ""

    def claim(self, layout: Layout) -> Claim:
        """What its text asks for in this layout; most are only ever asked for one."""
        if layout not in self._claims:
            made = _claim(self.component, self.origin, layout, stays=self._stays)
            self._claims[layout] = made
        return self._claims[layout]

    def rolls_before_history(self, layout: Layout) -> bool:
        """True if its dice fall anew in each turn and it is placed before the history.

        What depends on what is said cannot stand there (`evennia_ai.engine.prompt.prefix_rules`).
        """
        component = self.component
        stands_before = component.placement == "ordered" and component.id < HISTORY_ID
        moves = _moves_behind_history(component, layout)
        rolls = self.template is not None and self.template.uses.rolls_each_turn
        return component.enabled and stands_before and not moves and rolls

    def _breaks(self, text: str, values: Mapping[str, str]) -> tuple[int, ...]:
        names = self.template.names if self.template else ()
        return block_breaks(text, filled_in=(values[name] for name in names if name in values))

    def _no(self, reason: str) -> Verdict:
        return not_expanded(self.origin, reason)


def _claim(component: PromptComponent, origin: str, layout: Layout, *, stays: str) -> Claim:
    return Claim(
        origin=origin,
        id=component.id,
        key=component.key,
        role=component.role,
        depth=component.injection_depth if component.placement == "history" else None,
        depth_counts=component.depth_counts,
        order=component.injection_order,
        shared=DYNAMIC if _moves_behind_history(component, layout) else None,
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


class ComponentDependences(NamedTuple):
    """Which components depend on what is said, by index, and what they hand on to notes."""

    members: Mapping[int, Dependence]
    said: SpeechSources
    fields: Mapping[str, Dependence]


def component_dependences(
    members: Iterable[CompiledComponent], fields: Fields, lore: SpeechSources
) -> ComponentDependences:
    """Return which of the components depend on what is said, in the order of the prompt.

    `lore` are the outlets and variables that lore hands to them. A component that depends on what
    is said hands this on to each variable that it sets.
    """
    found: dict[int, Dependence] = {}
    said, of_fields = lore, field_dependences(fields)
    for index, member in enumerate(members):
        if not member.component.enabled or member.template is None:
            continue
        why = template_dependence(member.template, said, fields=of_fields)
        if why is None:
            continue
        found[index] = why
        uses = member.template.uses
        # Text that nobody vouches for hands its variables to its kind alone, inside the history.
        if not member.component.is_contained and (uses.sets or uses.computes_names):
            handed = Dependence(f"component {member.component.key} {why.reason}", why.repeats)
            own = SpeechSources(
                variables=dict.fromkeys(uses.sets, handed),
                any_variable=handed if uses.computes_names else None,
            )
            said = said.merged(own)
    return ComponentDependences(found, said, of_fields)


# Components that stand for a place: several texts share their message.
_LORE_PLACES = ("world_info_before", "world_info_after")


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
        *(
            "_listed",
            "_next_to",
            "_off",
            "_dependences",
            "compiled",
            "context",
            "fields",
            "lore_messages",
        ),
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
        self.lore_messages: Mapping[str, SharedMessage] = {
            key: _lore_message(key, listed) for key in _LORE_PLACES
        }
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
        self._next_to: dict[tuple[str, Side], SharedMessage | None] = {}
        self._dependences: tuple[SpeechSources, ComponentDependences] | None = None

    def dependences(self, lore: SpeechSources) -> ComponentDependences:
        """Return which components depend on what is said; `lore` are the sources in their books."""
        known = self._dependences
        if known is None or known[0] != lore:
            found = component_dependences(self.compiled.members, self.fields, lore)
            known = self._dependences = (lore, found)
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

    def next_to(self, key: str, *, side: Side) -> SharedMessage | None:
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

    def _beside(self, key: str, side: Side) -> SharedMessage | None:
        component = self._listed.get(key)
        if component is None and key not in PLUGGABLE_IDS:
            return None
        if component is not None and component.placement == "history":
            return None
        return SharedMessage(
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

    made: Sequence[Fragment | Verdict]
    left: MacroState


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
            made: list[Fragment | Verdict] = [
                _NOT_FILLED_IN if member.has_macros else member.expand(filling, filling.state)[0]
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
        if not outdated and last.before == filling.state:
            return last
        again = None if last.ran_out else self._walked(filling, last, outdated)
        # Where work runs out, who comes first does it: that is known of a whole walk alone.
        return self._walked(filling) if again is None or again.ran_out else again

    def _walked(
        self, filling: Filling, last: "_Walk | None" = None, outdated: Collection[int] = ()
    ) -> "_Walk":
        """The members with macros, expanded one after the other where that is needed."""
        store, changed = MacroStore(filling.state), ChangedVariables()
        made = {} if last is None else {**last.made}
        effects = {} if last is None else {**last.effects}
        if last is not None:
            changed.since(last.before, filling.state)
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
        return _Walk(filling.state, made, effects, store.now, ran_out)

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

    before: MacroState
    made: Mapping[int, Fragment | Verdict]
    effects: Mapping[int, Effect]
    left: MacroState
    ran_out: bool


class _Last(NamedTuple):
    """What was given last, and for what; nothing of it is changed afterwards."""

    counter: TokenCounter
    layout: Layout
    dice: Dice
    seen: list[str | None]
    made: list[Fragment | Verdict]
    walk: _Walk


def _readers(members: Iterable["CompiledComponent"]) -> dict[str, list[int]]:
    """Name of a value -> indexes of the members that read it."""
    readers: dict[str, list[int]] = {}
    for index, component in enumerate(members):
        for name in component.template.names if component.template else ():
            readers.setdefault(name, []).append(index)
    return readers


def _lore_message(key: str, components: Iterable[PromptComponent]) -> SharedMessage:
    """Where lore of this position stands: at the component of that key, if a builder made one."""
    placed = next((c for c in components if c.key == key), None)
    if placed is None:
        return SharedMessage(
            key=key, id=PLUGGABLE_IDS[key], role="system", block="ordered", separator="\n"
        )
    is_inside = placed.placement == "history"
    return SharedMessage(
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
