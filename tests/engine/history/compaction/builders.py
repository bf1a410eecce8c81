"""Histories and plans for the tests of compaction; each shows only what matters."""

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
"""A token is a word, so that tests can count."""

RULES = CompactionRules()


def a_line(number: int, words: int = 10) -> Message:
    """A player's line with `words` words, all of them its own."""
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
    """The plan for a history that has one."""
    found = plan_compaction(history, rules=rules, counter=WORDS, limit_tokens=limit_tokens, **given)
    assert isinstance(found, CompactionPlan), found
    return found


def no_plan_of(
    history: History, *, limit_tokens: int = 1000, rules: CompactionRules = RULES, **given
) -> NoPlan:
    """Why a history has no plan."""
    found = plan_compaction(history, rules=rules, counter=WORDS, limit_tokens=limit_tokens, **given)
    assert isinstance(found, NoPlan), found
    return found


def an_evening(exchanges: int = 40) -> History:
    """A talk on the quay in words that people use; some of it matters later."""
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
