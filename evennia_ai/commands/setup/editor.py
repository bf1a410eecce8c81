"""Evennia's line editor for texts of builders, such as components, lore entries or pages.

The editor survives a reload of the server. So Evennia stores its functions by their import path,
and an attribute of the builder says which text is edited. Each save checks the builder's rights
again, because they may have changed. It also compares the revision that was loaded: the builder who
saves second gets an error, nothing is overwritten, and the text stays in the editor. A save that
needs another thread may end after the builder has left the editor.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from evennia.utils import logger
from evennia.utils.eveditor import EvEditor
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.python.failure import Failure

from evennia_ai.commands.base import shown_line, unexpected
from evennia_ai.commands.kept_cases import edits_made, note_edit
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import EvenniaAIError
from evennia_ai.npc.mind.actors import actor_of
from evennia_ai.npc.speech.output import escape_block

ATTRIBUTE: Final = "edited_text"
CATEGORY: Final = "evennia_ai"

Edited = Mapping[str, Any]
"""What is stored about an edited text: plain values with which its kind finds it again."""


Saved = tuple[Edited, str]


class EditorKind(NamedTuple):
    """A kind of text that can be edited, such as components or pages."""

    load: Callable[[Any, Edited], str]
    """Returns the text for the builder who edits it."""

    save: Callable[[Any, Edited, str, Actor], "Saved | Deferred[Saved]"]
    """Stores a text. Returns what to remember of it and a line for the builder. Raises
    EvenniaAIError if the text is refused."""

    locks: str
    """The lock of the command that edits this kind. Its access type `cmd` is checked at each save.
    """


EDITOR_KINDS: Final[dict[str, EditorKind]] = {}
"""The kinds by name. Each module that edits a kind of text adds it here."""


def open_editor(caller: Any, kind: str, edited: Edited, *, label: str) -> None:
    """Open the line editor on a text for `caller`."""
    _keep(caller, kind, edited)
    EvEditor(
        caller,
        loadfunc=load_text,
        savefunc=save_text,
        quitfunc=leave_editor,
        key=shown_line(label),
        persistent=True,
    )
    caller.msg("Each line you type now goes into this text. :wq saves and leaves; :q! only leaves.")


def load_text(caller: Any) -> str:
    """Return the text as it was when the editor was opened. Called by EvEditor."""
    edited = _kept(caller)
    return EDITOR_KINDS[edited["kind"]].load(caller, edited)


def save_text(caller: Any, text: str) -> bool:
    """Store the editor's text. Return True unless it was refused. Called by EvEditor."""
    edited, before = _loaded(caller), edits_made()
    kind = EDITOR_KINDS[edited["kind"]]
    saving = maybeDeferred(kind.save, caller, edited, text, actor_of(caller, kind.locks))
    is_stored: list[bool] = []
    saving.addCallbacks(
        partial(_stored, caller, edited, before), partial(_refused, caller, edited, text)
    ).addCallbacks(is_stored.append, logger.log_trace)
    if not is_stored:
        caller.msg("The text is being saved; you get a message when it is done.")
    return is_stored[0] if is_stored else True


def leave_editor(caller: Any) -> None:
    """Forget the edited text. Show it if it was not saved, which can happen after `:wq`."""
    refused = _kept(caller).get("refused")
    caller.attributes.remove(ATTRIBUTE, category=CATEGORY)
    if refused is None:
        caller.msg("Left the editor.")
        return
    caller.msg("Left the editor. This was not saved; copy what you still need:")
    caller.msg(escape_block(refused))


def _stored(caller: Any, edited: Edited, edits_before: int, saved: Saved) -> bool:
    """Remember the saved text if it is still being edited. Tell the builder what was saved."""
    now, told = saved
    if _loaded(caller) == edited:
        _keep(caller, edited["kind"], now)
    caller.msg(shown_line(told))
    note_edit(edits_before, caller.msg)
    return True


def _refused(caller: Any, edited: Edited, text: str, failure: Failure) -> bool:
    """Tell the builder why a text was not saved. Show the text if the editor was left."""
    is_known = isinstance(failure.value, EvenniaAIError)
    why = str(failure.value) if is_known else unexpected(failure)
    caller.msg(shown_line(f"Not saved: {why}"))
    if _loaded(caller) != edited:
        caller.msg("You have left the editor. Copy what you still need:")
        caller.msg(escape_block(text))
        return False
    _kept(caller)["refused"] = text
    if caller.ndb._eveditor is not None:
        # The text counts as unsaved again, so `:w` tries once more.
        caller.ndb._eveditor._unsaved = True
    return False


def _loaded(caller: Any) -> Edited:
    """Return what is edited, as last loaded or saved, or nothing if the editor was left."""
    kept = _kept(caller) or {}
    return {name: value for name, value in kept.items() if name != "refused"}


def _keep(caller: Any, kind: str, edited: Edited) -> None:
    caller.attributes.add(ATTRIBUTE, {**edited, "kind": kind}, category=CATEGORY)


def _kept(caller: Any) -> Any:
    return caller.attributes.get(ATTRIBUTE, category=CATEGORY)
