"""Verdicts: what each stage decided about each thing it saw, and why.

The stages' results are the trace; nothing is logged apart from them.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, Protocol, Self

from evennia_ai.engine.foreign.fields import Count
from evennia_ai.engine.prompt.memo import typed_frozen_row

Stage = Literal["activate", "recall", "expand", "budget", "place"]


@typed_frozen_row
class Verdict:
    """One stage's decision about one item.

    `item` is an origin such as `component:mood`, `lore:harbour#7`, `memory:12`, `note:0`,
    `history`, `event`.
    `tokens` is the item's cost where it was counted, else 0. `cause` says what brought it here.
    """

    stage: Stage
    item: str
    kept: bool
    reason: str
    tokens: Count = 0
    cause: str | None = None


def not_expanded(item: str, reason: str) -> Verdict:
    """The verdict on a text that has no place among those of the prompt."""
    return Verdict(stage="expand", item=item, kept=False, reason=reason)


class ManyVerdicts(Protocol):
    """What a stage tells that judges many items of which few matter: lore, memories."""

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """A verdict on every item."""

    @property
    def touched(self) -> tuple[Verdict, ...]:
        """The verdicts on those that something in the conversation concerned."""


Called = Callable[[int], str]
"""What a message is called, by its absolute index in the history."""


class NamingVerdicts(ManyVerdicts, Protocol):
    """The same where verdicts speak of messages."""

    def calling(self, called: Called) -> Self:
        """The same with each message called as `called` says."""


def verdicts_about(verdicts: Iterable[Verdict], item: str) -> Iterator[Verdict]:
    """The verdicts about `item`; a bare key means the component, note or entry of that key."""
    for verdict in verdicts:
        if verdict.item == item or verdict.item.partition(":")[2] == item:
            yield verdict
