"""Compaction: when a history is too long, which messages to summarise and which to keep.

Pruning and compaction differ. Pruning chooses, for one request, the messages that fit. Compaction
creates new state that is committed, with a summary in place of the older messages.

Every decision here depends only on its arguments. No argument says that a compaction has just
happened, so its result must pass the same checks as any other prompt. After several failures in a
row, no summary is tried for some turns (`Breaker`). The checks of a prompt ignore the breaker, so
the breaker cannot let a prompt through that is too long.
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

CompactionMoment = Literal["turn", "idle"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionRules:
    """The limits and sizes for compaction. Percentages refer to the prompt's token limit."""

    turn_percent: int = 80
    idle_percent: int = 70
    result_percent: int = 60
    """With a model's summary, the prompt must use less than this percentage of its limit.

    It is lower than both thresholds, so that the next compaction is not due soon.
    """
    keep_messages: int = 20
    """How many of the newest messages are kept unchanged at most."""
    keep_tokens: int = 8_000
    """The maximum number of tokens of the messages that are kept unchanged."""
    summary_tokens: int = 2_000
    """The length in tokens that a model is asked for when it writes a summary."""
    most_summary_tokens: int = 4_000
    """The maximum length in tokens of a summary that is accepted."""
    failures: int = 3
    """After how many failed summaries in a row no more are tried for a while."""
    rest_turns: int = 20
    """For how many turns no summary is tried then."""

    def __post_init__(self) -> None:
        for rule in fields(self):
            if getattr(self, rule.name) < 0:
                raise CompactionRulesError(rule.name, getattr(self, rule.name), "0 or more")
        if not self.result_percent < self.idle_percent <= self.turn_percent <= 100:
            given = f"{self.result_percent}, {self.idle_percent}, {self.turn_percent}"
            wanted = "in rising order, the first below the second, none over 100"
            raise CompactionRulesError("result_percent, idle_percent, turn_percent", given, wanted)
        if not 0 < self.summary_tokens <= self.most_summary_tokens:
            wanted = f"from 1 to most_summary_tokens ({self.most_summary_tokens})"
            raise CompactionRulesError("summary_tokens", self.summary_tokens, wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPlan:
    """What a compaction would do: messages to summarise, oldest first, and the newest ones to
    keep.

    The messages to keep are called the tail. Every message of the history is in exactly one of the
    two. `summaries` are the record ids of earlier summaries among the messages to summarise.
    `other_tokens` are the tokens of the rest of the prompt, `summary_tokens` is the wanted length
    of the summary.
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
        """Return how many tokens the prompt would have with this text as the summary."""
        return self.other_tokens + self.tail_tokens + counter.of_message(summary)


class NoPlanReason(StrEnum):
    """The reason for not replacing the older part of a history with a summary."""

    ALL_KEPT = "every message belongs to the part that is kept"
    ONLY_SUMMARISED = "nothing is older than the kept part but an earlier summary"
    TOO_LITTLE = "too little was said yet: a summary would be about as long"
    NO_ROOM = (
        "what the prompt needs besides a summary leaves no room for one;"
        " raise the limit or shorten the components"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NoPlan:
    """The decision not to compact a history, because that would gain nothing.

    `detail` explains it in numbers.
    """

    reason: NoPlanReason
    detail: str = ""


def tokens_from_cut(cut: int, history: History, counter: TokenCounter) -> int:
    """Return the tokens of the history messages that a prompt includes, from index `cut` on."""
    first = min(max(cut, history.earlier), history.stop)
    return history.tokens_from(first, counter=counter)


def is_due(
    history_tokens: int,
    *,
    limit_tokens: int,
    rules: CompactionRules,
    when: CompactionMoment = "turn",
    other_tokens: int = 0,
) -> bool:
    """True if a history must be compacted before a turn, or may be compacted in idle time.

    Args:
        history_tokens: Tokens of the whole history.
        limit_tokens: The maximum number of tokens of a prompt.
        rules: The thresholds.
        when: Before a turn, or in idle time.
        other_tokens: Tokens of the rest of the prompt.
    """
    percent = rules.turn_percent if when == "turn" else rules.idle_percent
    return 100 * (history_tokens + other_tokens) >= percent * limit_tokens


def refuse_thrash(
    history_tokens: int,
    *,
    limit_tokens: int,
    rules: CompactionRules,
    when: CompactionMoment = "turn",
    other_tokens: int = 0,
) -> None:
    """Raise ThrashError if a compacted history would need compaction again at once."""
    if is_due(
        history_tokens,
        limit_tokens=limit_tokens,
        rules=rules,
        when=when,
        other_tokens=other_tokens,
    ):
        raise ThrashError(history_tokens, other_tokens, limit_tokens)


def plan_compaction(
    history: History,
    *,
    rules: CompactionRules,
    counter: TokenCounter,
    limit_tokens: int,
    other_tokens: int = 0,
    summaries: Collection[str] = (),
) -> CompactionPlan | NoPlan:
    """Return what compacting a history would do, or the reason why it would gain nothing.

    Args:
        history: The whole history, not only the part that pruning left for one prompt.
        rules: The thresholds and sizes.
        counter: Counts tokens.
        limit_tokens: The maximum number of tokens of a prompt.
        other_tokens: Tokens of the rest of the prompt.
        summaries: Record ids of the summaries in the history. Other texts that look like summaries
            are treated as messages.
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
    said = [message for message in older if message.counted]
    reason = None
    if not said:
        reason = NoPlanReason.ALL_KEPT
    elif all(message.record in earlier for message in said):
        reason = NoPlanReason.ONLY_SUMMARISED
    elif tokens <= wanted + counter.per_message:
        reason = NoPlanReason.TOO_LITTLE
    if reason is not None:
        detail = _describe_older(older, tokens, wanted=wanted, rules=rules)
        return NoPlan(reason=reason, detail=detail)
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


def _describe_older(
    older: tuple[Message, ...], tokens: int, *, wanted: int, rules: CompactionRules
) -> str:
    if not older:
        kept = (
            f"the newest {rules.keep_messages} messages, up to {rules.keep_tokens} tokens of them"
        )
        return f"{kept}, are always kept unchanged"
    counted = "1 older message" if len(older) == 1 else f"{len(older)} older messages"
    return f"{counted} of {tokens} tokens, and a summary may take {wanted}"


def _tail_start(
    history: History, *, rules: CompactionRules, counter: TokenCounter, tokens: int
) -> int:
    """Return the index of the first message that a compaction keeps.

    It is the oldest index at which the history may be split and the kept messages are within the
    limits. They exceed the limits only if a tool call without a result prevents a later split.
    """
    fits, _ = history.fitting(
        max(0, min(rules.keep_tokens, tokens)), counter=counter, floor=history.earlier
    )
    places = list(_split_points(history))
    for place in places:
        if place >= fits and history.counted(place) <= rules.keep_messages:
            return place
    return places[-1]


def _split_points(history: History) -> Iterator[int]:
    """Yield the indices before which a history may be split, oldest first.

    A tool call is never separated from its results, even if messages come between them. Bookkeeping
    records are never separated from the message that follows them.
    """
    messages = list(history)
    ends = _ends_of_calls(messages)
    bound = 0  # the index of the last result of the tool calls before `index`
    yield history.earlier
    for index, message in enumerate(messages, start=1):
        bound = max(bound, ends.get(index - 1, 0))
        follows = messages[index].role == "tool" if index < len(messages) else False
        if index > bound and message.counted and not follows:
            yield history.earlier + index


def _ends_of_calls(messages: list[Message]) -> dict[int, int]:
    """Map the index of each message with tool calls to the index of its last tool result.

    A call without a result is mapped to the index after the newest message. If the NPC has spoken
    since, no result will come, so the call is left out.
    """
    ends: dict[int, int] = {}
    # Maps the id of a call to the index of the newest message with that call.
    called: dict[str, int] = {}
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


SummaryMaker = Literal["model", "extract"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionSettings:
    """The settings of a game for replacing old messages with summaries."""

    enabled: bool = True
    by: SummaryMaker = "model"
    """Who writes summaries. If "model" cannot be asked, a summary is made of quotations."""
    rules: CompactionRules = field(default_factory=CompactionRules)


def read_compaction_settings(given: Any, *, where: str) -> CompactionSettings:
    """Read a game's settings for compaction from a dictionary.

    Raises:
        FormatError: A setting is wrong. The message names the first one.
    """
    try:
        return read_fields(CompactionSettings, given, where=where)
    except CompactionRulesError as error:
        problem = f"{error.rule} cannot be {error.value}; it must be {error.wanted}"
        raise FormatError("setting", f"{where}: {problem}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """A circuit breaker for summaries: after too many failures it stops attempts for some turns.

    The breaker is open while attempts are stopped. After that, one attempt is allowed. A success
    closes the breaker; a failure opens it again for the same number of turns.
    """

    failures: int = 0
    opened_at: int | None = None

    def after_failure(self, turn: int, *, rules: CompactionRules) -> "Breaker":
        """Return the breaker after a summary failed or was refused in this turn."""
        failures = self.failures + 1
        if failures < rules.failures:
            return replace(self, failures=failures)
        return Breaker(failures=failures, opened_at=turn)

    def after_thrash(self, turn: int, *, rules: CompactionRules) -> "Breaker":
        """Return the open breaker after a history was too long again despite its compaction."""
        return Breaker(failures=max(self.failures + 1, rules.failures), opened_at=turn)

    def after_success(self) -> "Breaker":
        """Return the closed breaker after a summary was accepted."""
        return Breaker()

    def is_open(self, turn: int, *, rules: CompactionRules) -> bool:
        """True if no summary may be attempted in this turn."""
        return self.opened_at is not None and turn < self.opened_at + rules.rest_turns
