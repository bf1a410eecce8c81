"""What the texts of one prompt hand on to those behind them: variables, and work that was done.

Text that nobody vouches for has variables of its own: it reads what the game's own texts set, and
what it sets is seen by such text alone. Else a card without a grant, which may stand nowhere but in
the history as a user's, would speak through whatever text names a variable.

Whoever expands a list asks for the variables and the meter of one text, and takes back its effect.
An effect is a value: what a text did once it would do again, while all it reads is as it was. Its
work counts in each turn, also where it was not done again, so that a turn gives the same prompt
whatever was remembered.
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
    """What one text did: the variables it set, and the work that it took."""

    changed: Found = {}
    work: int = 0
    contained: bool = False
    ran_out: bool = False
    """Whether it ended because no work was left: in another company it might not."""


NO_EFFECT: Final = Effect()


class MacroState(NamedTuple):
    """What the texts of a turn hand on: the variables that are set, and the work that was done.

    Both are told apart by whether somebody vouches for the text.
    """

    granted: Found = {}
    contained: Found = {}
    work: int = 0
    work_contained: int = 0
    work_of_lore: int = 0

    @property
    def left(self) -> int:
        """The work that is left for the texts of the prompt; below 0 where it was too much."""
        return PLACED_WORK - self.work - self.work_contained - self.work_of_lore

    def meter(self, *, contained: bool) -> Meter:
        """The work that one text may do."""
        left = self.left
        return Meter(min(left, CONTAINED_WORK - self.work_contained) if contained else left)

    @property
    def left_for_lore(self) -> int:
        """The work that the entries of lore may do."""
        return min(self.left, LORE_WORK - self.work_of_lore)

    def variables(self, meter: Meter, *, contained: bool) -> Variables:
        """The variables as one text finds them."""
        if contained:
            return Variables(self.contained, under=self.granted, meter=meter)
        return Variables(self.granted, meter=meter)


EMPTY_STATE: Final = MacroState()


class MacroStore:
    """What a list of texts hands on while it is expanded."""

    __slots__ = ("_contained", "_granted", "_of_lore", "_work", "ran_out")

    def __init__(self, before: MacroState) -> None:
        self._granted = dict(before.granted)
        self._contained = dict(before.contained)
        self._work = [before.work, before.work_contained]
        self._of_lore = before.work_of_lore
        self.ran_out = False
        """Whether some text ended because no work was left."""

    @property
    def now(self) -> MacroState:
        """What is handed on; it changes with the store, so it is for one text."""
        granted, contained = self._work
        return MacroState(self._granted, self._contained, granted, contained, self._of_lore)

    def take(self, effect: Effect) -> None:
        """What a text did."""
        changed, work, contained, ran_out = effect
        if changed:
            (self._contained if contained else self._granted).update(changed)
        self._work[contained] += work
        self.ran_out = self.ran_out or ran_out

    def fill(self, template: Template, values: Mapping[str, str], dice: Dice) -> str:
        """Return a text of the preset filled in, or as written where that is too much work."""
        meter = self.now.meter(contained=False)
        try:
            return template.render(values, dice, meter=meter)
        except TemplateError:
            return template.source
        finally:
            self.take(Effect(work=meter.spent))

    @property
    def is_too_much(self) -> bool:
        """Whether the texts together took more work than there is."""
        return self.now.left < 0 or self._work[True] > CONTAINED_WORK


class ChangedVariables:
    """The variables whose value is another one than the last time; false while there are none."""

    __slots__ = ("_contained", "_granted")

    def __init__(self) -> None:
        self._granted: set[Variable] = set()
        self._contained: set[Variable] = set()

    def __bool__(self) -> bool:
        return bool(self._granted or self._contained)

    def since(self, before: MacroState, now: MacroState) -> None:
        """What is set before the list now, and what was."""
        if before != now:
            self.note(Effect(before.granted), Effect(now.granted))
            for contained in (before.contained, now.contained):
                self._contained.update(contained)

    def note(self, before: Effect, now: Effect) -> None:
        """What a text did that was expanded again."""
        names = self._contained if now.contained else self._granted
        for name in before.changed.keys() | now.changed.keys():
            if before.changed.get(name) == now.changed.get(name):
                names.discard(name)
            else:
                names.add(name)

    def again(self, effect: Effect) -> None:
        """What a text did that had no need to be expanded: it set the same values as before."""
        names = self._contained if effect.contained else self._granted
        names.difference_update(effect.changed)

    def concerns(self, reads: frozenset[Variable], *, reads_any: bool, contained: bool) -> bool:
        """Whether a text reads one of them; `reads_any` where it is not known which it reads."""
        for names in (self._granted, self._contained) if contained else (self._granted,):
            if names and (reads_any or not reads.isdisjoint(names)):
                return True
        return False


def describe_variables(variables: Variables) -> str:
    """Which variables a text set and read, for its verdict; "" for none."""
    found = ("sets", variables.changed), ("reads", variables.read)
    return "; ".join(f"{word} {_listed(names)}" for word, names in found if names)


def _listed(names: Mapping[Variable, object]) -> str:
    shown = [str(name)[:40] for name in list(names)[:_MOST_NAMED]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
