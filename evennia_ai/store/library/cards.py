"""Cards between a game and the library: the file of the card in force, to the byte.

A card that is taken waits like any import, and so does each change of it: what it was granted in
another game, and by whom, is not in its file and does not come with it.
"""

from hashlib import sha256
from typing import Final

from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import EvenniaAIError
from evennia_ai.formats.cards.exporting import FORM_OF
from evennia_ai.formats.cards.loading import load_card
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.authored import card_revisions as log
from evennia_ai.store.authored.cards import card_or_none, get_card, let_wait, typeable_name
from evennia_ai.store.core.copies import copy_of, keep, refuse_copy
from evennia_ai.store.core.snapshots import CARDS, changing
from evennia_ai.store.library.bases import copy_from
from evennia_ai.store.library.entries import (
    Entry,
    LibraryError,
    Published,
    contents_of,
    hashes_of,
    put,
    reading,
)

_NAME: Final = "card"


def publish_card(name: str, *, game: str, game_name: str, by: Actor) -> bool:
    """Put the card in force into the library; whether anything there is another than before.

    CopyError: it comes from the library itself. LibraryError: the library cannot be written.
    """
    refuse_copy("card", name)
    _, file = log.revision(name, get_card(name).revision)
    path = f"{_NAME}.{FORM_OF[file.carrier]}"
    made = Published(sha256=sha256(file.content).hexdigest(), content=file.content)
    return put("card", name, {path: made}, game=game, game_name=game_name, by=by)


def take_card(entry: Entry, *, by: Actor) -> int | None:
    """Let a card wait for approval; its number, None where this very file is in force.

    LibraryError: the game has a card of this name of its own, or what the library holds is refused.
    """
    _refuse_own(entry.name)
    limits = conf().card_limits
    with reading():
        hashes = hashes_of(entry)
        contents = contents_of(entry, list(hashes)[:2], most_bytes=limits.file_bytes)
    hashed = [sha256(content).hexdigest() for content in contents.values()]
    if len(hashed) != 1 or hashed != list(hashes.values()):
        raise LibraryError(f"{entry.typed} in the library is not what its list of files says")
    (content,) = contents.values()
    try:
        found = load_card(content, limits=limits)
        is_named = typeable_name(entry.name) == entry.name
    except EvenniaAIError as error:
        raise LibraryError(f"{entry.typed} in the library is refused: {error}") from error
    if not is_named:
        raise LibraryError(f"{entry.typed} in the library has a name that cannot be typed")
    with changing(CARDS, f"taking card '{entry.name}' from the library", by=by):
        _refuse_own(entry.name)
        number = let_wait(entry.name, log.file_of(content, found), by=by)
        keep(copy_from(entry, by=by))
    return number


def _refuse_own(name: str) -> None:
    if card_or_none(name) is not None and copy_of("card", name) is None:
        raise LibraryError(
            f"this game has a card '{name}' of its own; remove it first (card/remove {name})"
        )
