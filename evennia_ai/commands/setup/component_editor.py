"""Editing a component's content in Evennia's line editor.

The editor survives a reload, so it keeps its functions by their import path and what it edits in an
attribute of the builder. The revision that was loaded is compared when it is saved: whoever was
second is told, and nothing is overwritten.
"""

from typing import Any, Final

from evennia.utils.eveditor import EvEditor

from evennia_ai.commands.setup.component_shown import labelled, remarks
from evennia_ai.commands.shown import shown_block, shown_line
from evennia_ai.errors import EvenniaAIError
from evennia_ai.prompt.components import PromptComponent, Scope
from evennia_ai.store.authored import components as store

ATTRIBUTE: Final = "edited_component"
CATEGORY: Final = "evennia_ai"


def open_editor(caller: Any, component: PromptComponent, *, by: str) -> None:
    """Open the line editor on the content of `component` for `caller`."""
    _remember(caller, component, by=by)
    EvEditor(
        caller,
        loadfunc=load_content,
        savefunc=save_content,
        quitfunc=leave_editor,
        key=shown_line(labelled(component)),
        persistent=True,
    )


def load_content(caller: Any) -> str:
    """The content as it was when the editor was opened, for EvEditor."""
    edited = _edited(caller)
    scope = Scope(kind=edited["scope_kind"], ref=edited["scope_ref"])
    return store.registry().get(edited["key"], scope=scope).content


def save_content(caller: Any, text: str) -> bool:
    """Store the editor's text; true where it was stored, for EvEditor."""
    edited = _edited(caller)
    try:
        saved = store.update(
            edited["key"],
            by=edited["by"],
            scope=Scope(kind=edited["scope_kind"], ref=edited["scope_ref"]),
            seen_revision=edited["revision"],
            content=text,
        )
    except EvenniaAIError as error:
        edited["refused"] = text
        caller.msg(shown_line(f"Not saved: {error}"))
        return False
    _remember(caller, saved, by=edited["by"])
    told = f"Saved {labelled(saved)} as revision {saved.revision}.{remarks(saved)}"
    caller.msg(shown_line(told))
    return True


def leave_editor(caller: Any) -> None:
    """Forget what was edited, for EvEditor."""
    forget_edited(caller, ATTRIBUTE)


def forget_edited(caller: Any, attribute: str) -> None:
    """Forget what the attribute says is edited; show what was not saved, which `:wq` left too."""
    refused = caller.attributes.get(attribute, category=CATEGORY).get("refused")
    caller.attributes.remove(attribute, category=CATEGORY)
    if refused is None:
        caller.msg("Left the editor.")
        return
    caller.msg("Left the editor. This was not saved; copy what you still need:")
    caller.msg(shown_block(refused))


def _remember(caller: Any, component: PromptComponent, *, by: str) -> None:
    edited = {
        "key": component.key,
        "scope_kind": component.scope.kind,
        "scope_ref": component.scope.ref,
        "revision": component.revision,
        "by": by,
    }
    caller.attributes.add(ATTRIBUTE, edited, category=CATEGORY)


def _edited(caller: Any) -> Any:
    return caller.attributes.get(ATTRIBUTE, category=CATEGORY)
