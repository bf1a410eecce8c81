"""Mentions: beside which message an entry stands that asks to stand where it is spoken of.

Such an entry gets the depth of its message and goes the way of everything that has a depth: the
kept history clamps it, order decides at one place, and a tool's result stays with its call. So it
moves with the message, and one whose message was cut away stands at the top of the history.
"""

from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from evennia_ai.lorebook.entries import Mention
from evennia_ai.lorebook.scanning import EVENT, Window
from evennia_ai.prompt.history import History
from evennia_ai.prompt.pieces import Beside

_BY_NOTHING: Final = Beside(None, "after the newest message, for none has a key of it")
_BY_EVENT: Final = Beside(None, "after the newest message, for the event has a key of it")


class Spot(NamedTuple):
    """A place in the history: its depth from the newest message, and what it is beside."""

    depth: int
    beside: Beside


def spot_of(
    mention: Mention,
    keys: Collection[int],
    window: Window,
    history: History,
    *,
    depth: int,
    movement: bool,
) -> Spot:
    """Where an entry of these keys stands that sees the newest `depth` messages.

    An entry with a key in the event stands before that, after the newest message; so does one that
    no message has a key of, because something else woke it. `movement` says whether the entry hears
    who comes and goes.
    """
    mentions = window.mentions(keys, movement=movement)
    place = _place_of(mention, mentions, depth=depth)
    if place is None:
        return Spot(0, _BY_NOTHING)
    if place == EVENT:
        return Spot(0, _BY_EVENT)
    first = place if mention.side == "before" else place + 1
    told = f"right {mention.side} {{}}, which has a key of it"
    return Spot(history.counted(first), Beside(place, told))


def mention_in_words(mention: Mention) -> str:
    """The place as an author reads it."""
    return f"right {mention.side} the {mention.message} message with its key"


def _place_of(mention: Mention, mentions: Iterable[tuple[int, int]], *, depth: int) -> int | None:
    """The newest message with one of the keys, or the oldest of those that the entry sees."""
    found: int | None = None
    for age, place in mentions:
        if found is not None and age >= depth:
            break
        found = place
        if mention.message == "newest":
            break
    return found
