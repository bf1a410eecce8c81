"""Variables and outlets: values that lore entries provide to components of the prompt.

An entry can only read variables that it sets itself, because activation ends before any component
is expanded. Activation must expand entries early: it searches their texts for keys of other
entries.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from evennia_ai.engine.errors import TemplateError
from evennia_ai.engine.lorebook.activation.candidate import ActiveEntry
from evennia_ai.engine.lorebook.book import Lorebook, handing_on, is_moved
from evennia_ai.engine.lorebook.entry import LoreEntry
from evennia_ai.engine.prompt.components import Grant
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.filling import Effect, MacroState, MacroStore
from evennia_ai.engine.prompt.memo import Slot
from evennia_ai.engine.prompt.prefix_rules import (
    BY_KEY,
    NO_SOURCES,
    Dependence,
    SpeechSources,
    conditions_dependence,
    template_dependence,
)
from evennia_ai.engine.prompt.templates.template import Template
from evennia_ai.engine.prompt.templates.variables import NOTHING_SET, Variable, Variables

_SAID_SOURCES: Final = Slot[SpeechSources]("said sources")
_SETTING: Final = Slot[Mapping[str, Template]]("entries that set variables")
# A variable can bring an entry's text to any place and role of the prompt. If a book lacks one of
# these grants, its variables are contained: only texts that are as untrusted as they are, such as a
# card without grants, can read them.
_VOUCHED: Final[frozenset[Grant]] = frozenset({"roles", "positions"})


class _Setter(NamedTuple):
    template: Template
    contained: bool


def variables_of(
    entries: Sequence[ActiveEntry],
    books: Iterable[Lorebook],
    before: MacroState,
    *,
    values: Mapping[str, str],
    dice: Dice,
) -> MacroState:
    """Return the variables in `before` plus those that the active entries set."""
    setters = {
        (book.label, uid): _Setter(template, not book.grants >= _VOUCHED)
        for book in books
        for uid, template in _setters_of(book).items()
    }
    if not setters:
        return before
    store = MacroStore(before)
    for entry in entries:
        setter = setters.get((entry.book, entry.uid))
        if setter is not None:
            meter = store.now.meter(contained=setter.contained)
            variables, changed = Variables(meter=meter), NOTHING_SET
            # A text that cannot be rendered is used as written, so it sets no variables.
            with suppress(TemplateError):
                setter.template.render(values, dice, meter=meter, variables=variables)
                changed = variables.changed
            store.take(Effect(changed, meter.spent, setter.contained))
    return store.now


def speech_sources(books: Iterable[Lorebook]) -> SpeechSources:
    """Return the outlets and variables of the books whose contents depend on what is said."""
    found = NO_SOURCES
    for book in books:
        known = book.memo.get(_SAID_SOURCES)
        if known is None:
            known = book.memo[_SAID_SOURCES] = _speech_sources_of(book)
        if known is not NO_SOURCES:
            found = known if found is NO_SOURCES else found.merged(known)
    return found


def entry_dependence(entry: LoreEntry) -> Dependence | None:
    """Return why the text of an active entry depends on what is said; None if it does not.

    An entry with keys depends on what is said, because somebody must say a key. A constant entry
    depends on what is said if it is in a group, where an entry with keys may beat it, or if it
    waits for keys or for other entries. It depends on the moment if it has a condition on something
    that changes, for example on who speaks.
    """
    named = template_dependence(entry.template)
    if named is not None:
        return named
    if not entry.constant or entry.grouping.names or _waits_for_keys(entry):
        return BY_KEY
    return conditions_dependence(entry.conditions)


def _waits_for_keys(entry: LoreEntry) -> bool:
    """True if keys in decorators, or entries that activate others, decide about the entry."""
    gates = entry.gates
    return bool(gates.additional or gates.excluded or entry.recursion.delay_level)


def _speech_sources_of(book: Lorebook) -> SpeechSources:
    """Return the outlets and variables of one book whose contents depend on what is said."""
    outlets: dict[str, Dependence] = {}
    variables: dict[Variable, Dependence] = {}
    any_variable: Dependence | None = None
    for index in handing_on(book):
        entry = book.entries[index]
        uses = entry.template.uses
        why = entry_dependence(entry) if entry.enabled else None
        if why is None:
            continue
        if entry.position == "outlet" and not is_moved("outlet", book.grants):
            outlets[entry.outlet] = _stronger_dependence(outlets.get(entry.outlet), why)
        if book.grants >= _VOUCHED:
            handed = Dependence(
                f"entry {entry.uid} of book '{book.label}' {why.reason}", why.repeats
            )
            for variable in uses.sets:
                variables[variable] = _stronger_dependence(variables.get(variable), handed)
            if uses.computes_names:
                any_variable = _stronger_dependence(any_variable, handed)
    if not (outlets or variables or any_variable):
        return NO_SOURCES
    return SpeechSources(outlets=outlets, variables=variables, any_variable=any_variable)


def _stronger_dependence(known: Dependence | None, why: Dependence) -> Dependence:
    return known if known is not None and known.repeats >= why.repeats else why


def _setters_of(book: Lorebook) -> Mapping[str, Template]:
    """Return the texts of a book's entries that set variables, by uid of the entry."""
    known = book.memo.get(_SETTING)
    if known is None:
        several = [book.entries[index] for index in handing_on(book)]
        known = book.memo[_SETTING] = {
            entry.uid: entry.template
            for entry in several
            if entry.template.uses.sets or entry.template.uses.computes_names
        }
    return known
