"""Editing the content of a lorebook's entry in Evennia's line editor.

As for components, the editor survives a reload: its functions are kept by their import path and
what it edits in an attribute of the builder. Locks are asked again when it saves.
"""

from typing import Any, Final

from evennia.utils.eveditor import EvEditor

from evennia_ai.commands.setup import lore_change
from evennia_ai.commands.setup.component_editor import CATEGORY, forget_edited
from evennia_ai.commands.setup.lore_named import OpenEntry, entry_to_change
from evennia_ai.commands.shown import shown_line
from evennia_ai.errors import EditConflictError, EvenniaAIError
from evennia_ai.store import lorebooks as store

ATTRIBUTE: Final = "edited_lore"


def open_editor(caller: Any, found: OpenEntry, *, by: str) -> None:
    """Open the line editor on the content of an entry for `caller`."""
    _remember(caller, found, by=by)
    EvEditor(
        caller,
        loadfunc=load_content,
        savefunc=save_content,
        quitfunc=leave_editor,
        key=shown_line(found.label),
        persistent=True,
    )


def load_content(caller: Any) -> str:
    """The content as it was when the editor was opened, for EvEditor."""
    return lore_change.content_of(_found(caller, _edited(caller)))


def save_content(caller: Any, text: str) -> bool:
    """Store the editor's text; true where it was stored, for EvEditor."""
    edited = _edited(caller)
    try:
        found = _found(caller, edited)
        _refuse_stale(found, edited["revision"])
        saved = lore_change.changed(found, {"content": text}, by=edited["by"])
    except EvenniaAIError as error:
        edited["refused"] = text
        caller.msg(shown_line(f"Not saved: {error}"))
        return False
    _remember(caller, saved, by=edited["by"])
    caller.msg(shown_line(f"Saved {saved.label} as revision {saved.of.stored.revision}."))
    return True


def leave_editor(caller: Any) -> None:
    """Forget what was edited, for EvEditor."""
    forget_edited(caller, ATTRIBUTE)


def _refuse_stale(found: OpenEntry, seen: int) -> None:
    """Refuse to write over a book that is not the one that was loaded."""
    stored = found.of.stored
    if stored.revision != seen:
        by = store.book_revisions(stored.name)[-1].changed_by
        raise EditConflictError(f"lorebook '{stored.name}'", seen, stored.revision, by)


def _found(caller: Any, edited: Any) -> OpenEntry:
    return entry_to_change(caller, f"{edited['book']}#{edited['uid']}")


def _remember(caller: Any, found: OpenEntry, *, by: str) -> None:
    edited = {
        "book": found.of.name,
        "uid": found.entry.uid,
        "revision": found.of.stored.revision,
        "by": by,
    }
    caller.attributes.add(ATTRIBUTE, edited, category=CATEGORY)


def _edited(caller: Any) -> Any:
    return caller.attributes.get(ATTRIBUTE, category=CATEGORY)
