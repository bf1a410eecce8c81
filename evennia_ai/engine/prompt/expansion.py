"""Expansion: the text of each component becomes a fragment, or a verdict says why it does not.

A turn expands and counts only components that changed. A component that is expanded again with the
same values returns the same fragment object, with its message, its tokens and its verdict.

Variables are passed from one component to the next in the order of the list (ID, then key),
including components that are placed in the history or give no text. A component whose conditions
are not met gives no text and sets no variables. What a component does to variables is cached with
its fragment. Both are reused as long as everything that the component reads is unchanged. The used
work is passed on in the same way: all texts of a turn share one limit
(`evennia_ai.engine.prompt.templates.work`).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
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
from evennia_ai.engine.prompt.conditions import Facts, parse_conditions, unmet_condition
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.filling import (
    NO_EFFECT,
    ChangedVariables,
    Effect,
    Fields,
    Filling,
    MacroState,
    MacroStore,
    describe_variables,
)
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
from evennia_ai.engine.prompt.prefix_rules import (
    Dependence,
    SpeechSources,
    conditions_dependence,
    field_dependences,
    template_dependence,
)
from evennia_ai.engine.prompt.templates.template import Template, Uses, compile_template
from evennia_ai.engine.prompt.templates.value_names import OF_THE_MOMENT, OUTLET
from evennia_ai.engine.prompt.templates.variables import Variables
from evennia_ai.engine.prompt.templates.work import COUNTED_A_UNIT, PLACED_WORK, Meter
from evennia_ai.engine.prompt.tokens import TokenCounter
from evennia_ai.engine.prompt.trace import Verdict, not_expanded

# If the token budget is short, blocks of these components are left out before any history message.
_YIELDING = frozenset({"dialogue_examples"})


DISABLED: Final = "disabled"
"""The reason in the verdict on a component that its author disabled."""
_ERROR: Final = "template error: "


class CompiledComponent:
    """A component with its compiled template."""

    __slots__ = (
        "_claims",
        "_refused",
        "_stays",
        "component",
        "conditions",
        "has_macros",
        "has_variables",
        "is_contained",
        "origin",
        "rolls",
        "template",
    )

    def __init__(
        self,
        component: PromptComponent,
        *,
        origin: str = "",
        stays: str = "",
        disabled: str = DISABLED,
    ) -> None:
        """Compile the text of a component.

        Args:
            component: The component.
            origin: The name of the text in the trace, `component:<key>` by default.
            stays: The kind of persistent text that the component is; "" if it does not persist.
            disabled: The reason in the verdict if the component is disabled.
        """
        self.component = component
        self.origin = origin or f"component:{component.key}"
        self._stays = stays
        self._claims: dict[Layout, Claim] = {}
        self.template: Template | None = None
        self._refused = None if component.enabled else not_expanded(self.origin, disabled)
        try:
            self.template = compile_template(component.content, trust=component.trust)
        except TemplateError as error:
            self._refused = self._refused or not_expanded(self.origin, f"{_ERROR}{error}")
        text = self.template if component.enabled else None
        self.conditions = parse_conditions(component.when) if text is not None else ()
        self.has_macros = text is not None and text.reads
        """True if the component's text has anything to expand."""
        self.has_variables = text is not None and text.uses.has_variables
        """True if the component's text reads or sets variables."""
        self.rolls = text is not None and text.rolls
        """True if the component's text has random macros."""
        self.is_contained = component.is_contained

    @property
    def reads_later_texts(self) -> bool:
        """True if the text reads variables or outlets, which texts after a note may set."""
        names = self.template.names if self.has_macros and self.template else ()
        return self.has_variables or any(name.startswith(OUTLET) for name in names)

    def why_off(self, facts: Facts) -> str:
        """Return why the component's text is not used now; "" if no condition forbids it."""
        if not self.conditions:
            return ""
        unmet = unmet_condition(self.conditions, facts)
        return f"off now: {unmet}" if unmet else ""

    def dependence(
        self, said: SpeechSources, *, fields: Mapping[str, Dependence]
    ) -> Dependence | None:
        """Return why the component's text depends on what is said or on the moment, or None.

        Args:
            said: The outlets and variables that depend on what is said.
            fields: The fields of the card that depend on what is said, by the name of their value.
        """
        if not self.component.enabled or self.template is None:
            return None
        by_text = template_dependence(self.template, said, fields=fields)
        return by_text or conditions_dependence(self.conditions)

    def reads_any_of(self, changed: ChangedVariables) -> bool:
        """True if the component's text may read one of the changed variables."""
        uses = self.template.uses if self.template else Uses()
        return changed.affect_text(
            uses.reads, reads_any=uses.computes_names, contained=self.is_contained
        )

    def claim(self, layout: Layout) -> Claim:
        """Return the place, role and budget rank that the component's text asks for."""
        known = self._claims.get(layout)
        if known is not None:
            return known
        component = self.component
        tier = Tier.YIELDING if component.key in _YIELDING else Tier.FLEXIBLE
        made = self._claims[layout] = Claim(
            origin=self.origin,
            id=component.id,
            key=component.key,
            role=component.role,
            depth=component.injection_depth if component.placement == "history" else None,
            depth_counts=component.depth_counts,
            order=component.injection_order,
            shared=DYNAMIC if self._moves_after_history(layout) else None,
            tier=Tier.REQUIRED if component.required else tier,
            priority=component.priority,
            revision=component.revision,
            stays=self._stays,
        )
        return made

    def _moves_after_history(self, layout: Layout) -> bool:
        """True if the text moves after the history, so that the provider's cache stays valid."""
        one = self.component
        is_volatile = one.volatile and one.placement == "ordered"
        return is_volatile and layout == "cache" and one.id < HISTORY_ID

    def rolls_before_history(self, layout: Layout) -> bool:
        """True if the text is before the history and its random macros change in each turn.

        Texts that depend on what is said are never placed there. Random macros are allowed,
        because they only make the provider's cache invalid
        (`evennia_ai.engine.prompt.prefix_rules`).
        """
        one = self.component
        is_before = one.placement == "ordered" and one.id < HISTORY_ID
        rolls = self.template is not None and self.template.uses.rolls_each_turn
        return one.enabled and is_before and rolls and not self._moves_after_history(layout)

    def expand_into(self, filling: Filling, store: MacroStore) -> Fragment | Verdict:
        """Expand the component's text, and add the variables it sets and its work to the store.

        Returns:
            The fragment, or the verdict that says why there is none.
        """
        made, effect = self.expand(filling, store.now)
        store.take(effect)
        return made

    def expand(self, filling: Filling, state: MacroState) -> tuple[Fragment | Verdict, Effect]:
        """Expand the component's text.

        Args:
            filling: The values and rules of the turn.
            state: The variables that earlier texts set, and the work that they did.

        Returns:
            The fragment, or the verdict that says why there is none; and the variables that the
            text set with the work that it used.
        """
        contained = self.is_contained
        if self._refused is not None:
            return self._refused, NO_EFFECT
        meter = state.meter(contained=contained)
        if not self.has_variables:
            made = self.fill(filling, meter)
            return made, Effect({}, meter.spent, contained, meter.ran_out)
        variables = state.variables(meter, contained=contained)
        made = self.fill(filling, meter, variables)
        return made, Effect(variables.changed, meter.spent, contained, meter.ran_out)

    def fill(
        self, filling: Filling, meter: Meter, variables: Variables | None = None
    ) -> Fragment | Verdict:
        """Expand the text of an enabled component.

        Args:
            filling: The values and rules of the turn.
            meter: The work that the text may use.
            variables: The variables that the text may read and set.

        Returns:
            The fragment, or the verdict that says why there is none.
        """
        template = self.template
        assert template is not None
        if why := self.why_off(filling.facts):
            return not_expanded(self.origin, why)
        claim = self._claims.get(filling.layout) or self.claim(filling.layout)
        values = filling.values_for(claim.spoken_as, contained=claim.depth is not None)
        text, note = template.source, ""
        if self.has_macros:
            # Any text, also one of role system, may read variables of the game's own texts. So
            # store values in the form that is safe in a system message.
            is_own = variables is not None and not self.is_contained
            kept = filling.values_for("system") if is_own else values
            try:
                text = template.render(
                    values, filling.dice, meter=meter, variables=variables, kept=kept
                )
                meter.pay(len(text) // COUNTED_A_UNIT)
            except TemplateError as error:
                if variables is not None:
                    variables.changed.clear()
                return not_expanded(self.origin, f"{_ERROR}{error}")
            if variables is not None:
                note = describe_variables(variables)
        if unknown := template.unknown(values):
            left = f"left as written: {', '.join(unknown)}"
            note = f"{note}; {left}" if note else left
        if not text.strip():
            return not_expanded(self.origin, f"empty; {note}" if note else "empty")
        breaks: tuple[int, ...] = ()
        if claim.tier is Tier.YIELDING:
            filled_in = (values[name] for name in template.names if name in values)
            breaks = block_breaks(text, filled_in=filled_in)
        return make_fragment(text, claim, counter=filling.counter, note=note, breaks=breaks)


_NOT_FILLED_IN: Final = not_expanded("", "not filled in yet")


class _Walk(NamedTuple):
    """The effects of expanding all components with macros, by index."""

    before: MacroState
    """The variables and the used work before the first component."""
    effects: Mapping[int, Effect]
    left: MacroState
    """The variables and the used work after the last component."""
    ran_out: bool
    """True if a text could not be expanded because no work was left."""


class _Last(NamedTuple):
    """The immutable result of the last expansion, with the inputs that it was made for."""

    counter: TokenCounter
    layout: Layout
    dice: Dice
    seen: list[str | None]
    """The values of the names that the components read."""
    why_off: list[str]
    """Why each component with conditions is not used; "" for one that is."""
    made: list[Fragment | Verdict]
    walk: _Walk


class Expanded(NamedTuple):
    """The fragment or verdict of each component, and the variables and work after the last one."""

    made: Sequence[Fragment | Verdict]
    left: MacroState


class CompiledComponents:
    """A list of compiled components that caches the result of its last expansion."""

    __slots__ = (
        "_conditional",
        "_filled_in",
        "_last",
        "_readers",
        "_rollers",
        "has_variables",
        "members",
        "names",
        "names_moment",
    )

    def __init__(self, members: Iterable[CompiledComponent]) -> None:
        self.members = tuple(members)
        self._readers = _readers(self.members)
        self._rollers = [i for i, member in enumerate(self.members) if member.rolls]
        self.names = tuple(self._readers)
        """The names of the values that texts of the members use."""
        self.names_moment = not OF_THE_MOMENT.isdisjoint(self._readers)
        """True if the text of some member uses the last messages or the time."""
        self._conditional = [i for i, member in enumerate(self.members) if member.conditions]
        self._filled_in = [
            i for i, member in enumerate(self.members) if member.has_macros or member.conditions
        ]
        self.has_variables = any(member.has_variables for member in self.members)
        self._last: _Last | None = None

    def expand(self, filling: Filling) -> Expanded:
        """Expand each component of the list with the values in `filling`.

        Only components that use a changed value, read a changed variable, have random macros or
        have conditions with another result are expanded again.
        """
        last, values = self._last, filling.all_values
        seen = list(map(values.get, self.names))
        why_off = [self.members[i].why_off(filling.facts) for i in self._conditional]
        if last is None or (last.counter, last.layout) != (filling.counter, filling.layout):
            made: list[Fragment | Verdict] = [
                _NOT_FILLED_IN
                if member.has_macros or member.conditions
                else member.expand(filling, filling.state)[0]
                for member in self.members
            ]
            walk = self._expand_in_order(filling, made)
        else:
            made = last.made.copy()
            outdated = self._outdated(last, seen, filling.dice)
            if last.why_off != why_off:
                outdated.update(
                    i
                    for i, was, now in zip(self._conditional, last.why_off, why_off, strict=True)
                    if was != now
                )
            walk = self._expand_outdated(filling, made, last.walk, outdated)
        self._last = _Last(filling.counter, filling.layout, filling.dice, seen, why_off, made, walk)
        return Expanded(made, walk.left)

    def _expand_outdated(
        self, filling: Filling, made: list[Fragment | Verdict], last: _Walk, outdated: set[int]
    ) -> _Walk:
        """Put the new results of components whose text may have changed into `made`."""
        if not outdated and last.before == filling.state:
            return last
        if not last.ran_out:
            expand = self._expand_in_order if self.has_variables else self._expand_apart
            walk = expand(filling, made, last, outdated)
            if not walk.ran_out:
                return walk
        # If the work runs out, the first texts of the order get it. Only expanding all components
        # shows which texts these are, so a partial expansion cannot be used.
        return self._expand_in_order(filling, made)

    def _expand_in_order(
        self,
        filling: Filling,
        made: list[Fragment | Verdict],
        last: _Walk | None = None,
        outdated: Collection[int] = (),
    ) -> _Walk:
        """Expand the components with macros in their order, and put the results into `made`.

        With the results of a `last` expansion, only outdated components and readers of changed
        variables are expanded.
        """
        store, changed = MacroStore(filling.state), ChangedVariables()
        effects = {} if last is None else {**last.effects}
        if last is not None:
            changed.compare_initial_states(last.before, filling.state)
        for i in self._filled_in:
            before = effects.get(i)
            if (
                before is None
                or i in outdated
                or (changed and self.members[i].reads_any_of(changed))
            ):
                made[i], effects[i] = self.members[i].expand(filling, store.now)
                if before is not None:
                    changed.compare_effects(before, effects[i])
            elif changed:
                changed.drop_variables_of(before)
            store.take(effects[i])
        left = store.now
        return _Walk(filling.state, effects, left, store.ran_out or left.is_too_much)

    def _expand_apart(
        self,
        filling: Filling,
        made: list[Fragment | Verdict],
        last: _Walk,
        outdated: Collection[int],
    ) -> _Walk:
        """Expand the outdated components, if no component uses variables.

        Such texts share nothing but the limit of work. All other texts are charged first, so if the
        work is enough here, it is enough in the order of the prompt.
        """
        effects, before, now, left = {**last.effects}, last.before, filling.state, last.left
        work = [  # of trusted texts, and of contained (untrusted) texts
            now.work + left.work - before.work,
            now.work_contained + left.work_contained - before.work_contained,
        ]
        for i in outdated:
            work[effects[i].contained] -= effects[i].work
        meter = Meter(PLACED_WORK - sum(work) - now.work_of_lore)
        for i in sorted(outdated):
            member, unspent = self.members[i], meter.left
            made[i] = member.fill(filling, meter)
            spent, contained = unspent - meter.left, member.is_contained
            work[contained] += spent
            effects[i] = Effect({}, spent, contained, meter.ran_out)
        left = MacroState(now.granted, now.contained, work[0], work[1], now.work_of_lore)
        return _Walk(now, effects, left, meter.ran_out or left.is_too_much)

    def keys_reading(self, name: str) -> tuple[str, ...]:
        """Return the keys of the enabled components whose texts name this value."""
        return tuple(self.members[index].component.key for index in self._readers.get(name, ()))

    def _outdated(self, last: _Last, seen: list[str | None], dice: Dice) -> set[int]:
        """Return the indexes of the components that use a changed value or have random macros."""
        outdated = set(self._rollers) if self._rollers and last.dice != dice else set()
        if last.seen != seen:
            for name, old, new in zip(self.names, last.seen, seen, strict=True):
                if old != new:
                    outdated.update(self._readers[name])
        return outdated


def _readers(members: Iterable[CompiledComponent]) -> dict[str, list[int]]:
    """Return the indexes of the enabled components that use each value, by name of the value.

    The list is empty if only disabled components use the value.
    """
    readers: dict[str, list[int]] = {}
    for index, component in enumerate(members):
        for name in component.template.names if component.template else ():
            users = readers.setdefault(name, [])
            if component.has_macros:
                users.append(index)
    return readers


class ComponentDependences(NamedTuple):
    """The components, outlets, variables and card fields that depend on what is said."""

    members: Mapping[int, Dependence]
    said: SpeechSources
    """The outlets and variables whose values depend on what is said."""
    fields: Mapping[str, Dependence]
    """The fields of the card that depend on what is said."""


def component_dependences(
    members: Iterable[CompiledComponent], fields: Fields, lore: SpeechSources
) -> ComponentDependences:
    """Return the components that depend on what is said in the chat or on the moment, by index.

    Each variable that such a component sets depends on what is said, too.

    Args:
        members: The components in the order of the prompt.
        fields: The fields of the card.
        lore: The outlets and variables of lore that depend on what is said.
    """
    found: dict[int, Dependence] = {}
    said, of_fields = lore, field_dependences(fields)
    for index, member in enumerate(members):
        why = member.dependence(said, fields=of_fields)
        if why is None or member.template is None:
            continue
        found[index] = why
        uses = member.template.uses
        # Contained texts (untrusted, only inside the history) pass variables only to other
        # contained texts. There a text may depend on what is said.
        if not member.is_contained and (uses.sets or uses.computes_names):
            inherited = Dependence(f"component {member.component.key} {why.reason}", why.repeats)
            own = SpeechSources(
                variables=dict.fromkeys(uses.sets, inherited),
                any_variable=inherited if uses.computes_names else None,
            )
            said = said.merged(own)
    return ComponentDependences(found, said, of_fields)


# The components that are places for lore. All entries at such a place share one message.
_LORE_PLACES = ("world_info_before", "world_info_after")


Side = Literal["before", "after"]


_BESIDE: Final[Mapping[Side, str]] = {"before": "!", "after": "~"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listed:
    """The serialised form of a `ComponentSet`."""

    listed: tuple[PromptComponent, ...] = ()
    context: str = ""
    off: tuple[str, ...] = ()


class ComponentSet:
    """The compiled components of one NPC in one context (conversation, whisper, autonomous).

    The set is made once for each registry, NPC and context. All turns share it.
    """

    __slots__ = (
        "_dependences",
        "_listed",
        "_next_to",
        "compiled",
        "context",
        "disabled",
        "fields",
        "lore_messages",
        "names_moment",
        "off",
    )

    def __init__(
        self,
        components: Iterable[PromptComponent],
        *,
        context: str = "",
        off: frozenset[str] = frozenset(),
    ) -> None:
        """Compile the components.

        Args:
            components: The components, in any order.
            context: The name of the context.
            off: The keys of components that the context disables.
        """
        self.context, self.off = context, off
        listed = sorted(components, key=lambda c: (c.id, c.key))
        self.disabled = off.union(c.key for c in listed if not c.enabled)
        """The keys of the components that the context or their author disabled."""
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
        """True if some text, or a card field in it, uses the last messages or the time."""
        self._next_to: dict[tuple[str, Side], SharedMessage | None] = {}
        self._dependences: tuple[SpeechSources, ComponentDependences] | None = None

    def dependences(self, lore: SpeechSources) -> ComponentDependences:
        """Return the components that depend on what is said.

        `lore` has the outlets and variables of lore that depend on what is said.
        """
        known = self._dependences
        if known is None or (known[0] is not lore and known[0] != lore):
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
        """Return the message right before or after the component `key`, for lore and notes.

        Returns None if there is no such component. The places of card fields exist even without a
        component. Next to a component in the history, the message has its depth and order.
        """
        if (key, side) not in self._next_to:
            self._next_to[key, side] = self._message_next_to(key, side)
        return self._next_to[key, side]

    def keys_reading(self, name: str) -> tuple[str, ...]:
        """Return the keys of the enabled components whose texts name this value."""
        return self.compiled.keys_reading(name)

    def needs(self, key: str, name: str) -> bool:
        """True if the component `key` is enabled and its text names the value `name`."""
        return name in self.compiled.names and key in self.compiled.keys_reading(name)

    def _message_next_to(self, key: str, side: Side) -> SharedMessage | None:
        component = self._listed.get(key)
        if component is None and key not in PLUGGABLE_IDS:
            return None
        beside = _message_at(key, component)
        return replace(
            beside,
            key=f"{_BESIDE[side]}{key}",  # this prefix sorts the message before or after `key`
            name=f"the message right {side} {key}",
        )

    def find(self, key: str) -> CompiledComponent | None:
        """Return the component with this key; None if the set has none."""
        return next((one for one in self.compiled.members if one.component.key == key), None)

    def place_of(self, key: str) -> CompiledComponent:
        """Return the static component with this key; its default if the set lacks it."""
        return self.find(key) or _default_component(key)

    def why_off(self, key: str) -> str:
        """Return why the component with this key is disabled, as a reason for verdicts."""
        return f"off in the context {self.context}" if key in self.off else DISABLED

    def is_on(self, key: str) -> bool:
        """True unless the component `key` is disabled. A missing component counts as enabled."""
        return key not in self.disabled


def _lore_message(key: str, components: Iterable[PromptComponent]) -> SharedMessage:
    """Return the one message for all lore entries that are placed next to a card field.

    If a builder's component has the key of the field, the message is next to that component.
    """
    return _message_at(key, next((c for c in components if c.key == key), None))


def _message_at(key: str, placed: PromptComponent | None) -> SharedMessage:
    """Return a message at the place of a component; without a component, of its card field."""
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
def _default_component(key: str) -> CompiledComponent:
    return CompiledComponent(next(one for one in STATIC_COMPONENTS if one.key == key))
