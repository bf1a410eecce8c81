"""Builders of histories and compaction plans for the tests of compaction."""

from evennia_ai.engine.history.compaction.planning import (
    CompactionPlan,
    CompactionRules,
    NoPlan,
    plan_compaction,
)
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import Message, ToolCall, said
from evennia_ai.engine.prompt.tokens import TokenCounter

WORDS = TokenCounter("words", "1", lambda text: len(text.split()), per_message=0, per_prompt=0)
"""A token counter that counts each word as one token, so that tests can compute token counts."""

RULES = CompactionRules()


def a_line(number: int, words: int = 10) -> Message:
    """Return a player's line of `words` words that occur in no other line."""
    text = " ".join(f"w{number}x{at}" for at in range(words))
    return said("user", text, name="Anna", record=f"r{number}")


def a_call(call_id: str = "c1", *, words: int = 0) -> Message:
    arguments = " ".join(["x"] * words)
    call = ToolCall(id=call_id, name="look", arguments=arguments)
    return Message(role="assistant", content="", tool_calls=(call,), record=f"call-{call_id}")


def a_result(call_id: str = "c1", *, words: int = 1) -> Message:
    content = " ".join(["y"] * words)
    return Message(role="tool", content=content, tool_call_id=call_id, record=f"result-{call_id}")


def a_block(text: str = "It is dusk.") -> Message:
    return Message(role="user", content=text, counted=False, record="block")


def a_history(*messages: Message) -> History:
    return History(messages)


def plan_of(
    history: History, *, limit_tokens: int = 1000, rules: CompactionRules = RULES, **given
) -> CompactionPlan:
    """Return the compaction plan for a history; fail if it has none."""
    found = plan_compaction(history, rules=rules, counter=WORDS, limit_tokens=limit_tokens, **given)
    assert isinstance(found, CompactionPlan), found
    return found


def no_plan_of(
    history: History, *, limit_tokens: int = 1000, rules: CompactionRules = RULES, **given
) -> NoPlan:
    """Return the decision not to compact a history; fail if it has a plan."""
    found = plan_compaction(history, rules=rules, counter=WORDS, limit_tokens=limit_tokens, **given)
    assert isinstance(found, NoPlan), found
    return found


def an_evening(exchanges: int = 40) -> History:
    """Return a long conversation in ordinary words, with one promise and one open question."""
    messages = []
    for number in range(exchanges):
        line = f"The weather at the quay was grey on day {number}, and the nets were wet."
        if number == 5:
            line = "I promise to bring you 12 silver coins before the Lantern Feast."
        if number == 9:
            line = "Who stole the bell of Saint Brine?"
        reply = f"So it was, on day {number}. We mend the nets and we wait."
        messages.append(said("user", line, name="Anna", record=f"u{number}"))
        messages.append(said("assistant", reply, record=f"a{number}"))
    return History(messages)
