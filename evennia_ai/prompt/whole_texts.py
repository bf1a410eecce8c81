"""Values that are whole texts: what was said last, and the fields of the card and the persona.

What was said is data. Where a text speaks as a user it stands as it is; in any other role it is in
quotes, on one line and short, so that nobody's words become the system's or the character's own.
A field of a card without its grant is given to no text but to one that stands where the field may
stand itself: in the history, as a user's.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from evennia_ai.errors import TemplateError
from evennia_ai.prompt.components import PromptComponent
from evennia_ai.prompt.dice import Dice
from evennia_ai.prompt.history import History
from evennia_ai.prompt.messages import Message, Role
from evennia_ai.prompt.templates.macros import FIELDS, SAID_LAST
from evennia_ai.prompt.templates.template import Template

MOST_QUOTED: Final = 500
"""Characters of what was said that stand in a message of another role than user."""
_LOOKED_AT: Final = 50  # messages that are gone back through for one of the character
_OTHER_QUOTES: Final = str.maketrans(dict.fromkeys('"“”„«»', "'"))


def said_last(history: History, event: Message | None) -> dict[str, str]:
    """What was said last, by whomever, by a user and by the character; "" where nothing was."""
    user = event if event is not None and event.role == "user" else history.newest_user()
    character = _newest_reply(history)
    last = event or _newest(history)
    found = {"lastmessage": last, "lastusermessage": user, "lastcharmessage": character}
    return {name: message.content if message else "" for name, message in found.items()}


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


def quoted(text: str) -> str:
    """What somebody said, as another role may have it."""
    line = " ".join(text[: 2 * MOST_QUOTED].split()).translate(_OTHER_QUOTES)
    is_whole = len(line) <= MOST_QUOTED and len(text) <= 2 * MOST_QUOTED
    return f'"{line}"' if is_whole else f'"{line[:MOST_QUOTED]}..."'


def with_quotes(values: Mapping[str, str]) -> dict[str, str]:
    """The values with what was said in quotes, where anything was."""
    said = {name: quoted(values[name]) for name in SAID_LAST if values.get(name)}
    return {**values, **said}


class _Field(NamedTuple):
    template: Template
    contained: bool


# What fields were filled with, and their texts.
_Known = tuple[list[tuple[str, str]], Dice | None, dict[str, str]]


class Fields:
    """The fields of the card and the persona of a set of components, as values of texts.

    A component that is switched off still has its text: presets put the field elsewhere.
    """

    __slots__ = ("_fields", "_known", "_names", "_rolls")

    def __init__(self, holders: Mapping[str, tuple[PromptComponent, Template | None]]) -> None:
        self._fields: dict[str, _Field] = {}
        for name, keys in FIELDS.items():
            for component, template in (holders[key] for key in keys if key in holders):
                if template is not None and component.content.strip():
                    self._fields[name] = _Field(template, component.is_contained)
                    break
        templates = [field.template for field in self._fields.values()]
        self._names = sorted({name for template in templates for name in template.names})
        self._rolls = any(template.rolls for template in templates)
        self._known: dict[tuple[bool, Role], _Known] = {}

    @property
    def names(self) -> frozenset[str]:
        """The names of the fields that there are."""
        return frozenset(self._fields)

    def texts(
        self, values: Mapping[str, str], dice: Dice, *, contained: bool, role: Role
    ) -> dict[str, str]:
        """The fields filled with the values of a role; `contained` for text that may have all."""
        if not self._fields:
            return {}
        named = [(name, values.get(name, "")) for name in self._names]
        thrown = dice if self._rolls else None
        known = self._known.get((contained, role))
        if known is not None and known[:2] == (named, thrown):
            return known[2]
        texts = {
            name: text
            for name, field in self._fields.items()
            if (contained or not field.contained)
            and (text := _filled(field.template, values, dice)) is not None
        }
        self._known[contained, role] = named, thrown, texts
        return texts


def _filled(template: Template, values: Mapping[str, str], dice: Dice) -> str | None:
    """A field as it reads; None where its author's logic cannot be rendered, told elsewhere."""
    try:
        return template.render(values, dice)
    except TemplateError:
        return None
