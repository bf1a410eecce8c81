"""Compaction: when a history is too long, which of it is summarised and which is kept.

Not pruning: pruning chooses, for one request, what of the history fits; compaction makes new state
that is committed, with a summary in the place of the older messages. Everything here is decided
from values, and no value says that a compaction has just been: what it made meets the same check
as any other prompt. After failures in a row, summarising is left alone for some turns (`Breaker`);
no check of a prompt asks for that, so nothing is let through that would otherwise be stopped.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, Literal

from evennia_ai.engine.errors import CompactionRulesError, FormatError, ThrashError
from evennia_ai.engine.foreign.fields import read_fields
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import Message
from evennia_ai.engine.prompt.tokens import TokenCounter

When = Literal["turn", "idle"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionRules:
    """When a history is compacted, and to what; percentages are of the prompt's limit."""

    turn_percent: int = 80
    idle_percent: int = 70
    result_percent: int = 60
    """With a model's summary the prompt must be under this.

    It is below both thresholds, so that the next compaction is some way off.
    """
    keep_messages: int = 20
    """How many of the newest messages stay as they are, at most."""
    keep_tokens: int = 8_000
    """And how many tokens of them."""
    summary_tokens: int = 2_000
    """What a model is asked for."""
    most_summary_tokens: int = 4_000
    """What is accepted."""
    failures: int = 3
    """After so many summaries in a row that were no good, none is tried for a while."""
    rest_turns: int = 20
    """For so many turns."""

    def __post_init__(self) -> None:
        for rule in fields(self):
            if getattr(self, rule.name) < 0:
                raise CompactionRulesError(rule.name, getattr(self, rule.name), "0 or more")
        if not self.result_percent < self.idle_percent <= self.turn_percent <= 100:
            given = f"{self.result_percent}, {self.idle_percent}, {self.turn_percent}"
            wanted = "in rising order, the first below the second, none over 100"
            raise CompactionRulesError("result, idle and turn percent", given, wanted)
        if not 0 < self.summary_tokens <= self.most_summary_tokens:
            wanted = f"from 1 to most_summary_tokens ({self.most_summary_tokens})"
            raise CompactionRulesError("summary_tokens", self.summary_tokens, wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPlan:
    """What is summarised, oldest first, and the tail that is kept as it is.

    Every message of the history is in exactly one of the two. `summaries` are the record ids of
    earlier summaries among the summarised. `other_tokens` is what the prompt holds besides the
    history, `summary_tokens` how long a summary is wanted.
    """

    summarised: tuple[Message, ...]
    tail: tuple[Message, ...]
    summaries: frozenset[str]
    summarised_tokens: int
    tail_tokens: int
    other_tokens: int
    limit_tokens: int
    summary_tokens: int

    def result_tokens(self, summary: str, *, counter: TokenCounter) -> int:
        """Tokens of the prompt with `summary` in the place of what it stands for."""
        return self.other_tokens + self.tail_tokens + counter.of_message(summary)


class NoPlanReason(StrEnum):
    """Why a history is not compacted."""

    ALL_KEPT = "every message belongs to the part that is kept"
    ONLY_SUMMARISED = "nothing is older than the kept part but an earlier summary"
    TOO_LITTLE = "too little was said yet: a summary would be about as long"
    NO_ROOM = (
        "what the prompt needs besides a summary leaves no room for one;"
        " raise the limit or shorten the components"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NoPlan:
    """Nothing would be gained by a compaction; `detail` has the numbers."""

    reason: NoPlanReason
    detail: str = ""


def tokens_since(cut: int, history: History, counter: TokenCounter) -> int:
    """Tokens of a history from the index on at which prompts cut it."""
    first = min(max(cut, history.earlier), history.stop)
    return history.tokens_from(first, counter=counter)


def is_due(
    history_tokens: int,
    *,
    limit_tokens: int,
    rules: CompactionRules,
    when: When = "turn",
    other_tokens: int = 0,
) -> bool:
    """Whether the history is to be compacted before a turn, or already now that nothing goes on.

    `history_tokens` is the cost of the whole history, `other_tokens` that of the rest of the
    prompt.
    """
    percent = rules.turn_percent if when == "turn" else rules.idle_percent
    return 100 * (history_tokens + other_tokens) >= percent * limit_tokens


def refuse_thrash(
    history_tokens: int,
    *,
    limit_tokens: int,
    rules: CompactionRules,
    when: When = "turn",
    other_tokens: int = 0,
) -> None:
    """ThrashError if a history that was just compacted is due again at once."""
    if is_due(
        history_tokens,
        limit_tokens=limit_tokens,
        rules=rules,
        when=when,
        other_tokens=other_tokens,
    ):
        raise ThrashError(history_tokens, other_tokens, limit_tokens)


def plan(
    history: History,
    *,
    rules: CompactionRules,
    counter: TokenCounter,
    limit_tokens: int,
    other_tokens: int = 0,
    summaries: Collection[str] = (),
) -> CompactionPlan | NoPlan:
    """How to compact this history, or why that would gain nothing.

    `history` is the whole of it, not what pruning left for one prompt; `summaries` are the record
    ids of the summaries in it, because a text alone never makes a summary.
    """
    room = (rules.result_percent * limit_tokens - 1) // 100 - other_tokens - counter.per_message
    wanted = min(rules.summary_tokens, room // 2)
    at = _tail_start(history, rules=rules, counter=counter, tokens=room - wanted)
    older = tuple(history.between(history.earlier, at))
    tail_tokens = history.tokens_from(at, counter=counter)
    if wanted < 1 or tail_tokens + wanted > room:
        detail = f"{other_tokens} of {limit_tokens} tokens, and {tail_tokens} that must stay"
        return NoPlan(reason=NoPlanReason.NO_ROOM, detail=detail)
    earlier = frozenset(m.record for m in older if m.record in summaries and m.record is not None)
    tokens = sum(message.tokens(counter) for message in older)
    reason = _gains_nothing(older, earlier, most_tokens=wanted + counter.per_message, tokens=tokens)
    if reason is not None:
        return NoPlan(reason=reason, detail=_told_of(older, tokens, wanted=wanted, rules=rules))
    return CompactionPlan(
        summarised=older,
        tail=tuple(history.between(at, history.stop)),
        summaries=earlier,
        summarised_tokens=tokens,
        tail_tokens=tail_tokens,
        other_tokens=other_tokens,
        limit_tokens=limit_tokens,
        summary_tokens=wanted,
    )


def _gains_nothing(
    older: tuple[Message, ...], summaries: frozenset[str], *, most_tokens: int, tokens: int
) -> NoPlanReason | None:
    said = [message for message in older if message.counted]
    if not said:
        return NoPlanReason.ALL_KEPT
    if all(message.record in summaries for message in said):
        return NoPlanReason.ONLY_SUMMARISED
    return NoPlanReason.TOO_LITTLE if tokens <= most_tokens else None


def _told_of(
    older: tuple[Message, ...], tokens: int, *, wanted: int, rules: CompactionRules
) -> str:
    if not older:
        kept = (
            f"the newest {rules.keep_messages} messages, up to {rules.keep_tokens} tokens of them"
        )
        return f"{kept}, always stay as they are"
    counted = "1 older message" if len(older) == 1 else f"{len(older)} older messages"
    return f"{counted} of {tokens} tokens, and a summary may take {wanted}"


def _tail_start(
    history: History, *, rules: CompactionRules, counter: TokenCounter, tokens: int
) -> int:
    """Index of the first kept message: the oldest place to part at whose tail is small enough.

    Only an open tool call makes the tail larger than the rules want it.
    """
    fits, _ = history.fitting(
        max(0, min(rules.keep_tokens, tokens)), counter=counter, floor=history.earlier
    )
    places = list(_places(history))
    for place in places:
        if place >= fits and history.counted(place) <= rules.keep_messages:
            return place
    return places[-1]


def _places(history: History) -> Iterator[int]:
    """Indexes before which a history may be parted, oldest first.

    A tool call stays with its results, also with those that are still to come, and bookkeeping
    with the message it stands before.
    """
    messages = list(history)
    ends = _ends_of_calls(messages)
    bound = 0  # where the last result of the calls so far stands
    yield history.earlier
    for index, message in enumerate(messages, start=1):
        bound = max(bound, ends.get(index - 1, 0))
        follows = messages[index].role == "tool" if index < len(messages) else False
        if index > bound and message.counted and not follows:
            yield history.earlier + index


def _ends_of_calls(messages: list[Message]) -> dict[int, int]:
    """For each message with tool calls, where its last result stands.

    A call without a result ends after the newest message, unless the NPC has said something since:
    then none will come.
    """
    ends: dict[int, int] = {}
    called: dict[str, int] = {}  # where the newest call of this id stands
    unanswered: dict[str, int] = {}
    for index, message in enumerate(messages):
        if message.tool_calls:
            called |= {call.id: index for call in message.tool_calls}
            unanswered |= {call.id: index for call in message.tool_calls}
        elif message.tool_call_id in called:
            ends[called[message.tool_call_id]] = index
            unanswered.pop(message.tool_call_id, None)
        elif message.role == "assistant" and message.counted:
            unanswered.clear()
    return ends | dict.fromkeys(unanswered.values(), len(messages))


By = Literal["model", "extract"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionSettings:
    """How a game compacts."""

    enabled: bool = True
    by: By = "model"
    """Who makes summaries as long as a model can be asked."""
    rules: CompactionRules = field(default_factory=CompactionRules)


def read_compaction(given: Any, *, where: str) -> CompactionSettings:
    """The settings in the dictionary `given`; FormatError names the first that cannot be."""
    try:
        return read_fields(CompactionSettings, given, where=where)
    except CompactionRulesError as error:
        problem = f"{error.rule} cannot be {error.value}; it must be {error.wanted}"
        raise FormatError("setting", f"{where}: {problem}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """Failures in a row, and the turn at which the last one opened the breaker.

    After the rest one try is allowed; it closes the breaker or opens it for as long.
    """

    failures: int = 0
    opened_at: int | None = None

    def after_failure(self, turn: int, *, rules: CompactionRules) -> "Breaker":
        """This breaker after a summary failed or was refused in `turn`."""
        failures = self.failures + 1
        if failures < rules.failures:
            return replace(self, failures=failures)
        return Breaker(failures=failures, opened_at=turn)

    def after_thrash(self, turn: int, *, rules: CompactionRules) -> "Breaker":
        """This breaker after a history was due again as soon as it was compacted: open."""
        return Breaker(failures=max(self.failures + 1, rules.failures), opened_at=turn)

    def after_success(self) -> "Breaker":
        """This breaker after a summary was accepted: closed, nothing counted."""
        return Breaker()

    def is_open(self, turn: int, *, rules: CompactionRules) -> bool:
        """Whether no summary is to be tried in `turn`."""
        return self.opened_at is not None and turn < self.opened_at + rules.rest_turns
