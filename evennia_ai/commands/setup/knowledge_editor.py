"""Editing a page of a knowledge base in Evennia's line editor.

The text has its metadata in front, as in a file, so that all of a page is edited in one place. As
for lorebooks the editor survives a reload, and whoever saves second is told: nothing is overwritten
and what was typed is shown when the editor is left.
"""

from typing import Any, Final

from evennia.utils.eveditor import EvEditor

from evennia_ai.commands.setup.editing import CATEGORY, forget_edited
from evennia_ai.commands.setup.knowledge_named import (
    ACCESS,
    base_named,
    base_to_change,
    may_see,
    stored_base,
)
from evennia_ai.commands.setup.lore_locks import checked_locks
from evennia_ai.commands.shown import shown_line
from evennia_ai.commands.strict import CommandError
from evennia_ai.errors import EvenniaAIError
from evennia_ai.knowledge.backends import Draft
from evennia_ai.knowledge.markup import read_page, write_page
from evennia_ai.knowledge.pages import BaseInfo, Page
from evennia_ai.knowledge.titles import PageName, page_name
from evennia_ai.store import pages as store

ATTRIBUTE: Final = "edited_page"


def open_editor(caller: Any, info: BaseInfo, name: PageName, *, by: str) -> None:
    """Open the line editor on a page for `caller`; one that is not there is made by saving."""
    page = page_to_change(caller, info, name)
    _remember(caller, info.key, page.name if page else name, page.revision if page else "", by=by)
    if page is None:
        caller.msg(shown_line(f"{info.key}/{name} is new: what you save makes it."))
    EvEditor(
        caller,
        loadfunc=load_text,
        savefunc=save_text,
        quitfunc=leave_editor,
        key=shown_line(f"{info.key}/{page.name if page else name}"),
        persistent=True,
    )


def page_to_change(caller: Any, info: BaseInfo, name: PageName) -> Page | None:
    """The page as it is stored, a redirect as itself; None where there is none.

    CommandError: its lock hides it from `caller`, or its base is not in the game's database.
    """
    page = store.page(stored_base(info).key, name, follow=False)
    if page is not None and not may_see(caller, page):
        raise CommandError(
            f"You may not write {info.key}/{name}: there is something that you may not see."
            " Nothing was changed."
        )
    return page


def load_text(caller: Any) -> str:
    """The text as it was when the editor was opened, for EvEditor."""
    edited = _edited(caller)
    page = page_to_change(caller, base_named(caller, edited["base"]), page_name(edited["page"]))
    return write_page(page) if page else ""


def save_text(caller: Any, text: str) -> bool:
    """Store the editor's text; true where it was stored, for EvEditor."""
    edited = _edited(caller)
    try:
        saved = _saved(caller, edited, text)
    except EvenniaAIError as error:
        edited["refused"] = text
        caller.msg(shown_line(f"Not saved: {error}"))
        return False
    _remember(caller, edited["base"], saved.name, saved.revision, by=edited["by"])
    caller.msg(shown_line(f"Saved {saved.base}/{saved.name} as revision {saved.revision}."))
    return True


def leave_editor(caller: Any) -> None:
    """Forget what was edited, for EvEditor."""
    forget_edited(caller, ATTRIBUTE)


def _saved(caller: Any, edited: Any, text: str) -> Page:
    """The page with this text; it is asked again whether `caller` may write it."""
    name = page_name(edited["page"])
    now = page_to_change(caller, base_to_change(caller, edited["base"]), name)
    page = read_page(name, text)
    if page.locks and page.locks != (now.locks if now else ""):
        checked_locks(caller, page.locks, access=ACCESS, thing="page")
    return store.save_page(edited["base"], Draft(page=page, was=edited["was"], by=edited["by"]))


def _remember(caller: Any, base: str, name: PageName, was: str, *, by: str) -> None:
    edited = {"base": base, "page": name.full, "was": was, "by": by}
    caller.attributes.add(ATTRIBUTE, edited, category=CATEGORY)


def _edited(caller: Any) -> Any:
    return caller.attributes.get(ATTRIBUTE, category=CATEGORY)
