"""Verdicts: what each stage of composing a prompt decided about each item, with the reason.

The stages of the pipeline return verdicts. Together, the verdicts are the trace. Nothing else is
logged.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, Protocol, Self

from evennia_ai.engine.foreign.fields import Count
from evennia_ai.engine.prompt.memo import typed_frozen_row

Stage = Literal["activate", "recall", "expand", "budget", "place"]


@typed_frozen_row
class Verdict:
    """The decision of one stage of composing about one item: whether it was kept, and why."""

    stage: Stage
    item: str
    """The origin of the text or message that was decided about.

    Examples are `component:mood`, `lore:harbour#7`, `memory:12`, `note:0`, `history` and `event`.
    """
    kept: bool
    reason: str
    tokens: Count = 0
    """The tokens of the item; 0 if they were not counted."""
    cause: str | None = None
    """The reason why the item was considered, such as a keyword; None if there is none."""


def not_expanded(item: str, reason: str) -> Verdict:
    """Return a verdict that a text was not expanded and is not in the prompt."""
    return Verdict(stage="expand", item=item, kept=False, reason=reason)


class ManyVerdicts(Protocol):
    """Verdicts on many items of which few matter in a turn, such as lore entries or memories."""

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """A verdict on every item."""

    @property
    def touched(self) -> tuple[Verdict, ...]:
        """The verdicts on items that the conversation concerns, such as entries with found keys."""


Called = Callable[[int], str]
"""A function that returns the name of a message for its absolute index in the history."""


class NamingVerdicts(ManyVerdicts, Protocol):
    """Verdicts that refer to messages by name."""

    def calling(self, called: Called) -> Self:
        """Return these verdicts with names of messages; `called` returns the name for an index."""


def verdicts_about(verdicts: Iterable[Verdict], item: str) -> Iterator[Verdict]:
    """Yield the verdicts about an item.

    A key without a kind refers to the component, note or entry with that key.
    """
    for verdict in verdicts:
        if verdict.item == item or verdict.item.partition(":")[2] == item:
            yield verdict
