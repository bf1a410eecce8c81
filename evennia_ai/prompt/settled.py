"""What may stand before the history: texts that are the same from turn to turn.

`check_settled` refuses texts of the request there: each door through which components come asks it,
the store, scenarios, proposed edits and the import of cards. Dice and outlets of lore may stand
there; their authors are told.
"""

from typing import Final

from evennia_ai.errors import ComponentValueError, TemplateError
from evennia_ai.prompt.components import HISTORY_ID, PromptComponent
from evennia_ai.prompt.templates.macros import SAID_LAST, SPELT
from evennia_ai.prompt.templates.template import compile_template

_SPEAKER: Final = frozenset({"speaker"})
# What was said last, and names that others fill with the moment: here they have no value.
_MOMENT: Final = SAID_LAST.union({"time", "date", "weekday", "isotime", "isodate"})


def check_settled(component: PromptComponent) -> None:
    """Refuse a component whose text is about the request where every request begins with it.

    A volatile one moves behind the history, and a disabled one stands nowhere. Imported text knows
    no names of the time: they stay as they are written, the same in each turn. What was said last
    it may name, and its trace says what that costs.
    ComponentValueError: it says what the component may not have, and the way out.
    """
    c = component
    if not c.enabled or c.volatile or c.placement == "history" or c.id >= HISTORY_ID:
        return
    names = _SPEAKER if c.trust == "imported" else _SPEAKER | _MOMENT
    found = [name for name in _names_in(c) if name in names]
    if found:
        written = " and ".join(f"{{{{{SPELT.get(name, name)}}}}}" for name in found)
        raise ComponentValueError(
            "content",
            c.content,
            f"without {written}, because '{c.key}' (ID {c.id}) stands before the history, which"
            " begins alike in every turn; give it a place behind the history (an ID from"
            f" {HISTORY_ID + 1} on), a depth in it, or make it volatile first",
        )


def _names_in(component: PromptComponent) -> tuple[str, ...]:
    """The names of values in its text; none where it is no template, which is told elsewhere."""
    try:
        return compile_template(component.content, trust=component.trust).names
    except TemplateError:
        return ()
