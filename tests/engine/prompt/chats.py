"""A chat for tests: each prompt passes its state (cut, anchors, history) to the next prompt."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from evennia_ai.engine.compose import compose
from evennia_ai.engine.inputs import Inputs
from evennia_ai.engine.prompt.blocks import DynamicBlock
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import Message, event_message, said
from evennia_ai.engine.prompt.persistent_texts import BlocksMode, texts_left_in_history
from evennia_ai.engine.prompt.prompt import Prompt
from tests.engine.prompt.builders import the_inputs


class Chat:
    """A conversation for tests.

    `inputs` are the inputs that all its prompts share. `prompts` are the prompts that were sent.
    """

    def __init__(
        self, components: Sequence[Any] = (), *, blocks: BlocksMode = "latest", **options: Any
    ) -> None:
        made = the_inputs(components, **options)
        self.inputs: Inputs = replace(made, rules=replace(made.rules, blocks=blocks))
        self.history = History()
        self.prompts: list[Prompt] = []
        self.goes_on = True

    def turn(
        self,
        text: str | None,
        *,
        facts: str = "",
        reply: str = "Aye.",
        values: Mapping[str, str] | None = None,
        **changed: Any,
    ) -> Prompt:
        """Return the prompt that answers `text`, and add `text` and `reply` to the history."""
        older = self.prompts[-1] if self.prompts else None
        fields: dict[str, Any] = {
            "history": self.history,
            "event": event_message(text, name="Anna") if text is not None else None,
            "blocks": (DynamicBlock(key="facts", text=facts),) if facts else (),
            "values": {**self.inputs.values, **(values or {})},
            "cut": older.cut if older and self.goes_on else 0,
            "anchors": older.anchors if older and self.goes_on else {},
        }
        prompt = compose(replace(self.inputs, **{**fields, **changed}))
        heard = [said("user", text, name="Anna")] if text is not None else []
        self.history = self.history.appended(
            *texts_left_in_history(prompt.messages), *heard, said("assistant", reply)
        )
        self.prompts.append(prompt)
        self.goes_on = True
        return prompt

    def forget(self) -> None:
        """Make the next prompt ignore the cut and the anchors of the previous one."""
        self.goes_on = False

    def say(self, count: int, **more: Any) -> Prompt:
        """Run this many turns, and return the last prompt."""
        for _ in range(count):
            prompt = self.turn(f"m{len(self.prompts)}", **more)
        return prompt


def shared(older: Prompt, newer: Prompt) -> int:
    """Return how many messages at the beginning of two prompts are equal."""
    pairs = zip(older.messages, newer.messages, strict=False)
    return next(
        (i for i, (one, other) in enumerate(pairs) if one.wire() != other.wire()),
        min(len(older.messages), len(newer.messages)),
    )


def staying(prompt: Prompt) -> list[tuple[str, str]]:
    """Return the kind and the text of each persistent text in a prompt."""
    return [(message.of, message.content) for message in prompt.messages if message.stays]


def index_of(prompt: Prompt, text: str) -> int:
    return next(i for i, message in enumerate(prompt.messages) if message.content == text)


def last(messages: Sequence[Message]) -> str:
    return messages[-1].content
