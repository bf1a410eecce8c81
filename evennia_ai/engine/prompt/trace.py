"""Verdicts: the decision of each stage about each thing it saw, with the reason.

The stages return them, and together they are the trace. Nothing else is logged.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, Protocol, Self

from evennia_ai.engine.foreign.fields import Count
from evennia_ai.engine.prompt.memo import typed_frozen_row

Stage = Literal["activate", "recall", "expand", "budget", "place"]


@typed_frozen_row
class Verdict:
    """One stage's decision about one item."""

    stage: Stage
    item: str
    """The origin of the item.

    Examples are `component:mood`, `lore:harbour#7`, `memory:12`, `note:0`, `history` and `event`.
    """
    kept: bool
    reason: str
    tokens: Count = 0
    """The cost of the item, 0 if it was not counted."""
    cause: str | None = None
    """The reason why the item was considered, such as a keyword; None if there is none."""


def not_expanded(item: str, reason: str) -> Verdict:
    """Return the verdict on a text that is not among those of the prompt."""
    return Verdict(stage="expand", item=item, kept=False, reason=reason)


class ManyVerdicts(Protocol):
    """The verdicts of a stage that judges many items of which few matter: lore, memories."""

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """A verdict on every item."""

    @property
    def touched(self) -> tuple[Verdict, ...]:
        """The verdicts on items that something in the conversation concerned."""


Called = Callable[[int], str]
"""Returns the name of a message, given by its absolute index in the history."""


class NamingVerdicts(ManyVerdicts, Protocol):
    """Verdicts that name messages."""

    def calling(self, called: Called) -> Self:
        """Return the verdicts with the names that `called` gives to messages."""


def verdicts_about(verdicts: Iterable[Verdict], item: str) -> Iterator[Verdict]:
    """Yield the verdicts about an item.

    A bare key means the component, note or entry of that key.
    """
    for verdict in verdicts:
        if verdict.item == item or verdict.item.partition(":")[2] == item:
            yield verdict
