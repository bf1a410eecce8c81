"""Composing a past turn again: from what it was made of then, as it was or with an edit.

As it was, it must give the bytes that were sent. With an edit, what differs is what the edit would
have changed; each turn is judged alone, with the history, the timers and the cut it had.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from evennia_ai.compose import Inputs, compose
from evennia_ai.errors import EvenniaAIError
from evennia_ai.history.turn.replay import Difference, differences, shared_messages
from evennia_ai.history.turn.sending import storable_messages
from evennia_ai.minds.past_inputs import PastInputs, PastReader
from evennia_ai.prompt.messages import Message, digest
from evennia_ai.prompt.prompt import Prompt
from evennia_ai.store.history.turns import StoredTurn

Outcome = Literal["unchanged", "changed", "unknown"]
Edit = Callable[[PastInputs], Inputs]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What an edit would have made of one past turn."""

    number: int
    outcome: Outcome
    """`unknown`: the turn cannot be composed again to the letter, or not with the edit."""
    problem: str = ""
    """Why the outcome is not known."""
    tokens_before: int = 0
    tokens: int = 0
    shared_messages: int = 0
    shared_tokens: int = 0
    """The start of the prompt that stays as it was; there a provider's cache would have ended."""
    sha256: str = ""
    differences: tuple[Difference, ...] = ()


def as_it_was(past: PastInputs) -> Inputs:
    """The edit that changes nothing."""
    return past.inputs


def composed_again(turn: StoredTurn, reader: PastReader) -> Prompt:
    """The prompt of a past turn from what it was made of.

    NotReadBackError: something of it is gone.
    """
    return compose(reader.inputs(turn).inputs)


def compared(turn: StoredTurn, edit: Edit, reader: PastReader) -> Comparison:
    """What `edit` would have changed in the prompt of this turn."""
    try:
        past = reader.inputs(turn)
        edited = compose(edit(past))
    except EvenniaAIError as error:
        return _unknown(turn, str(error))
    sent = storable_messages(edited.messages)
    if digest(sent) == turn.manifest.sha256:
        return _same(turn)
    return _changed(turn, past, edited, sent)


def _changed(
    turn: StoredTurn, past: PastInputs, edited: Prompt, sent: Sequence[Message]
) -> Comparison:
    before = storable_messages(compose(past.inputs).messages)
    if digest(before) != turn.manifest.sha256:
        return _unknown(turn, "without the edit it would not be what was sent either")
    shared = shared_messages(before, sent)
    return Comparison(
        number=turn.number,
        outcome="changed",
        tokens_before=turn.manifest.tokens,
        tokens=edited.tokens,
        shared_messages=shared,
        shared_tokens=sum(message.tokens(edited.counter) for message in sent[:shared]),
        sha256=digest(sent),
        differences=differences(before, sent),
    )


def _same(turn: StoredTurn) -> Comparison:
    tokens = turn.manifest.tokens
    return Comparison(
        number=turn.number,
        outcome="unchanged",
        tokens_before=tokens,
        tokens=tokens,
        shared_messages=len(turn.manifest.messages),
        shared_tokens=tokens,
        sha256=turn.manifest.sha256,
    )


def _unknown(turn: StoredTurn, problem: str) -> Comparison:
    tokens = turn.manifest.tokens
    return Comparison(
        number=turn.number, outcome="unknown", problem=problem, tokens_before=tokens, tokens=tokens
    )
