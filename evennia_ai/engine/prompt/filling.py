"""The values that templates may name, in the form that is safe for each text.

Values can contain words of players and of cards. So the form of a value depends on the text in
which it is used:

- The last messages are data. A text of role user shows them unchanged. Any other text shows them in
  quotes, short and on one line, so that nobody can speak as the system or as the character.
- In a message of role system, names are short and without punctuation.
- A card field without a grant has a value only in contained texts. These are placed in the history
  in the role user, where the field itself is allowed, too.

The variables that the texts of one prompt set are in a `MacroState`, with the work that they used.
Contained text has variables of its own. It can read variables of the game's own texts, but only
other contained text can read the variables that it sets. Otherwise a card without a grant could
place its words in any text that names a variable.

To expand a list of texts, give each text the variables and the meter of the state, and then add
its effect to the store. An effect is the variables that a text set and the work that it used. It
can be cached: as long as everything that a text reads is unchanged, its effect is the same. Its
work is charged in each turn, even if the text was not expanded again. So the prompt of a turn does
not depend on caches.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import field, replace
from typing import Final, NamedTuple

from evennia_ai.engine.errors import TemplateError
from evennia_ai.engine.prompt.components import (
    PromptComponent,
)
from evennia_ai.engine.prompt.conditions import Facts
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.fragments import (
    Layout,
)
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.memo import typed_frozen
from evennia_ai.engine.prompt.messages import Message, Role, without_time_line
from evennia_ai.engine.prompt.names import shorten_names
from evennia_ai.engine.prompt.templates.template import Template
from evennia_ai.engine.prompt.templates.value_names import FIELDS, OF_THE_MOMENT, SAID_LAST
from evennia_ai.engine.prompt.templates.variables import Found, Variable, Variables
from evennia_ai.engine.prompt.templates.work import (
    CONTAINED_WORK,
    FIELDS_WORK,
    LORE_WORK,
    PLACED_WORK,
    Meter,
)
from evennia_ai.engine.prompt.tokens import TokenCounter

_MOST_NAMED: Final = 5


class Effect(NamedTuple):
    """The effect of expanding one text: the variables that it set, and the work that it used."""

    changed: Found = {}
    work: int = 0
    contained: bool = False
    ran_out: bool = False
    """True if the text ended because no work was left. Then the effect must not be reused, because
    after other texts there may be enough work."""


NO_EFFECT: Final = Effect()


class MacroState(NamedTuple):
    """The state before a text of the prompt: the variables set so far, and the work used so far.

    Contained (untrusted) texts have their own variables and their own count of work.
    """

    granted: Found = {}
    contained: Found = {}
    work: int = 0
    work_contained: int = 0
    work_of_lore: int = 0

    @property
    def left(self) -> int:
        """The work that is left for the texts of the prompt; negative if they used too much."""
        return PLACED_WORK - self.work - self.work_contained - self.work_of_lore

    @property
    def is_too_much(self) -> bool:
        """True if the texts of the prompt together used more work than allowed."""
        return self.left < 0 or self.work_contained > CONTAINED_WORK

    def meter(self, *, contained: bool) -> Meter:
        """Return a meter of the work that the next text may use."""
        left = PLACED_WORK - self.work - self.work_contained - self.work_of_lore
        return Meter(min(left, CONTAINED_WORK - self.work_contained) if contained else left)

    @property
    def left_for_lore(self) -> int:
        """The work that is left for lore entries."""
        return min(self.left, LORE_WORK - self.work_of_lore)

    def variables(self, meter: Meter, *, contained: bool) -> Variables:
        """Return the variables that the next text may read and set."""
        if contained:
            return Variables(self.contained, under=self.granted, meter=meter)
        return Variables(self.granted, meter=meter)


EMPTY_STATE: Final = MacroState()


class MacroStore:
    """The variables and the used work during the expansion of a list of texts."""

    __slots__ = ("_contained", "_granted", "_of_lore", "_work", "ran_out")

    def __init__(self, before: MacroState) -> None:
        self._granted = dict(before.granted)
        self._contained = dict(before.contained)
        self._work = [before.work, before.work_contained]
        self._of_lore = before.work_of_lore
        self.ran_out = False
        """True if some text could not be expanded because no work was left."""

    @property
    def now(self) -> MacroState:
        """The variables and the used work for the next text.

        The store changes this object later, so do not keep it.
        """
        granted, contained = self._work
        return MacroState(self._granted, self._contained, granted, contained, self._of_lore)

    def take(self, effect: Effect) -> None:
        """Add the variables that a text set and the work that it used to this store."""
        changed, work, contained, ran_out = effect
        if changed:
            (self._contained if contained else self._granted).update(changed)
        self._work[contained] += work
        self.ran_out = self.ran_out or ran_out

    def expand_or_keep(self, template: Template, values: Mapping[str, str], dice: Dice) -> str:
        """Expand a text of a preset; return it as written if expanding needs too much work."""
        meter = self.now.meter(contained=False)
        try:
            return template.render(values, dice, meter=meter)
        except TemplateError:
            return template.source
        finally:
            self.take(Effect(work=meter.spent))


class ChangedVariables:
    """The variables whose value differs from the last expansion; falsy if there are none."""

    __slots__ = ("_contained", "_granted")

    def __init__(self) -> None:
        self._granted: set[Variable] = set()
        self._contained: set[Variable] = set()

    def __bool__(self) -> bool:
        return bool(self._granted or self._contained)

    def compare_initial_states(self, before: MacroState, now: MacroState) -> None:
        """Add the variables whose value before the first text differs from the last expansion."""
        if before != now:
            self.compare_effects(Effect(before.granted), Effect(now.granted))
            for contained in (before.contained, now.contained):
                self._contained.update(contained)

    def compare_effects(self, before: Effect, now: Effect) -> None:
        """Add variables that a text now sets to another value; drop those set to the old value."""
        names = self._contained if now.contained else self._granted
        for name in before.changed.keys() | now.changed.keys():
            if before.changed.get(name) == now.changed.get(name):
                names.discard(name)
            else:
                names.add(name)

    def drop_variables_of(self, effect: Effect) -> None:
        """Drop the variables of a text that is not expanded again, because they are unchanged."""
        names = self._contained if effect.contained else self._granted
        names.difference_update(effect.changed)

    def affect_text(self, reads: frozenset[Variable], *, reads_any: bool, contained: bool) -> bool:
        """True if a text reads one of the changed variables.

        Args:
            reads: The variables whose names are written in the text.
            reads_any: True if the text computes names of variables, so it may read any variable.
            contained: True if the text may read the variables of contained texts.
        """
        for names in (self._granted, self._contained) if contained else (self._granted,):
            if names and (reads_any or not reads.isdisjoint(names)):
                return True
        return False


def describe_variables(variables: Variables) -> str:
    """Describe, for a verdict, which variables a text set and read; "" if there are none."""
    found = ("sets", variables.changed), ("reads", variables.read)
    return "; ".join(f"{word} {_listed(names)}" for word, names in found if names)


def _listed(names: Mapping[Variable, object]) -> str:
    shown = [str(name)[:40] for name in list(names)[:_MOST_NAMED]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


class _Field(NamedTuple):
    """A card field. If `contained`, it may only be placed in the history, in the role user."""

    template: Template
    contained: bool


# The last rendering of the card's fields: the values and dice that were used, and the texts
_Known = tuple[list[tuple[str, str]], Dice | None, dict[str, str]]


_NO_FIELDS: Final = dict.fromkeys(FIELDS, "")


class Fields:
    """The fields of a card and a persona, as values that templates may name.

    The field of a disabled component still has a value, because presets may place it elsewhere. A
    field without a text has the value "".
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
        """True if a field uses the last messages or the time."""
        self._rolls = any(template.rolls for template in templates)
        self._known: dict[tuple[bool, Role], _Known] = {}

    @property
    def names(self) -> frozenset[str]:
        """The names of the fields that have a text."""
        return frozenset(self._fields)

    @property
    def templates(self) -> dict[str, Template]:
        """The templates of the card's fields, by the name of their value."""
        return {name: field.template for name, field in self._fields.items()}

    def texts(
        self, values: Mapping[str, str], dice: Dice, *, contained: bool, role: Role
    ) -> dict[str, str]:
        """Render the card's fields. Contained (untrusted) texts may use fields without grants."""
        if not self._fields:
            return _NO_FIELDS
        named = [(name, values.get(name, "")) for name in self._names]
        thrown = dice if self._rolls else None
        known = self._known.get((contained, role))
        if known is not None and known[:2] == (named, thrown):
            return known[2]
        meter = Meter(FIELDS_WORK)
        texts = {name: "" for name in FIELDS if name not in self._fields}
        # A field in a field is empty, as in SillyTavern.
        values = {**_NO_FIELDS, **values}
        for name, held in self._fields.items():
            if contained or not held.contained:
                # A field that cannot be rendered gets no value, so its name stays as written in
                # other texts. The component of the field reports the error.
                with suppress(TemplateError):
                    texts[name] = held.template.render(values, dice, meter=meter)
        self._known[contained, role] = named, thrown, texts
        return texts


@typed_frozen
class Filling:
    """The values and rules by which the texts of one turn are expanded."""

    dice: Dice
    counter: TokenCounter
    layout: Layout
    values: Mapping[str, str]
    """The values that templates may name, except the fields of the card."""
    fields: Fields | None = None
    facts: Facts = field(default_factory=dict)
    """The facts that conditions of components and notes test."""
    state: MacroState = EMPTY_STATE
    """The variables that earlier texts set, and the work that they used."""
    _by_role: dict[tuple[Role, bool], Mapping[str, str]] = field(
        default_factory=dict, init=False, compare=False
    )
    """The cached values for each role, computed when the first text asks for them."""

    def with_values(self, more: Mapping[str, str]) -> "Filling":
        """Return a copy of this filling with more values for templates."""
        return replace(self, values={**self.values, **more})

    def values_for(self, role: Role, *, contained: bool = False) -> Mapping[str, str]:
        """Return the values that a template in a message of this role may name.

        Args:
            role: The role of the message.
            contained: True if the text is placed in the history. In the role user, it may then use
                fields that have no grant for other places.
        """
        asked = role, contained and role == "user"
        known = self._by_role.get(asked)
        if known is None:
            known = self._by_role[asked] = self._made(*asked)
        return known

    @property
    def all_values(self) -> Mapping[str, str]:
        """All values that any template of the turn may name."""
        return self.values_for("user", contained=True)

    def values_named(self, names: Iterable[str]) -> dict[str, str]:
        """Return the values with these names. Names without a value are left out."""
        values = self.all_values
        return {name: values[name] for name in names if name in values}

    def _made(self, role: Role, contained: bool) -> Mapping[str, str]:
        values = self.values if role == "user" else quote_last_messages(self.values)
        values = shorten_names(values) if role == "system" else values
        if self.fields is None:
            return values
        fields = self.fields.texts(values, self.dice, contained=contained, role=role)
        return {**values, **fields} if fields else values


MOST_QUOTED: Final = 500
"""The longest quotation of a last message in texts of other roles than user, in characters."""
_SEARCHED_BACK: Final = 50  # the number of messages that are searched for the NPC's last reply
_OTHER_QUOTES: Final = str.maketrans(dict.fromkeys('"“”„«»', "'"))


def last_message_values(history: History, event: Message | None) -> dict[str, str]:
    """Return values for the newest message, a user's newest and the character's newest message.

    The names are those of SillyTavern's macros. A value is "" if there is no such message.
    """
    first = max(history.earlier, history.stop - _SEARCHED_BACK)
    newest_first = [
        one for one in reversed(history.between(first, history.stop)) if one.counted and one.content
    ]
    reply = next((one for one in newest_first if one.role == "assistant"), None)
    newest = event or next((one for one in newest_first if one.role in ("user", "assistant")), None)
    user = event if event is not None and event.role == "user" else history.newest_user()
    found = {"lastmessage": newest, "lastusermessage": user, "lastcharmessage": reply}
    return {name: without_time_line(one.content) if one else "" for name, one in found.items()}


def quote_line(text: str) -> str:
    """Quote words of a person, shortened and on one line, for a message of another role."""
    line = " ".join(text[: 2 * MOST_QUOTED].split()).translate(_OTHER_QUOTES)
    is_whole = len(line) <= MOST_QUOTED and len(text) <= 2 * MOST_QUOTED
    return f'"{line}"' if is_whole else f'"{line[:MOST_QUOTED]}..."'


def quote_last_messages(values: Mapping[str, str]) -> Mapping[str, str]:
    """Return the macro values, with those that repeat a last message as short quotations.

    These are the values of macros such as `{{lastMessage}}` (`SAID_LAST`).
    """
    if SAID_LAST.isdisjoint(values):
        return values
    said = {name: quote_line(values[name]) for name in SAID_LAST if values.get(name)}
    return {**values, **said} if said else values
