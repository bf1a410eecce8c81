"""One component with its template compiled: the piece it gives, or a verdict that says why not.

What a text may name depends on the role it speaks in (`said_last`), and on whether somebody vouches
for it: a field of a card without its grant is given to no text but to one that stands where the
field may stand itself, in the history as a user's. What it sets and reads of variables is handed to
it and handed on (`carried`), and so is the work that is left for the texts of the turn.
"""

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Final, Literal, NamedTuple

from evennia_ai.engine.errors import TemplateError
from evennia_ai.engine.prompt.carried import (
    NO_EFFECT,
    NOTHING_CARRIED,
    Carried,
    Changed,
    Effect,
    Store,
    told,
)
from evennia_ai.engine.prompt.components import (
    DYNAMIC_ID,
    HISTORY_ID,
    PromptComponent,
)
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.memo import typed_frozen
from evennia_ai.engine.prompt.messages import Role
from evennia_ai.engine.prompt.names import in_system
from evennia_ai.engine.prompt.pieces import Claim, Joint, Piece, Tier, block_breaks, make_piece
from evennia_ai.engine.prompt.said_last import with_quotes
from evennia_ai.engine.prompt.templates.template import Template, Uses, compile_template
from evennia_ai.engine.prompt.templates.value_names import FIELDS, OF_THE_MOMENT
from evennia_ai.engine.prompt.templates.variables import Found
from evennia_ai.engine.prompt.templates.work import COUNTED_A_UNIT, FIELDS_WORK, Meter
from evennia_ai.engine.prompt.tokens import SEPARATOR, TokenCounter
from evennia_ai.engine.prompt.trace import Verdict, not_expanded

Layout = Literal["cache", "classic"]

# Components whose texts yield before any history does, block by block.
_YIELDING = frozenset({"dialogue_examples"})
DISABLED: Final = "disabled"
"""Why a component is left out that its author switched off."""
_ERROR: Final = "template error: "

DYNAMIC: Final = Joint(
    key="dynamic_context", id=DYNAMIC_ID, role="user", block="dynamic", separator=SEPARATOR
)


class _Field(NamedTuple):
    template: Template
    contained: bool


# What fields were filled with, and their texts.
_Known = tuple[list[tuple[str, str]], Dice | None, dict[str, str]]


_NO_FIELDS: Final = dict.fromkeys(FIELDS, "")


class Fields:
    """The fields of the card and the persona of a set of components, as values of texts.

    A component that is switched off still has its text: presets put the field elsewhere. A field
    without a text is the empty text.
    """

    __slots__ = ("_fields", "_known", "_names", "_rolls", "names_moment")

    def __init__(self, holders: Mapping[str, tuple[PromptComponent, Template | None]]) -> None:
        self._fields: dict[str, _Field] = {}
        for name, keys in FIELDS.items():
            for component, template in (holders[key] for key in keys if key in holders):
                if template is not None and component.content.strip():
                    self._fields[name] = _Field(template, component.is_contained)
                    break
        templates = [field.template for field in self._fields.values()]
        self._names = sorted({name for template in templates for name in template.names})
        self.names_moment = not OF_THE_MOMENT.isdisjoint(self._names)
        """Whether the text of any names what was said last, or the time."""
        self._rolls = any(template.rolls for template in templates)
        self._known: dict[tuple[bool, Role], _Known] = {}

    @property
    def names(self) -> frozenset[str]:
        """The names of the fields that there are."""
        return frozenset(self._fields)

    @property
    def templates(self) -> dict[str, Template]:
        """The texts of the fields, by the name of their value."""
        return {name: field.template for name, field in self._fields.items()}

    def texts(
        self, values: Mapping[str, str], dice: Dice, *, contained: bool, role: Role
    ) -> dict[str, str]:
        """The fields filled with the values of a role; `contained` for text that may have all."""
        if not self._fields:
            return _NO_FIELDS
        named = [(name, values.get(name, "")) for name in self._names]
        thrown = dice if self._rolls else None
        known = self._known.get((contained, role))
        if known is not None and known[:2] == (named, thrown):
            return known[2]
        meter = Meter(FIELDS_WORK)
        texts = {name: "" for name in FIELDS if name not in self._fields} | {
            name: text
            for name, field in self._fields.items()
            if (contained or not field.contained)
            and (text := _filled(field.template, values, dice, meter)) is not None
        }
        self._known[contained, role] = named, thrown, texts
        return texts


def _filled(template: Template, values: Mapping[str, str], dice: Dice, meter: Meter) -> str | None:
    """Return a field as it reads, None where it cannot be rendered.

    The component that holds the field says why; texts that name it have the name as written.
    """
    try:
        return template.render(values, dice, meter=meter)
    except TemplateError:
        return None


@typed_frozen
class Filling:
    """What texts are expanded with."""

    dice: Dice
    counter: TokenCounter
    layout: Layout
    values: Mapping[str, str]
    """What templates may name, without the fields of the card."""
    fields: Fields | None = None
    carried: Carried = NOTHING_CARRIED
    """The variables that are set before."""
    _by_role: dict[tuple[Role, bool], Mapping[str, str]] = field(
        default_factory=dict, init=False, compare=False
    )
    """The values as messages of a role may have them, once they were asked for."""

    def with_values(self, more: Mapping[str, str]) -> "Filling":
        """This with more values."""
        return replace(self, values={**self.values, **more})

    def values_for(self, role: Role, *, contained: bool = False) -> Mapping[str, str]:
        """What templates may name in a message of this role.

        `contained` where they stand in the history as a user's: there a field may be named that
        has no grant to stand elsewhere.
        """
        asked = role, contained and role == "user"
        if asked not in self._by_role:
            self._by_role[asked] = self._made(*asked)
        return self._by_role[asked]

    @property
    def all_values(self) -> Mapping[str, str]:
        """What any template may name."""
        return self.values_for("user", contained=True)

    def _made(self, role: Role, contained: bool) -> Mapping[str, str]:
        values = self.values if role == "user" else with_quotes(self.values)
        values = in_system(values) if role == "system" else values
        if self.fields is None:
            return values
        fields = self.fields.texts(values, self.dice, contained=contained, role=role)
        return {**values, **fields} if fields else values


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

    def reads_one(self, changed: Changed) -> bool:
        """Whether it reads a variable that is changed."""
        uses = self.template.uses if self.template else Uses()
        contained = self.component.is_contained
        return changed.concerns(uses.reads, reads_any=uses.computes_names, contained=contained)

    def expand_into(self, filling: Filling, store: Store) -> Piece | Verdict:
        """Return the piece, or the verdict that says why not; the store takes what it did."""
        made, effect = self.expand(filling, store.now)
        store.take(effect)
        return made

    def expand(self, filling: Filling, carried: Carried) -> tuple[Piece | Verdict, Effect]:
        """Return the piece, or the verdict that says why there is none, and what the text did.

        `carried` is what the texts before it hand on.
        """
        template, contained = self.template, self.component.is_contained
        if not self.component.enabled:
            return self._no(self._disabled), NO_EFFECT
        if template is None:
            return self._no(f"{_ERROR}{self._problem}"), NO_EFFECT
        claim = self.claim(filling.layout)
        values = filling.values_for(claim.spoken_as, contained=claim.depth is not None)
        if not template.reads:
            return self._piece(template.source, claim, filling, values), NO_EFFECT
        meter = carried.meter(contained=contained)
        variables = carried.variables(meter, contained=contained)
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
            made: Piece | Verdict = self._no(f"{_ERROR}{error}")
        else:
            changed = variables.changed
            made = self._piece(text, claim, filling, values, told(variables))
        return made, Effect(changed, meter.spent, contained, meter.ran_out)

    def _piece(
        self,
        text: str,
        claim: Claim,
        filling: Filling,
        values: Mapping[str, str],
        told: str = "",
    ) -> Piece | Verdict:
        """What becomes of the text; `told` is what else is to be known of it."""
        notes = [told, self._left_as_written(values)]
        note = "; ".join(filter(None, notes)) if any(notes) else ""
        if not text.strip():
            return self._no(f"empty; {note}" if note else "empty")
        breaks = self._breaks(text, values) if claim.tier is Tier.YIELDING else ()
        return make_piece(text, claim, counter=filling.counter, note=note, breaks=breaks)

    def _left_as_written(self, values: Mapping[str, str]) -> str:
        unknown = self.template.unknown(values) if self.template else ()
        return f"left as written: {', '.join(unknown)}" if unknown else ""

    def claim(self, layout: Layout) -> Claim:
        """What its text asks for in this layout; most are only ever asked for one."""
        if layout not in self._claims:
            made = _claim(self.component, self.origin, layout, stays=self._stays)
            self._claims[layout] = made
        return self._claims[layout]

    def unsettles(self, layout: Layout) -> bool:
        """True if its dice fall anew in each turn and it is placed before the history.

        What depends on what is said cannot stand there (`evennia_ai.engine.prompt.settled`).
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
