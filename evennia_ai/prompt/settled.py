"""What stands before the history is the same from turn to turn: texts of the request are refused.

A provider keeps the beginning of a prompt, and who speaks or what time it is would change it with
every turn. Each door through which components come asks here: the store, scenarios, proposed
edits and the import of cards. Dice and outlets of lore may stand there; their authors are told.
"""

from typing import Final

from evennia_ai.errors import ComponentValueError, TemplateError
from evennia_ai.prompt.components import HISTORY_ID, PromptComponent
from evennia_ai.prompt.template import compile_template

_SPEAKER: Final = frozenset({"speaker"})
# Names that others fill with the moment; here they have no value, and would be sent as written.
_MOMENT: Final = frozenset({"time", "date", "weekday", "isotime", "isodate"})


def check_settled(component: PromptComponent) -> None:
    """Refuse a component whose text is about the request where every request begins with it.

    A volatile one moves behind the history, and a disabled one stands nowhere. Imported text knows
    no names of the moment: they stay as they are written, the same in each turn.
    ComponentValueError: it says what the component may not have, and the way out.
    """
    c = component
    if not c.enabled or c.volatile or c.placement == "history" or c.id >= HISTORY_ID:
        return
    names = _SPEAKER if c.trust == "imported" else _SPEAKER | _MOMENT
    found = [name for name in _names(c) if name in names]
    if found:
        written = " and ".join(f"{{{{{name}}}}}" for name in found)
        raise ComponentValueError(
            "content",
            c.content,
            f"without {written}, because '{c.key}' (ID {c.id}) stands before the history, which"
            " begins alike in every turn; give it a place behind the history (an ID from"
            f" {HISTORY_ID + 1} on), a depth in it, or make it volatile first",
        )


def _names(component: PromptComponent) -> tuple[str, ...]:
    """The names of values in its text; none where it is no template, which is told elsewhere."""
    try:
        return compile_template(component.content, trust=component.trust).names
    except TemplateError:
        return ()
