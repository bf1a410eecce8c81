"""The list of a book's revisions, with the entries that the newest ones changed."""

from collections.abc import Iterator, Sequence
from typing import Final

from evennia_ai.commands.base import and_more, revision_in_words
from evennia_ai.engine.text.columns import WIDTH, clip_text, escape_controls
from evennia_ai.formats.lorebooks.editing.comparing import changed_ids
from evennia_ai.store.authored.life_cycle import Revision, with_values_before
from evennia_ai.store.authored.lorebooks import LOREBOOKS, StoredBook

MOST_SHOWN: Final = 50
_MOST_COMPARED: Final = 10
_MOST_IDS: Final = 6


def history_of(name: str, changes: Sequence[Revision[StoredBook]]) -> list[str]:
    """Return the changes of a book, oldest first, with the entries that the newest ones changed."""
    lines = [f"Revisions of lorebook '{name}'; /revert goes back to one of them:"]
    if len(changes) > MOST_SHOWN:
        lines.append(f"       and {len(changes) - MOST_SHOWN} older ones")
    compared = {change.number for change in changes[-_MOST_COMPARED:]}
    for before, change in [*with_values_before(changes)][-MOST_SHOWN:]:
        lines.append(clip_text(escape_controls(revision_in_words(change)), WIDTH))
        if change.number in compared:
            older = text_of(before) if before else None
            told = _ids_in_words(older, text_of(change))
            lines += [clip_text(f"         {line}", WIDTH) for line in told]
    return lines


def text_of(change: Revision[StoredBook]) -> str | None:
    """Return the text that a revision made current, or None."""
    return LOREBOOKS.whole(change.value).source if change.takes_effect else None


def _ids_in_words(older: str | None, newer: str | None) -> Iterator[str]:
    """Yield one line for each kind of change, with the IDs of the entries."""
    for kind, uids in changed_ids(older, newer).items():
        if uids:
            more = "and {} more"
            ids = and_more([f"#{escape_controls(uid)}" for uid in uids], most=_MOST_IDS, more=more)
            yield f"{kind}: {', '.join(ids)}"
