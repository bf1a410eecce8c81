"""Filling."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import field, replace
from typing import Final, NamedTuple

from evennia_ai.engine.errors import TemplateError
from evennia_ai.engine.prompt.components import (
    PromptComponent,
)
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.fragments import (
    Layout,
)
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.macro_state import (
    EMPTY_STATE,
    MacroState,
)
from evennia_ai.engine.prompt.memo import typed_frozen
from evennia_ai.engine.prompt.messages import Message, Role
from evennia_ai.engine.prompt.names import shorten_names
from evennia_ai.engine.prompt.templates.template import Template
from evennia_ai.engine.prompt.templates.value_names import FIELDS, OF_THE_MOMENT, SAID_LAST
from evennia_ai.engine.prompt.templates.work import FIELDS_WORK, Meter
from evennia_ai.engine.prompt.time_line import without_time_line
from evennia_ai.engine.prompt.tokens import TokenCounter


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
    state: MacroState = EMPTY_STATE
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

    def values_named(self, names: Collection[str]) -> dict[str, str]:
        """Return the values of these names, as far as there are any."""
        return {name: value for name, value in self.all_values.items() if name in names}

    def _made(self, role: Role, contained: bool) -> Mapping[str, str]:
        values = self.values if role == "user" else quote_last_messages(self.values)
        values = shorten_names(values) if role == "system" else values
        if self.fields is None:
            return values
        fields = self.fields.texts(values, self.dice, contained=contained, role=role)
        return {**values, **fields} if fields else values


MOST_QUOTED: Final = 500
"""Characters of what was said that stand in a message of another role than user."""


_LOOKED_AT: Final = 50  # messages that are gone back through for one of the character


_OTHER_QUOTES: Final = str.maketrans(dict.fromkeys('"“”„«»', "'"))


def last_message_values(history: History, event: Message | None) -> dict[str, str]:
    """What was said last, by whomever, by a user and by the character; "" where nothing was."""
    user = event if event is not None and event.role == "user" else history.newest_user()
    character = _newest_reply(history)
    last = event or _newest(history)
    found = {"lastmessage": last, "lastusermessage": user, "lastcharmessage": character}
    return {name: without_time_line(one.content) if one else "" for name, one in found.items()}


def _newest_reply(history: History) -> Message | None:
    return next((one for one in _newest_first(history) if one.role == "assistant"), None)


def _newest(history: History) -> Message | None:
    return next((one for one in _newest_first(history) if one.role in ("user", "assistant")), None)


def _newest_first(history: History) -> Iterable[Message]:
    """The newest messages of the conversation, from the newest on."""
    first = max(history.earlier, history.stop - _LOOKED_AT)
    for message in reversed(history.between(first, history.stop)):
        if message.counted and message.content:
            yield message


def quote_line(text: str) -> str:
    """What somebody said, as another role may have it."""
    line = " ".join(text[: 2 * MOST_QUOTED].split()).translate(_OTHER_QUOTES)
    is_whole = len(line) <= MOST_QUOTED and len(text) <= 2 * MOST_QUOTED
    return f'"{line}"' if is_whole else f'"{line[:MOST_QUOTED]}..."'


def quote_last_messages(values: Mapping[str, str]) -> Mapping[str, str]:
    """The values with what was said in quotes, where anything was."""
    said = {name: quote_line(values[name]) for name in SAID_LAST if values.get(name)}
    return {**values, **said} if said else values
