"""The names of values that templates may use, and their spelling."""

from collections.abc import Mapping
from typing import Final

OUTLET: Final = "outlet::"
"""The prefix of the values that hold the texts of lore outlets."""
SPELT: Final[Mapping[str, str]] = {
    "lastmessage": "lastMessage",
    "lastusermessage": "lastUserMessage",
    "lastcharmessage": "lastCharMessage",
}
"""The spelling of each value's name that has capital letters, by the name in lower case."""
SAID_LAST: Final = frozenset(SPELT)
"""The values with the newest message, the newest one of a user, and that of the character."""
CLOCK: Final = "datetimeformat::"
"""The name of the value that is the time of the turn, which `{{datetimeformat}}` formats."""
CLOCKED: Final = frozenset({"time", "date", "weekday", "isotime", "isodate", CLOCK})
"""The values that depend on the time, so they differ in each turn."""
OF_THE_MOMENT: Final = SAID_LAST | CLOCKED
"""The values that are computed only in turns in which some text may name one of them."""
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
"""Maps the name of each card field's value to the keys of the components that may have the field,
in order of precedence.
"""
ALIASES: Final[Mapping[str, str]] = {
    "chardescription": "description",
    "charpersonality": "personality",
    "charscenario": "scenario",
    "notchar": "user",
}
"""Other names of values, in lower case, each with the name of the value."""
ALWAYS_KNOWN: Final = frozenset({"char", "user", "speaker", "charifnotgroup", "group"})
"""The values that every prompt has."""
KNOWN_NAMES: Final = ALWAYS_KNOWN.union(SAID_LAST, CLOCKED, FIELDS)
"""All names that may have a value in imported text, in lower case."""


def is_known_value(name: str) -> bool:
    """True if a name in lower case may have a value in imported text, as an outlet always has."""
    return name in KNOWN_NAMES or name.startswith(OUTLET)


def name_of(written: str) -> str:
    """Return a name in the spelling of the values. Known names are recognised in any case."""
    folded = written.lower()
    return folded if folded in KNOWN_NAMES else written
