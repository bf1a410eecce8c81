"""Texts in Evennia's line editor: of a component, an entry of lore, a page of knowledge.

The editor survives a reload, so Evennia keeps its functions by their import path, and an attribute
of the builder says what is edited. Its kind finds the text again by that. A builder may have lost
their rights since, so each save makes a new actor, which the store asks. The store also compares
the revision that was loaded: the builder who saves second gets an error, and nothing is
overwritten. The text stays in the editor.
What is saved beside the game may be done when the editor was left already.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from evennia.utils import logger
from evennia.utils.eveditor import EvEditor
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.python.failure import Failure

from evennia_ai.commands.base import shown_line, unexpected
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import EvenniaAIError
from evennia_ai.npc.mind.actors import actor_of
from evennia_ai.npc.speech.output import shown_block

ATTRIBUTE: Final = "edited_text"
CATEGORY: Final = "evennia_ai"

Edited = Mapping[str, Any]
"""What is kept of a text: plain values, by which its kind finds it."""


Saved = tuple[Edited, str]


class EditorKind(NamedTuple):
    """A kind of text."""

    load: Callable[[Any, Edited], str]
    """The text, for who edits it."""

    save: Callable[[Any, Edited, str, Actor], "Saved | Deferred[Saved]"]
    """Stores a text; what is kept from then on, and what is told. EvenniaAIError: it is refused."""

    locks: str
    """The lock of the command that edits this kind; its access type `cmd` is asked at each save."""


EDITOR_KINDS: Final[dict[str, EditorKind]] = {}
"""By name; whoever edits a kind of text puts it in."""


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


def load_text(caller: Any) -> str:
    """The text as it was when the editor was opened, for EvEditor."""
    edited = _kept(caller)
    return EDITOR_KINDS[edited["kind"]].load(caller, edited)


def save_text(caller: Any, text: str) -> bool:
    """Store the editor's text; true where it was stored, for EvEditor."""
    edited = _loaded(caller)
    kind = EDITOR_KINDS[edited["kind"]]
    saving = maybeDeferred(kind.save, caller, edited, text, actor_of(caller, kind.locks))
    is_stored: list[bool] = []
    saving.addCallbacks(
        partial(_stored, caller, edited), partial(_refused, caller, edited, text)
    ).addCallbacks(is_stored.append, logger.log_trace)
    if not is_stored:
        caller.msg("It is being saved; you are told when it is.")
    return is_stored[0] if is_stored else True


def leave_editor(caller: Any) -> None:
    """Forget what was edited; show what was not saved, which `:wq` left too. For EvEditor."""
    refused = _kept(caller).get("refused")
    caller.attributes.remove(ATTRIBUTE, category=CATEGORY)
    if refused is None:
        caller.msg("Left the editor.")
        return
    caller.msg("Left the editor. This was not saved; copy what you still need:")
    caller.msg(shown_block(refused))


def _stored(caller: Any, edited: Edited, saved: Saved) -> bool:
    """Keep what the text is now, where it is still edited, and tell what came of it."""
    now, told = saved
    if _loaded(caller) == edited:
        _keep(caller, edited["kind"], now)
    caller.msg(shown_line(told))
    return True


def _refused(caller: Any, edited: Edited, text: str, failure: Failure) -> bool:
    """Tell why a text was not saved; it is not lost, also where the editor was left."""
    is_known = isinstance(failure.value, EvenniaAIError)
    why = str(failure.value) if is_known else unexpected(failure)
    caller.msg(shown_line(f"Not saved: {why}"))
    if _loaded(caller) != edited:
        caller.msg("The editor was left. Copy what you still need:")
        caller.msg(shown_block(text))
        return False
    _kept(caller)["refused"] = text
    if caller.ndb._eveditor is not None:
        caller.ndb._eveditor._unsaved = True  # `:w` tries again
    return False


def _loaded(caller: Any) -> Edited:
    """What is edited, as it was loaded or saved last; nothing where the editor was left."""
    kept = _kept(caller) or {}
    return {name: value for name, value in kept.items() if name != "refused"}


def _keep(caller: Any, kind: str, edited: Edited) -> None:
    caller.attributes.add(ATTRIBUTE, {**edited, "kind": kind}, category=CATEGORY)


def _kept(caller: Any) -> Any:
    return caller.attributes.get(ATTRIBUTE, category=CATEGORY)
