"""The names of values that texts may use, and their spelling."""

from collections.abc import Mapping
from typing import Final

OUTLET: Final = "outlet::"
"""The prefix of the name of a lore outlet."""
SPELT: Final[Mapping[str, str]] = {
    "lastmessage": "lastMessage",
    "lastusermessage": "lastUserMessage",
    "lastcharmessage": "lastCharMessage",
}
"""The spelling of names with capital letters."""
SAID_LAST: Final = frozenset(SPELT)
"""The values for the newest message, and for the newest ones of a user and of the character."""
CLOCK: Final = "datetimeformat::"
"""The value for the moment of the turn, which macros format."""
CLOCKED: Final = frozenset({"time", "date", "weekday", "isotime", "isodate", CLOCK})
"""The values that are the time. They differ in each turn."""
OF_THE_MOMENT: Final = SAID_LAST | CLOCKED
"""The values that a turn only computes if a text may name one of them."""
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
"""Name of a value -> keys of the components that hold this field of a card, in order of
precedence."""
ALWAYS_KNOWN: Final = frozenset({"char", "user", "speaker", "charifnotgroup", "group"})
"""The values that every composition has."""
KNOWN_NAMES: Final = ALWAYS_KNOWN.union(SAID_LAST, CLOCKED, FIELDS)
"""All names for which imported text may have a value, in small letters."""


def name_of(written: str) -> str:
    """Return a name in the spelling of values. Known names count in any case."""
    folded = written.lower()
    return folded if folded in KNOWN_NAMES else written
