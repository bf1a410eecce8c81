"""Macro state: the variables that texts of one prompt pass on, and the work that they did.

Contained text, for which nobody vouches, has variables of its own. It reads those of the game's own
texts, but only contained text reads the ones that it sets. Otherwise a card without a grant, which
may only speak in the history as a user, could speak through any text that names a variable.

To expand a list of texts, give each one the variables and the meter of the state, and then add its
effect to the store. An effect is a value: a text has the same effect again as long as everything it
reads is the same. Its work counts in each turn, even if the text was not rendered again. So a turn
gives the same prompt no matter what was remembered.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from evennia_ai.engine.errors import TemplateError
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.templates.template import Template
from evennia_ai.engine.prompt.templates.variables import Found, Variable, Variables
from evennia_ai.engine.prompt.templates.work import CONTAINED_WORK, LORE_WORK, PLACED_WORK, Meter

_MOST_NAMED: Final = 5


class Effect(NamedTuple):
    """The effect of one text: the variables that it set, and the work that it took."""

    changed: Found = {}
    work: int = 0
    contained: bool = False
    ran_out: bool = False
    """True if it ended because no work was left. After other texts it might not have."""


NO_EFFECT: Final = Effect()


class MacroState(NamedTuple):
    """The variables that are set, and the work that was done, before some text of a turn.

    Both are kept apart for contained texts and for all others.
    """

    granted: Found = {}
    contained: Found = {}
    work: int = 0
    work_contained: int = 0
    work_of_lore: int = 0

    @property
    def left(self) -> int:
        """The work that is left for the texts of the prompt, below 0 if they did too much."""
        return PLACED_WORK - self.work - self.work_contained - self.work_of_lore

    def meter(self, *, contained: bool) -> Meter:
        """Return a meter for the work that one text may do."""
        left = self.left
        return Meter(min(left, CONTAINED_WORK - self.work_contained) if contained else left)

    @property
    def left_for_lore(self) -> int:
        """The work that entries of lore may do."""
        return min(self.left, LORE_WORK - self.work_of_lore)

    def variables(self, meter: Meter, *, contained: bool) -> Variables:
        """Return the variables that one text may read."""
        if contained:
            return Variables(self.contained, under=self.granted, meter=meter)
        return Variables(self.granted, meter=meter)


EMPTY_STATE: Final = MacroState()


class MacroStore:
    """The state of a list of texts while it is expanded."""

    __slots__ = ("_contained", "_granted", "_of_lore", "_work", "ran_out")

    def __init__(self, before: MacroState) -> None:
        self._granted = dict(before.granted)
        self._contained = dict(before.contained)
        self._work = [before.work, before.work_contained]
        self._of_lore = before.work_of_lore
        self.ran_out = False
        """True if some text ended because no work was left."""

    @property
    def now(self) -> MacroState:
        """The state for the next text. It changes with the store, so do not keep it."""
        granted, contained = self._work
        return MacroState(self._granted, self._contained, granted, contained, self._of_lore)

    def take(self, effect: Effect) -> None:
        """Add the effect of a text."""
        changed, work, contained, ran_out = effect
        if changed:
            (self._contained if contained else self._granted).update(changed)
        self._work[contained] += work
        self.ran_out = self.ran_out or ran_out

    def fill(self, template: Template, values: Mapping[str, str], dice: Dice) -> str:
        """Return a preset's text filled in, or as written if that is too much work."""
        meter = self.now.meter(contained=False)
        try:
            return template.render(values, dice, meter=meter)
        except TemplateError:
            return template.source
        finally:
            self.take(Effect(work=meter.spent))

    @property
    def is_too_much(self) -> bool:
        """True if the texts together did more work than they may."""
        return self.now.left < 0 or self._work[True] > CONTAINED_WORK


class ChangedVariables:
    """The variables that have another value than in the last pass. False if there are none."""

    __slots__ = ("_contained", "_granted")

    def __init__(self) -> None:
        self._granted: set[Variable] = set()
        self._contained: set[Variable] = set()

    def __bool__(self) -> bool:
        return bool(self._granted or self._contained)

    def since(self, before: MacroState, now: MacroState) -> None:
        """Add the variables that differ before the first text from those of the last pass."""
        if before != now:
            self.note(Effect(before.granted), Effect(now.granted))
            for contained in (before.contained, now.contained):
                self._contained.update(contained)

    def note(self, before: Effect, now: Effect) -> None:
        """Compare the effects of a text that was expanded again."""
        names = self._contained if now.contained else self._granted
        for name in before.changed.keys() | now.changed.keys():
            if before.changed.get(name) == now.changed.get(name):
                names.discard(name)
            else:
                names.add(name)

    def again(self, effect: Effect) -> None:
        """Forget the variables of a text that set the same values as before."""
        names = self._contained if effect.contained else self._granted
        names.difference_update(effect.changed)

    def concerns(self, reads: frozenset[Variable], *, reads_any: bool, contained: bool) -> bool:
        """True if a text reads a changed variable.

        Args:
            reads: The variables whose names are written in the text.
            reads_any: True if the text computes names, so that it may read any.
            contained: True if it may read the variables of contained texts.
        """
        for names in (self._granted, self._contained) if contained else (self._granted,):
            if names and (reads_any or not reads.isdisjoint(names)):
                return True
        return False


def describe_variables(variables: Variables) -> str:
    """Return which variables a text set and read, for its verdict; "" for none."""
    found = ("sets", variables.changed), ("reads", variables.read)
    return "; ".join(f"{word} {_listed(names)}" for word, names in found if names)


def _listed(names: Mapping[Variable, object]) -> str:
    shown = [str(name)[:40] for name in list(names)[:_MOST_NAMED]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
