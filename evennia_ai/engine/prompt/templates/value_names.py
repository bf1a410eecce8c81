"""The names that texts may have a value for, and how they are written."""

from collections.abc import Mapping
from typing import Final

OUTLET: Final = "outlet::"
"""What the name of a value begins with that is the text of an outlet of lore."""
SPELT: Final[Mapping[str, str]] = {
    "lastmessage": "lastMessage",
    "lastusermessage": "lastUserMessage",
    "lastcharmessage": "lastCharMessage",
}
"""How those names are written that have great letters in them."""
SAID_LAST: Final = frozenset(SPELT)
"""The values that are the newest message, and the newest of a user and of the character."""
CLOCK: Final = "datetimeformat::"
"""The name of the value that is the moment of the turn, for macros that say how to write it."""
CLOCKED: Final = frozenset({"time", "date", "weekday", "isotime", "isodate", CLOCK})
"""The values that are the time, which is another in each turn."""
OF_THE_MOMENT: Final = SAID_LAST | CLOCKED
"""The values that are made for a turn only if a text may name one of them."""
FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "description": ("char_description",),
    "personality": ("char_personality",),
    "scenario": ("scenario",),
    "persona": ("persona_description",),
    "mesexamples": ("dialogue_examples",),
    "mesexamplesraw": ("dialogue_examples",),
    "charprompt": ("card_system_prompt",),
    "charjailbreak": ("card_post_history", "post_history_instructions"),
    "charinstruction": ("card_post_history", "post_history_instructions"),
    "chardepthprompt": ("card_depth_prompt",),
}
"""The values that are a field of the card or the persona -> the keys of what holds it, by rank."""
ALWAYS_KNOWN: Final = frozenset({"char", "user", "speaker", "charifnotgroup", "group"})
"""The values that every composition has."""
KNOWN_NAMES: Final = ALWAYS_KNOWN.union(SAID_LAST, CLOCKED, FIELDS)
"""All names that imported text may have a value for, in small letters."""


def name_of(written: str) -> str:
    """A name as values have it: known ones count in any case."""
    folded = written.lower()
    return folded if folded in KNOWN_NAMES else written
