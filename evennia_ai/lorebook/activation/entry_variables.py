"""What active entries of lore set for the components of the prompt: variables, in their order.

Which entries are active is known before any component is expanded, and their texts decide which
others wake: so an entry reads what it sets itself, and nothing that other texts set.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from evennia_ai.errors import TemplateError
from evennia_ai.lorebook.activation.candidate import ActiveEntry
from evennia_ai.lorebook.book import Lorebook
from evennia_ai.prompt.carried import Carried, Effect, Store
from evennia_ai.prompt.components import Grant
from evennia_ai.prompt.dice import Dice
from evennia_ai.prompt.memo import Slot
from evennia_ai.prompt.templates.template import Template
from evennia_ai.prompt.templates.variables import NOTHING_SET, Variables

_SETTING: Final = Slot[Mapping[str, Template]]("entries that set variables")
# With fewer a book's text may not stand everywhere, so that not every text may read from it.
_VOUCHED: Final[frozenset[Grant]] = frozenset({"roles", "positions"})


class _Setter(NamedTuple):
    template: Template
    contained: bool


def variables_of(
    entries: Sequence[ActiveEntry],
    books: Iterable[Lorebook],
    before: Carried,
    *,
    values: Mapping[str, str],
    dice: Dice,
) -> Carried:
    """Return what was handed on `before`, with the variables that active entries of books set."""
    setters = {
        (book.label, uid): _Setter(template, not book.grants >= _VOUCHED)
        for book in books
        for uid, template in _setting(book).items()
    }
    if not setters:
        return before
    store = Store(before)
    for entry in entries:
        setter = setters.get((entry.book, entry.uid))
        if setter is not None:
            meter = store.now.meter(contained=setter.contained)
            variables, changed = Variables(meter=meter), NOTHING_SET
            # A text that cannot be rendered stays as it is written, and sets nothing.
            with suppress(TemplateError):
                setter.template.render(values, dice, meter=meter, variables=variables)
                changed = variables.changed
            store.take(Effect(changed, meter.spent, setter.contained))
    return store.now


def _setting(book: Lorebook) -> Mapping[str, Template]:
    """The texts of a book that set variables, by their entry's id."""
    known = book.memo.get(_SETTING)
    if known is None:
        known = {
            entry.uid: entry.template
            for entry in book.entries
            if entry.template.uses.sets or entry.template.uses.computes_names
        }
        book.memo[_SETTING] = known
    return known
