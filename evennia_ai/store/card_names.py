"""Names of cards: which can be typed in a command, and which card somebody means."""

import re
from typing import Final

from evennia_ai.errors import ComponentValueError
from evennia_ai.store import card_revisions as log
from evennia_ai.store import cards as store
from evennia_ai.store.checks import MAX_NAME

_WANTED: Final = (
    "1 to 200 printable characters, no = and no / at its start, and no / before a number at its end"
)
# "Oren/3" is revision 3 of Oren: a card called so would be approved in its place.
_NUMBERED: Final = re.compile(r"/ ?[0-9]{1,9}\Z")

# Letters and marks that count as printable and show nothing: two names would look the same.
_UNSEEN: Final = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u3164\ufe00-\ufe0f\uffa0]")


def typeable_name(name: str) -> str:
    """`name` in one line; ComponentValueError where no command could be told it."""
    plain = " ".join(name.split())
    fits = plain and plain.isprintable() and len(plain) <= MAX_NAME
    is_odd = _UNSEEN.search(plain) or _NUMBERED.search(plain)
    if not fits or is_odd or "=" in plain or plain.startswith("/"):
        raise ComponentValueError("name of the card", name[:60], _WANTED)
    return plain


def known_name(wanted: str) -> str:
    """`wanted` in the case in which a card has that name, or had it; without one, as it is.

    A card in force goes before one that only waits or was removed.
    """
    for known in (store.card_names(), log.names()):
        if wanted in known:
            return wanted
        same = [name for name in known if name.casefold() == wanted.casefold()]
        if len(same) == 1:
            return same[0]
    return wanted
