"""Macro state: the variables that the texts of one prompt set, and the work that they used.

Contained text is untrusted text that may only be in the history, in the role user. It has
variables of its own. It can read variables of the game's own texts, but only other contained text
can read the variables that it sets. Otherwise a card without a grant could place its words in any
text that names a variable.

To expand a list of texts, give each text the variables and the meter of the state, and then add
its effect to the store. An effect is the variables that a text set and the work that it used. It
can be cached: as long as everything that a text reads is unchanged, its effect is the same. Its
work is charged in each turn, even if the text was not expanded again. So the prompt of a turn does
not depend on caches.
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
    """The effect of expanding one text: the variables that it set, and the work that it used."""

    changed: Found = {}
    work: int = 0
    contained: bool = False
    ran_out: bool = False
    """True if the text ended because no work was left. Then the effect must not be reused, because
    after other texts there may be enough work."""


NO_EFFECT: Final = Effect()


class MacroState(NamedTuple):
    """The variables that are set, and the work that was used, before some text of a prompt.

    Contained (untrusted) texts have their own variables and their own count of work.
    """

    granted: Found = {}
    contained: Found = {}
    work: int = 0
    work_contained: int = 0
    work_of_lore: int = 0

    @property
    def left(self) -> int:
        """The work that is left for the texts of the prompt; negative if they used too much."""
        return PLACED_WORK - self.work - self.work_contained - self.work_of_lore

    @property
    def is_too_much(self) -> bool:
        """True if the texts of the prompt together used more work than allowed."""
        return self.left < 0 or self.work_contained > CONTAINED_WORK

    def meter(self, *, contained: bool) -> Meter:
        """Return a meter of the work that the next text may use."""
        left = PLACED_WORK - self.work - self.work_contained - self.work_of_lore
        return Meter(min(left, CONTAINED_WORK - self.work_contained) if contained else left)

    @property
    def left_for_lore(self) -> int:
        """The work that is left for lore entries."""
        return min(self.left, LORE_WORK - self.work_of_lore)

    def variables(self, meter: Meter, *, contained: bool) -> Variables:
        """Return the variables that the next text may read and set."""
        if contained:
            return Variables(self.contained, under=self.granted, meter=meter)
        return Variables(self.granted, meter=meter)


EMPTY_STATE: Final = MacroState()


class MacroStore:
    """The variables and the used work during the expansion of a list of texts."""

    __slots__ = ("_contained", "_granted", "_of_lore", "_work", "ran_out")

    def __init__(self, before: MacroState) -> None:
        self._granted = dict(before.granted)
        self._contained = dict(before.contained)
        self._work = [before.work, before.work_contained]
        self._of_lore = before.work_of_lore
        self.ran_out = False
        """True if some text could not be expanded because no work was left."""

    @property
    def now(self) -> MacroState:
        """The variables and the used work for the next text.

        The store changes this object later, so do not keep it.
        """
        granted, contained = self._work
        return MacroState(self._granted, self._contained, granted, contained, self._of_lore)

    def take(self, effect: Effect) -> None:
        """Add the variables that a text set and the work that it used to this store."""
        changed, work, contained, ran_out = effect
        if changed:
            (self._contained if contained else self._granted).update(changed)
        self._work[contained] += work
        self.ran_out = self.ran_out or ran_out

    def expand_or_keep(self, template: Template, values: Mapping[str, str], dice: Dice) -> str:
        """Expand a text of a preset; return it as written if expanding needs too much work."""
        meter = self.now.meter(contained=False)
        try:
            return template.render(values, dice, meter=meter)
        except TemplateError:
            return template.source
        finally:
            self.take(Effect(work=meter.spent))


class ChangedVariables:
    """The variables whose value differs from the last expansion; falsy if there are none."""

    __slots__ = ("_contained", "_granted")

    def __init__(self) -> None:
        self._granted: set[Variable] = set()
        self._contained: set[Variable] = set()

    def __bool__(self) -> bool:
        return bool(self._granted or self._contained)

    def compare_initial_states(self, before: MacroState, now: MacroState) -> None:
        """Add the variables whose value before the first text differs from the last expansion."""
        if before != now:
            self.compare_effects(Effect(before.granted), Effect(now.granted))
            for contained in (before.contained, now.contained):
                self._contained.update(contained)

    def compare_effects(self, before: Effect, now: Effect) -> None:
        """Add variables that a text now sets to another value; drop those set to the old value."""
        names = self._contained if now.contained else self._granted
        for name in before.changed.keys() | now.changed.keys():
            if before.changed.get(name) == now.changed.get(name):
                names.discard(name)
            else:
                names.add(name)

    def drop_variables_of(self, effect: Effect) -> None:
        """Drop the variables of a text that is not expanded again, because they are unchanged."""
        names = self._contained if effect.contained else self._granted
        names.difference_update(effect.changed)

    def affect_text(self, reads: frozenset[Variable], *, reads_any: bool, contained: bool) -> bool:
        """True if a text reads one of the changed variables.

        Args:
            reads: The variables whose names are written in the text.
            reads_any: True if the text computes names of variables, so it may read any variable.
            contained: True if the text may read the variables of contained texts.
        """
        for names in (self._granted, self._contained) if contained else (self._granted,):
            if names and (reads_any or not reads.isdisjoint(names)):
                return True
        return False


def describe_variables(variables: Variables) -> str:
    """Describe, for a verdict, which variables a text set and read; "" if there are none."""
    found = ("sets", variables.changed), ("reads", variables.read)
    return "; ".join(f"{word} {_listed(names)}" for word, names in found if names)


def _listed(names: Mapping[Variable, object]) -> str:
    shown = [str(name)[:40] for name in list(names)[:_MOST_NAMED]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
