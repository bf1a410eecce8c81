"""Sources: the JSON texts of cards and lorebooks, kept to the letter.

The text is checked to be strict JSON with an object in it and nothing more; what it means is for
`evennia_ai.cards` and `evennia_ai.lorebook`.
"""

import json
from hashlib import sha256
from typing import NoReturn

from evennia_ai.errors import FormatError
from evennia_ai.history.records import storable


def checked_source(text: str, *, what: str, most: int, setting: str) -> str:
    """The hash of `text`; FormatError where it is no strict JSON object, or too long.

    `most` characters are allowed, by the setting of this name.
    """
    if len(text) > most:
        raise FormatError(
            "size", f"{what} has {len(text)} characters and the limit is {most} ({setting})"
        )
    if storable(text) != text:
        raise FormatError("encoding", f"{what} holds null characters or half pairs")
    try:
        value = json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise FormatError("json", f"{what} is no JSON: {error.msg} ({place})") from error
    except (RecursionError, ValueError) as error:
        raise FormatError("json", f"{what} is no strict JSON: {error}") from error
    if not isinstance(value, dict):
        raise FormatError("json", f"{what} must be a JSON object")
    return sha256(text.encode()).hexdigest()


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON value")
