"""What authors give, looked at before it is stored: names, locks, scopes, JSON texts.

Whether a text is a lock and what it allows whom is for the commands; what a card or a lorebook
means is for `evennia_ai.cards` and `evennia_ai.lorebook`.
"""

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Final, NoReturn

from evennia_ai.errors import ComponentValueError, FormatError
from evennia_ai.history.records import storable
from evennia_ai.prompt.components import GAME, Scope

MAX_NAME: Final = 200
MAX_LOCKS: Final = 2000


def checked_name(name: str, *, what: str) -> str:
    """`name`; ComponentValueError where it cannot name a card or a lorebook."""
    if not name.strip() or len(name) > MAX_NAME or not name.isprintable():
        raise ComponentValueError(f"name of the {what}", name, "1 to 200 printable characters")
    return name


def check_locks(locks: str) -> None:
    """ComponentValueError where a lock string is too long or holds what cannot be stored."""
    if len(locks) > MAX_LOCKS or storable(locks) != locks:
        wanted = f"a lock string of at most {MAX_LOCKS} characters"
        raise ComponentValueError("locks", locks, wanted)


def check_scope(scope: Scope, *, kinds: Sequence[str]) -> None:
    """ComponentValueError where a scope is neither the game nor one of these kinds, named."""
    is_named = scope.kind in kinds and 0 < len(scope.ref) <= 255 and scope.ref.isprintable()
    if not is_named and scope != GAME:
        wanted = f"the game, or {', '.join(kinds)} with the tag or id of which one"
        raise ComponentValueError("scope", str(scope), wanted)


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
