"""Reasons why entries are active or not, stored as values and rendered only when they are read.

Most reasons are never read, so a reason stores a function and its arguments. Rare reasons are
written as plain text by the modules that need them.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from evennia_ai.engine.lorebook.entry import Logic
from evennia_ai.engine.lorebook.scan.hit_cache import EVENT, FED, NOTE, SOMEWHERE, SOURCE, FoundKey
from evennia_ai.engine.lorebook.scan.regex.pattern import Pattern
from evennia_ai.engine.prompt.trace import Called

_MOST_KEYS_SHOWN: Final = 6
_MOST_CHARACTERS: Final = 60
_MOST_PROBLEMS_SHOWN: Final = 3


class EntryReason(NamedTuple):
    """A reason for a verdict. Its text is `words` called with `facts`."""

    words: Callable[..., str]
    facts: tuple[object, ...] = ()

    def __str__(self) -> str:
        return self.words(*self.facts)

    def calling(self, called: Called) -> "EntryReason":
        """Return this reason, calling each message by the name that `called` gives its index."""
        facts = (_rename_message(fact, called) for fact in self.facts)
        return EntryReason(self.words, tuple(facts))


def _rename_message(fact: object, called: Called) -> object:
    in_message = isinstance(fact, FoundKey) and fact.place >= 0
    return fact._replace(of=called(fact.place)) if in_message else fact  # type: ignore[attr-defined]


def plain_reason(text: str) -> EntryReason:
    """Make a reason from a text that is already complete."""
    return EntryReason(str, (text,))


# Reasons about keys


def key_found_reason(text: str, found: FoundKey) -> str:
    """Say which key was found and in which text."""
    place, (start, end), of = found
    if place >= 0 <= start:  # a fast path: most keys are in the content of a message
        where = of or f"message {place + 1}"
        return f"key '{text[:_MOST_CHARACTERS]}' in {where} at {start}-{end}"
    return f"key '{text[:_MOST_CHARACTERS]}' {render_place(found)}"


def key_and_logic_reason(text: str, found: FoundKey, logic: Logic, secondary: Sequence[str]) -> str:
    """Say which key was found and that the logic of the secondary keys is met."""
    return f"{key_found_reason(text, found)}, and {_NEEDS[logic]} {quote_keys(secondary)}"


def secondary_keys_in_words(reason: EntryReason) -> str:
    """Return what the logic of an active entry's secondary keys wanted; "" if it wanted nothing."""
    if reason.words is not key_and_logic_reason:
        return ""
    _, _, logic, secondary = reason.facts
    return f"{_NEEDS[logic]} {quote_keys(secondary)}"  # type: ignore[index, arg-type]


def logic_unmet_reason(
    text: str,
    found: FoundKey,
    logic: Logic,
    secondary: Sequence[str],
    shown: Sequence[str],
) -> str:
    """Say which key was found and that the logic of the secondary keys is not met.

    `shown` are the secondary keys that decided it.
    """
    state = "missing" if logic == "all" else "there"
    wish = f"wants {_NEEDS[logic]} {quote_keys(secondary)}"
    return f"{key_found_reason(text, found)}, but {wish}: {quote_keys(shown) or 'none'} {state}"


def no_key_reason(depth: int, refused: str, patterns: Sequence[Pattern]) -> str:
    """Say that no key was found in the newest `depth` messages, and which keys cannot be used."""
    none = f"no key in the newest {'message' if depth == 1 else f'{depth} messages'}"
    problems = [pattern.trouble for pattern in patterns if pattern.trouble][:_MOST_PROBLEMS_SHOWN]
    return "; ".join(filter(None, (none, refused, *problems)))


def given_up_reason(pattern: str, where: FoundKey, why: str) -> str:
    """Say that the search for a regular expression in one text was given up, and why."""
    return f"pattern '{pattern[:40]}' was given up {_render_text(where)}: {why}"


def excluded_key_reason(text: str, found: FoundKey) -> str:
    """Say which key of `@@exclude_keys` was found, and where."""
    return f"@@exclude_keys: '{text[:60]}' {render_place(found)}"


def movement_only_reason(found: FoundKey) -> str:
    """Say that a key was found only in a message about a character who arrives or leaves."""
    return (
        f"a key {render_place(found)}, but this message is about an arrival or departure"
        " and activates only entries that ask for movement"
    )


# Reasons about timers


def delay_reason(count: float, needed: int, clock: str) -> str:
    """Say at which time the delay of an entry ends, and what the time is now."""
    return f"delay: inactive until {needed} {clock}, {count:g} so far"


def cooldown_reason(end: float, now: float, clock: str, of: str = "") -> str:
    """Say how long the cooldown of an entry, or of its group `of`, continues."""
    whose = f" of group '{of}'" if of else ""
    return f"cooldown{whose}: inactive for {_render_left(end - now, clock)}"


def sticky_reason(end: float, now: float, clock: str) -> str:
    """Say how long a sticky entry stays active."""
    left = _render_left(end - now, clock)
    return f"sticky: activated earlier and stays for {left}, including this one"


def _render_left(left: float, clock: str) -> str:
    return f"1 more {clock.removesuffix('s')}" if left == 1 else f"{left:g} more {clock}"


# Reasons about chance and about activation passes


def chance_reason(roll: float, chance: float) -> str:
    """Say which number was rolled for an entry, and its chance."""
    return f"rolled {roll * 100:.1f} with a chance of {chance:g} %"


def pass_reason(number: int, kind: str) -> str:
    """Say in which activation pass an entry became active."""
    return f"pass {number} ({kind})"


# Texts that several reasons use


def render_place(found: FoundKey) -> str:
    """Render in which text a key was found, and from which to which character."""
    place, (start, end), of = found
    if place in (NOTE, SOMEWHERE):
        return _render_text(found)
    if start < 0 and place not in (FED, SOURCE):
        return f"in the name of {of or name_message(place)}"
    return f"{_render_text(found)} at {start}-{end}"


def _render_text(found: FoundKey) -> str:
    """Render the name of the text in which a key was found."""
    if found.place == NOTE:
        return "in a note"
    if found.place == SOMEWHERE:
        return "in the scanned text"
    if found.place == FED:
        return f"in the text of {found.of}"
    if found.place == SOURCE:
        return f"in {SOURCES[found.of]}"
    return f"in {found.of or name_message(found.place)}"


def name_message(place: int) -> str:
    """Return a name for a message by its index: its number from 1, or "the event"."""
    return "the event" if place == EVENT else f"message {place + 1}"


def quote_keys(texts: Sequence[str]) -> str:
    """Render the first few of several keys in quotes."""
    few = ", ".join(f"'{text[:_MOST_CHARACTERS]}'" for text in texts[:_MOST_KEYS_SHOWN])
    more = len(texts) - _MOST_KEYS_SHOWN
    return f"{few} and {more} more" if more > 0 else few


def count_replies(replies: int) -> str:
    """Render the number of replies that the character has given so far."""
    return "1 reply" if replies == 1 else f"{replies} replies"


_NEEDS: Final = {"any": "one of", "all": "all of", "not_any": "none of", "not_all": "not all of"}
SOURCES: Final = {
    "persona": "the persona",
    "char_description": "the character's description",
    "char_personality": "the character's personality",
    "char_depth_prompt": "the character's depth prompt",
    "scenario": "the scenario",
    "creator_notes": "the creator's notes",
    "room": "the description of the room",
}
"""The names of further texts that are searched for keys, as readers call them."""
