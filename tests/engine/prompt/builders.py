"""Builders of components, histories, inputs and prompts for the tests of prompts."""

from collections.abc import Iterable, Sequence
from typing import Any

from evennia_ai.engine.compose import compose
from evennia_ai.engine.inputs import ComposeRules, Inputs
from evennia_ai.engine.prompt.budget import BudgetRules
from evennia_ai.engine.prompt.components import PromptComponent
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.expansion import ComponentSet
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import Message, ToolCall, event_message, said
from evennia_ai.engine.prompt.notes import AuthorsNote, Notes
from evennia_ai.engine.prompt.prompt import Prompt
from evennia_ai.engine.prompt.registry import with_statics

DICE = Dice(turn="1:0", conversation="1")


def a_component(content: str = "A text.", **fields: Any) -> PromptComponent:
    fields.setdefault("id", 1201)
    fields.setdefault("key", f"component_{fields['id']}")
    return PromptComponent(content=content, **fields)


def injected(content: str, depth: int, **fields: Any) -> PromptComponent:
    return a_component(content, injection_depth=depth, placement="history", **fields)


def a_history(count: int, *, words: int = 2) -> list[Message]:
    """Return the messages `m1` to `m<count>`, by the user and the assistant by turns."""
    roles = ("user", "assistant")
    return [said(roles[i % 2], f"m{i + 1}" + " word" * words) for i in range(count)]


def a_tool_pair(number: int) -> list[Message]:
    """Return a message with a tool call, and the message with its result."""
    call = ToolCall(id=f"call{number}", name="look", arguments="{}")
    return [
        Message(role="assistant", content="", tool_calls=(call,)),
        Message(role="tool", content=f"result {number}", tool_call_id=f"call{number}"),
    ]


def a_record() -> Message:
    """Return a message of a bookkeeping record, which injection depths do not count."""
    return Message(role="user", content="(time: noon)", counted=False)


def a_staying(content: str = "It rains.", *, of: str = "dynamic", **fields: Any) -> Message:
    """Return a message with a persistent text, which an earlier prompt left in the history."""
    return Message(role="user", content=content, counted=False, stays=True, of=of, **fields)


def the_inputs(
    components: Iterable[PromptComponent] = (),
    *,
    history: Sequence[Message] = (),
    event: str | None = None,
    limit: int = 100_000,
    layout: str = "cache",
    notes: Sequence[AuthorsNote] = (),
    values: dict[str, str] | None = None,
    keep_percent: int = 60,
    reserves: dict[str, Any] | None = None,
    **more: Any,
) -> Inputs:
    budget = BudgetRules(limit_tokens=limit, keep_percent=keep_percent, reserves=reserves or {})
    return Inputs(
        components=ComponentSet(with_statics(list(components))),
        rules=ComposeRules(budget=budget, layout=layout, dice=DICE),
        history=History(history),
        event=event_message(event, name="Anna") if event is not None else None,
        notes=Notes(notes),
        values={"user": "Anna", "char": "Oren", **(values or {})},
        **more,
    )


def the_prompt(components: Iterable[PromptComponent] = (), **options: Any) -> Prompt:
    return compose(the_inputs(components, **options))


def texts(prompt: Prompt) -> list[str]:
    return [message.content for message in prompt.messages]


def first_words(prompt: Prompt) -> list[str]:
    """Return the first word of each message, which is enough to compare their order."""
    return [message.content.split(" ")[0] for message in prompt.messages]


def verdicts_of(prompt: Prompt, item: str) -> list[tuple[str, bool, str]]:
    return [(v.stage, v.kept, v.reason) for v in prompt.verdicts if v.item == item]
