"""Forecasts of an edit: what past turns would have cost with it, at the prices of today.

The calls of a turn say how many tokens the provider counted, and how many came from its cache. With
the edit, the prompt has other tokens in the same ratio. The cached part grows and shrinks with the
beginning that the prompt shares with the prompt of the neighbouring turn. So a text that moves from
the start of the prompts into their history costs more, although no prompt is longer.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Final

from evennia_ai.engine.history.turn.replay import shared_messages
from evennia_ai.engine.prompt.messages import Message
from evennia_ai.engine.prompt.tokens import ESTIMATE
from evennia_ai.npc.views.recomposing import Comparison
from evennia_ai.services.llm.chat import Usage
from evennia_ai.services.llm.money import in_dollars
from evennia_ai.services.llm.prices import call_cost
from evennia_ai.services.settings.conf import conf
from evennia_ai.store import model_calls
from evennia_ai.store.model_calls import NewCall

MOST_TURNS: Final = 200
"""The most turns of a forecast. The newest ones count."""
SPEAKER: Final = "speaker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What an edit changes about the cost of past turns."""

    turns: int = 0
    """The turns that were forecast. The sums are theirs."""
    unknown: int = 0
    """The turns that cannot be composed again, or that the edit does not fit."""
    unpriced: int = 0
    """The turns in which a model without a known price was asked."""
    unasked: int = 0
    """The turns in which no model was asked, because of a limit or because the NPC is offline."""
    tokens_before: int = 0
    """The tokens of the prompts, as the provider counted them."""
    tokens: int = 0
    """The tokens of the prompts with the edit."""
    nanodollars_before: int = 0
    nanodollars: int = 0

    def __add__(self, other: "Forecast") -> "Forecast":
        """Return the forecast of both together."""
        names = [one.name for one in fields(self)]
        return Forecast(**{name: getattr(self, name) + getattr(other, name) for name in names})

    def __str__(self) -> str:
        """Return the forecast as a sentence."""
        left_out = {
            "asked no model": self.unasked,
            "cannot be compared": self.unknown,
            "asked a model without a known price": self.unpriced,
        }
        others = " more" if self.turns else ""
        more = "".join(f"; {count}{others} {why}" for why, count in left_out.items() if count)
        if not self.turns:
            return f"No turn can be forecast{more}."
        over = "the last turn" if self.turns == 1 else f"the last {self.turns} turns"
        before, after = (
            round(sum_of / self.turns) for sum_of in (self.nanodollars_before, self.nanodollars)
        )
        tokens = f"{self.tokens_before // self.turns} -> {self.tokens // self.turns} tokens"
        if not before and not after:
            return f"A turn costs nothing: {tokens} over {over}{more}."
        change = "as much as before"
        if before != after:
            change = f"{in_dollars(abs(after - before))} {'more' if after > before else 'less'}"
        costs = f"{in_dollars(before)} -> {in_dollars(after)}"
        return f"A turn costs {change} ({costs}, {tokens} over {over}){more}."


class Forecaster:
    """Forecasts turns of one NPC. Add them in their order, or in the opposite one."""

    def __init__(self, npc_ref: str) -> None:
        self._npc_ref: Final = npc_ref
        self._neighbour: Comparison | None = None
        self.found = Forecast()

    def add(self, compared: Comparison) -> Forecast:
        """Add a turn that was composed with and without the edit. Return its own forecast."""
        neighbour, self._neighbour = self._neighbour, compared
        if compared.outcome == "unknown":
            made = Forecast(unknown=1)
        else:
            calls = model_calls.calls_of_turns(self._npc_ref, [compared.number])
            asked = [call for call in calls if call.input_tokens]
            made = _forecast(asked, compared, neighbour) if asked else Forecast(unasked=1)
        self.found += made
        return made


def _forecast(
    calls: Sequence[NewCall], compared: Comparison, neighbour: Comparison | None
) -> Forecast:
    usages = [(call, *_usages(call, compared, neighbour)) for call in calls]
    costs = [(_cost(call, before), _cost(call, after)) for call, before, after in usages]
    known = [(before, after) for before, after in costs if before is not None and after is not None]
    if len(known) < len(costs):
        return Forecast(unpriced=1)
    return Forecast(
        turns=1,
        tokens_before=sum(before.prompt_tokens for _, before, _ in usages),
        tokens=sum(after.prompt_tokens for _, _, after in usages),
        nanodollars_before=sum(before for before, _ in known),
        nanodollars=sum(after for _, after in known),
    )


def _cost(call: NewCall, usage: Usage) -> int | None:
    """Return what this usage costs today with the model of a past call."""
    profile = conf().profiles.get(call.profile)
    if profile is None:
        return None
    if profile.model and profile.model != call.model:  # the NPC has a model of its own
        profile = replace(profile, model=call.model, price=None)
    return call_cost(profile, usage, at=time.time())


def _usages(
    call: NewCall, compared: Comparison, neighbour: Comparison | None
) -> tuple[Usage, Usage]:
    """Return the usage of a call without and with the edit."""
    usage = Usage(
        input_tokens=call.input_tokens,
        output_tokens=call.output_tokens,
        cached_tokens=call.cached_tokens or 0,
        written_tokens=call.written_tokens or 0,
    )
    size, new_size = _size(compared.before), _size(compared.after)
    if call.role != SPEAKER or not size:
        return usage, usage
    whole = usage.prompt_tokens
    ratio = whole / size
    new_whole = round(new_size * ratio)
    cached = usage.cached_tokens
    if cached and (neighbour is None or not neighbour.before):
        cached = round(cached * new_whole / whole)
    elif cached and neighbour is not None:
        shared = _shared_size(compared.before, neighbour.before)
        cached += round((_shared_size(compared.after, neighbour.after) - shared) * ratio)
    cached = min(max(0, cached), new_whole)
    written = usage.written_tokens
    if written:
        written = max(0, written + (new_whole - cached) - (whole - usage.cached_tokens))
    return usage, replace(
        usage,
        input_tokens=new_whole,
        cached_tokens=cached,
        written_tokens=min(written, new_whole - cached),
    )


def _shared_size(some: Sequence[Message], others: Sequence[Message]) -> int:
    return _size(some[: shared_messages(some, others)])


def _size(messages: Sequence[Message]) -> int:
    """Return the estimated tokens of messages, which only compare prompts of one model."""
    return sum(message.tokens(ESTIMATE) for message in messages)
