"""Texts in Evennia's line editor: of a component, an entry of lore, a page of knowledge.

The editor survives a reload, so Evennia keeps its functions by their import path, and an attribute
of the builder says what is edited. Its kind finds the text again by that, asks for locks again, and
compares the revision that was loaded: whoever was second is told, and nothing is overwritten.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from evennia.utils.eveditor import EvEditor

from evennia_ai.commands.base import shown_block, shown_line
from evennia_ai.errors import EvenniaAIError

ATTRIBUTE: Final = "edited_text"
CATEGORY: Final = "evennia_ai"

Edited = Mapping[str, Any]
"""What is kept of a text: plain values, by which its kind finds it."""


class Kind(NamedTuple):
    """A kind of text."""

    load: Callable[[Any, Edited], str]
    """The text, for who edits it."""

    save: Callable[[Any, Edited, str], tuple[Edited, str]]
    """Stores a text; what is kept from then on, and what is told. EvenniaAIError: it is refused."""


KINDS: Final[dict[str, Kind]] = {}
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
    return KINDS[edited["kind"]].load(caller, edited)


def save_text(caller: Any, text: str) -> bool:
    """Store the editor's text; true where it was stored, for EvEditor."""
    edited = _kept(caller)
    try:
        now, told = KINDS[edited["kind"]].save(caller, edited, text)
    except EvenniaAIError as error:
        edited["refused"] = text
        caller.msg(shown_line(f"Not saved: {error}"))
        return False
    _keep(caller, edited["kind"], now)
    caller.msg(shown_line(told))
    return True


def leave_editor(caller: Any) -> None:
    """Forget what was edited; show what was not saved, which `:wq` left too. For EvEditor."""
    refused = _kept(caller).get("refused")
    caller.attributes.remove(ATTRIBUTE, category=CATEGORY)
    if refused is None:
        caller.msg("Left the editor.")
        return
    caller.msg("Left the editor. This was not saved; copy what you still need:")
    caller.msg(shown_block(refused))


def _keep(caller: Any, kind: str, edited: Edited) -> None:
    caller.attributes.add(ATTRIBUTE, {**edited, "kind": kind}, category=CATEGORY)


def _kept(caller: Any) -> Any:
    return caller.attributes.get(ATTRIBUTE, category=CATEGORY)
