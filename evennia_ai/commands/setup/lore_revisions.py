"""The revisions of a lorebook as a builder reads them: who, when, and which entries."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from evennia_ai.commands.shown import day_and_time
from evennia_ai.errors import FormatError
from evennia_ai.lorebook.formats.books import in_order, read_book, unwrapped
from evennia_ai.store import lorebooks as store
from evennia_ai.store.lorebooks import BookChange
from evennia_ai.text.columns import WIDTH, clipped, visible

MOST_SHOWN: Final = 50
# Of how many changes it is told what they changed, and in books up to which length: texts are read.
MOST_COMPARED: Final = 10
LONGEST_COMPARED: Final = 200_000
_MOST_IDS: Final = 6


def history_of(name: str, changes: Sequence[BookChange]) -> list[str]:
    """The changes of a book, oldest first, with what the newest ones changed."""
    lines = [f"Revisions of lorebook '{name}'; /revert goes back to one of them:"]
    if len(changes) > MOST_SHOWN:
        lines.append(f"       and {len(changes) - MOST_SHOWN} older ones")
    compared = {change.number for change in changes[-MOST_COMPARED:]}
    for at, change in list(enumerate(changes))[-MOST_SHOWN:]:
        row = f"{change.number:5}  {day_and_time(change.changed_at)}  {change.action}"
        lines.append(clipped(visible(f"{row} by {change.changed_by}"), WIDTH))
        if change.number in compared:
            older = changes[at - 1] if at else None
            lines += [clipped(f"         {told}", WIDTH) for told in _compared(older, change)]
    return lines


def _compared(older: BookChange | None, newer: BookChange) -> Iterator[str]:
    """What a change did to the entries, one line each kind; nothing where it is too long to say."""
    before = _entries(older) if older else {}
    after = _entries(newer)
    if before is None or after is None:
        return
    kinds = {
        "new": [uid for uid in after if uid not in before],
        "removed": [uid for uid in before if uid not in after],
        "changed": [uid for uid in after if uid in before and after[uid] != before[uid]],
    }
    for kind, uids in kinds.items():
        if uids:
            more = f" and {len(uids) - _MOST_IDS} more" if len(uids) > _MOST_IDS else ""
            ids = ", ".join(f"#{visible(uid)}" for uid in uids[:_MOST_IDS])
            yield f"{kind}: {ids}{more}"


def _entries(change: BookChange) -> Mapping[str, Any] | None:
    """The entries of a book after a change as their file says them, by id."""
    source = store.book_revision(change.name, change.number).source
    if source is None:
        return {}
    if len(source) > LONGEST_COMPARED:
        return None
    data = json.loads(source)
    try:
        read = read_book(data).entries
    except FormatError:  # stored by other means than the command, or by another version
        return None
    raw = in_order(unwrapped(data)["entries"])
    return {entry.uid: given for entry, (_, given) in zip(read, raw, strict=True)}
