"""The V2 copy of a V3 card, for programs that know no better (Card V3, "Backfilling").

It says what it is, has no decorators, which V2 would read aloud, and none of V3's own fields.
"""

from collections.abc import Mapping
from typing import Any, Final

from evennia_ai.lorebook.decorators import read_decorators

NOTICE: Final = (
    "This is a Character Card V3, and you are reading its V2 copy: your program does not support"
    " V3, so parts of the character may be missing or work otherwise."
)
_SPEC: Final = {"spec": "chara_card_v2", "spec_version": "2.0"}
_V3_ONLY: Final = frozenset(
    {
        *("assets", "nickname", "creator_notes_multilingual", "source", "group_only_greetings"),
        *("creation_date", "modification_date"),
    }
)


def backfilled(card: Mapping[str, Any]) -> dict[str, Any]:
    """The V2 copy of a V3 card's JSON value."""
    data = {name: value for name, value in card["data"].items() if name not in _V3_ONLY}
    notes = data["creator_notes"]
    data["creator_notes"] = f"{NOTICE}\n\n{notes}" if notes.strip() else NOTICE
    if "character_book" in data:
        entries = [_plain_entry(entry) for entry in data["character_book"]["entries"]]
        data["character_book"] = {**data["character_book"], "entries": entries}
    return {**card, **_SPEC, "data": data}


def _plain_entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    """An entry without decorators and without what V2 has no word for."""
    plain = {name: value for name, value in entry.items() if name != "use_regex"}
    return {**plain, "content": read_decorators(entry["content"]).text}
