"""What builders type for the fields of an entry, and how the fields read.

A table: the word behind `lore/set`, the field's name in `evennia_ai.lorebook.editing`, how a text
becomes its value, and how it is told. What a field may be is for the editing to judge.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

from evennia_ai.commands.setup import lore_typed as typed
from evennia_ai.commands.strict import CommandError
from evennia_ai.lorebook.conditions import (
    EVENT_KIND,
    NPC_KEY,
    NPC_TAGS,
    SPEAKER_KIND,
    ZONES,
    Condition,
)
from evennia_ai.lorebook.entries import LoreEntry
from evennia_ai.lorebook.entry_extension import FILTERS
from evennia_ai.lorebook.mentions import mention_in_words
from evennia_ai.lorebook.where import Step
from evennia_ai.prompt.components import MAX_DEPTH
from evennia_ai.text.columns import clipped, visible

DEFAULT: Final = "default"
UNUSED: Final = "unused, for there is no sticky, cooldown or delay"

_SHOWN: Final = 120
_FILTERED: Final = frozenset(fact for fact, _, _ in FILTERS.values())
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field: its name for the editing, how it is read from a text and told of an entry."""

    name: str
    read: Callable[[str], Any]
    told: Callable[[LoreEntry], Any]

    def value(self, text: str) -> Any:
        """What a builder's text means; None takes back what the field says."""
        return None if text.lower() == DEFAULT else self.read(text)


def field_named(word: str) -> Field:
    """The field that a builder calls `word`; CommandError names those there are."""
    name = "_".join(word.lower().split())
    if name in FIELDS:
        return FIELDS[name]
    if name in _SWITCHES:
        raise CommandError(f"'{word}' has a switch of its own: lore/{_SWITCHES[name]}.")
    near = get_close_matches(name[:40], FIELDS, n=3)
    known = f"near it are {', '.join(near)}" if near else f"there are {', '.join(FIELDS)}"
    raise CommandError(f"'{word}' is no field of an entry; {known}. Nothing was changed.")


def told(value: Any) -> str:
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


def condition_in_words(condition: Condition) -> str:
    """A condition as `lore/set <entry> = when` takes it."""
    return f"{condition.fact} {condition.test} {', '.join(map(str, condition.values))}"


def _clock(entry: LoreEntry) -> Any:
    timing = entry.timing
    return timing.clock if timing.sticky or timing.cooldown or timing.delay else UNUSED


def _about(fact: str) -> Callable[[LoreEntry], Any]:
    """Tells the conditions of an entry on this fact."""
    return lambda entry: _worded(c for c in entry.conditions if c.fact == fact)


def _about_others(entry: LoreEntry) -> Any:
    """Tells the conditions that no filter makes."""
    return _worded(c for c in entry.conditions if c.fact not in _FILTERED)


def _worded(conditions: Iterable[Condition]) -> tuple[str, ...]:
    return tuple(map(condition_in_words, conditions))


FIELDS: Final[Mapping[str, Field]] = {
    "place": Field(name="mention", read=typed.mention_in, told=place_in_words),
    "name": Field(name="name", read=typed.text_in, told=lambda e: e.name),
    "constant": Field(name="constant", read=typed.flag, told=lambda e: e.constant),
    "role": Field(name="role", read=typed.word, told=lambda e: e.role),
    "priority": Field(name="priority", read=typed.number, told=lambda e: e.priority),
    "chance": Field(name="chance", read=typed.number, told=lambda e: e.chance),
    "sticky": Field(name="sticky", read=typed.number_or_off, told=lambda e: e.timing.sticky),
    "cooldown": Field(name="cooldown", read=typed.number_or_off, told=lambda e: e.timing.cooldown),
    "delay": Field(name="delay", read=typed.number_or_off, told=lambda e: e.timing.delay),
    "clock": Field(name="clock", read=typed.word, told=_clock),
    "group": Field(name="groups", read=typed.keys_in, told=lambda e: e.grouping.names),
    "group_weight": Field(name="group_weight", read=typed.number, told=lambda e: e.grouping.weight),
    "group_preferred": Field(
        name="group_preferred", read=typed.flag, told=lambda e: e.grouping.preferred
    ),
    "group_scored": Field(name="group_scored", read=typed.flag, told=lambda e: e.grouping.scored),
    "group_cooldown": Field(
        name="group_cooldown", read=typed.number_or_off, told=lambda e: e.grouping.cooldown
    ),
    "recursion_excluded": Field(
        name="recursion_excluded", read=typed.flag, told=lambda e: e.recursion.excluded
    ),
    "recursion_prevented": Field(
        name="recursion_prevented", read=typed.flag, told=lambda e: e.recursion.prevented
    ),
    "recursion_level": Field(
        name="recursion_level", read=typed.number_or_off, told=lambda e: e.recursion.delay_level
    ),
    "scan_depth": Field(name="scan_depth", read=typed.number, told=lambda e: e.scan_depth),
    "sources": Field(name="sources", read=typed.keys_in, told=lambda e: tuple(sorted(e.sources))),
    "patterns": Field(name="patterns", read=typed.word, told=lambda e: e.patterns),
    "case_sensitive": Field(
        name="case_sensitive", read=typed.flag, told=lambda e: e.case_sensitive
    ),
    "match_whole_words": Field(
        name="match_whole_words", read=typed.flag, told=lambda e: e.match_whole_words
    ),
    "ignore_budget": Field(name="ignore_budget", read=typed.flag, told=lambda e: e.ignore_budget),
    "movement": Field(name="movement", read=typed.flag, told=lambda e: e.hears_movement),
    "npcs": Field(name="npcs", read=typed.keys_in, told=_about(NPC_KEY)),
    "tags": Field(name="tags", read=typed.keys_in, told=_about(NPC_TAGS)),
    "zones": Field(name="zones", read=typed.keys_in, told=_about(ZONES)),
    "events": Field(name="events", read=typed.keys_in, told=_about(EVENT_KIND)),
    "speakers": Field(name="speakers", read=typed.keys_in, told=_about(SPEAKER_KIND)),
    "when": Field(name="when", read=typed.questions, told=_about_others),
}
# What the editing calls a field that builders call otherwise.
_WORDS: Final[Mapping[str, str]] = {
    **{field.name: word for word, field in FIELDS.items()},
    "secondary_keys": "secondary keys",
    "anchor": "position",
    "enabled": "state",
}
# Members of a file that only hold others.
_WRAPPINGS: Final = frozenset({"extensions", "evennia_ai"})
