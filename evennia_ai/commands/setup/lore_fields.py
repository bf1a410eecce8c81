"""What builders type for the fields of an entry, and how the fields read.

Which fields there are, and what each may be, is for the table of `evennia_ai.lorebook`.
"""

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

from evennia_ai.commands.setup import lore_typed as typed
from evennia_ai.commands.strict import CommandError
from evennia_ai.lorebook.activation.candidate import mention_in_words
from evennia_ai.lorebook.entry import LoreEntry
from evennia_ai.lorebook.formats.fields import TYPED_FIELDS, LoreField, Typed
from evennia_ai.lorebook.formats.values import Step
from evennia_ai.prompt.components import MAX_DEPTH
from evennia_ai.text.columns import clipped, visible

DEFAULT: Final = "default"
UNUSED: Final = "unused, for there is no sticky, cooldown or delay"

_SHOWN: Final = 120
# What has a switch of its own, by what somebody may call it.
_SWITCHES: Final[Mapping[str, str]] = {
    **{name: name for name in ("keys", "depth", "order", "position", "edit", "enable", "lock")},
    **dict.fromkeys(("secondary", "secondary_keys", "logic", "selective"), "secondary"),
    **dict.fromkeys(("outlet", "anchor"), "position"),
    **dict.fromkeys(("enabled", "on"), "enable"),
    "key": "keys",
    "content": "edit",
    "disabled": "off",
}


def field_named(word: str) -> LoreField:
    """The field that a builder calls `word`; CommandError names those there are."""
    name = "_".join(word.lower().split())
    if name in TYPED_FIELDS:
        return TYPED_FIELDS[name]
    if name in _SWITCHES:
        raise CommandError(f"'{word}' has a switch of its own: lore/{_SWITCHES[name]}.")
    near = get_close_matches(name[:40], TYPED_FIELDS, n=3)
    known = f"near it are {', '.join(near)}" if near else f"there are {', '.join(TYPED_FIELDS)}"
    raise CommandError(f"'{word}' is no field of an entry; {known}. Nothing was changed.")


def typed_value(field: LoreField, text: str) -> Any:
    """What a builder's text means; None takes back what the field says."""
    return None if text.lower() == DEFAULT else _READERS[field.typed or "text"](text)


def said_of(field: LoreField, entry: LoreEntry) -> Any:
    """What an entry says of a field, as builders read it."""
    return _IN_WORDS.get(field.name, field.says)(entry)


def in_words(value: Any) -> str:
    """A field's value in words, on one line of bounded length."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if value is None:
        return "as the book or the rules say"
    if isinstance(value, tuple | frozenset):
        return clipped(visible(", ".join(map(str, value))), _SHOWN) or "none"
    if isinstance(value, float):
        return f"{value:g}"
    return clipped(visible(" ".join(str(value).split())), _SHOWN) or "none"


def member_in_words(path: Sequence[Step]) -> str:
    """A member of an entry that an error names by its steps, as builders call it.

    `("when", 0, "test")` is the test of condition 1.
    """
    steps = [step for step in path if step not in _WRAPPINGS]
    name, *inside = steps or [*path]
    word = _WORDS.get(str(name), str(name))
    if name == "when" and inside:
        number, *inside = inside
        word = f"condition {int(number) + 1}"
    members = [step for step in inside if isinstance(step, str)]
    return f"the {members[-1]} of {word}" if members else word


def place_in_words(entry: LoreEntry) -> str:
    """Where an entry wants to stand."""
    if entry.depth == MAX_DEPTH and not entry.from_oldest:
        return f"the top of the history, {entry.role}"
    if entry.depth is not None:
        end = " from the oldest" if entry.from_oldest else ""
        return f"depth {entry.depth}{end}, {entry.role}"
    if entry.outlet:
        return f"outlet {entry.outlet}"
    if entry.anchor:
        return f"{entry.anchor.side} {entry.anchor.component}"
    if entry.mention:
        return mention_in_words(entry.mention)
    return entry.position


def _clock(entry: LoreEntry) -> Any:
    timing = entry.timing
    return timing.clock if timing.sticky or timing.cooldown or timing.delay else UNUSED


# How what builders type is read, and what is told otherwise than an entry says it.
_READERS: Final[Mapping[Typed, Callable[[str], Any]]] = {
    "text": typed.text_in,
    "word": typed.word,
    "flag": typed.flag,
    "number": typed.number,
    "number or off": typed.number_or_off,
    "keys": typed.keys_in,
    "mention": typed.mention_in,
    "questions": typed.questions,
}
_IN_WORDS: Final[Mapping[str, Callable[[LoreEntry], Any]]] = {
    "mention": place_in_words,
    "clock": _clock,
}
# What the editing calls a field that builders call otherwise.
_WORDS: Final[Mapping[str, str]] = {
    **{field.name: word for word, field in TYPED_FIELDS.items()},
    "secondary_keys": "secondary keys",
    "anchor": "position",
    "enabled": "state",
}
# Members of a file that only hold others.
_WRAPPINGS: Final = frozenset({"extensions", "evennia_ai"})
