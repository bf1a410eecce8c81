"""What the texts of one prompt carry on to those behind them: variables, in the order of the list.

Text that nobody vouches for has variables of its own: it reads what the game's own texts set, and
what it sets is seen by such text alone. Else a card without a grant, which may stand nowhere but in
the history as a user's, would speak through whatever text names a variable.

Whoever expands a list asks for the variables of one text, and takes back its effect. An effect is a
value: what a text did once it would do again, while all it reads is as it was.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from evennia_ai.prompt.templates.variables import (
    MAX_MOVED,
    MAX_MOVED_CONTAINED,
    MAX_VARIABLES,
    Found,
    Variable,
    Variables,
)

_MOST_NAMED: Final = 5


class Effect(NamedTuple):
    """What one text did to the variables: what it set, how many characters it set and read."""

    changed: Found = {}
    moved: int = 0
    contained: bool = False
    is_short: bool = False
    """Whether it ended at a limit that all texts share: in another company it might not."""


NO_EFFECT: Final = Effect()


class Carried(NamedTuple):
    """The variables that are set, by whether somebody vouches for the text that set them."""

    granted: Found = {}
    contained: Found = {}
    moved: int = 0
    moved_contained: int = 0

    def variables(self, *, contained: bool) -> Variables:
        """The variables as one text finds them."""
        if contained:
            return Variables(
                self.contained,
                under=self.granted,
                room=MAX_MOVED_CONTAINED - self.moved_contained,
                new=MAX_VARIABLES - len(self.contained),
            )
        return Variables(
            self.granted, room=MAX_MOVED - self.moved, new=MAX_VARIABLES - len(self.granted)
        )


NOTHING_CARRIED: Final = Carried()


class Store:
    """The variables of a list of texts while it is expanded."""

    __slots__ = ("_contained", "_granted", "_moved", "is_short")

    def __init__(self, before: Carried) -> None:
        self._granted = dict(before.granted)
        self._contained = dict(before.contained)
        self._moved = [before.moved, before.moved_contained]
        self.is_short = False
        """Whether some text ended at a limit that all share."""

    @property
    def now(self) -> Carried:
        """What is set; it changes with the store, so it is for one text."""
        return Carried(self._granted, self._contained, *self._moved)

    def take(self, effect: Effect) -> None:
        """What a text did."""
        changed = self._contained if effect.contained else self._granted
        changed.update(effect.changed)
        self._moved[effect.contained] += effect.moved
        limit = MAX_MOVED_CONTAINED if effect.contained else MAX_MOVED
        if effect.is_short or self._moved[effect.contained] > limit or len(changed) > MAX_VARIABLES:
            self.is_short = True


def effect_of(variables: Variables, *, contained: bool, failed: bool = False) -> Effect:
    """What a text did that was given these variables; one that failed set nothing."""
    changed: Found = {} if failed else variables.changed
    return Effect(changed, variables.moved, contained, variables.is_short)


class Changed:
    """The variables whose value is another one than the last time the list was expanded."""

    __slots__ = ("_contained", "_granted")

    def __init__(self) -> None:
        self._granted: set[Variable] = set()
        self._contained: set[Variable] = set()

    def since(self, before: Carried, now: Carried) -> None:
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


def told(variables: Variables) -> str:
    """Which variables a text set and read, for its verdict; "" for none."""
    found = ("sets", variables.changed), ("reads", variables.read)
    return "; ".join(f"{word} {_listed(names)}" for word, names in found if names)


def _listed(names: Mapping[Variable, object]) -> str:
    shown = [str(name)[:40] for name in list(names)[:_MOST_NAMED]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
