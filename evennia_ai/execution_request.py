"""The execution request: what was decided about a turn, before it is composed and asked.

The game makes one of what it gathered, and composes and asks from it alone. As plain values it can
be sent to a process without the game, where it gives the same prompt: who composes from it needs no
Django, Evennia or Twisted, and no database. What is told of knowledge bases is made by the game and
travels in the metadata; who composes takes it as it is. The records behind the messages stay in the
game, and so does committing: a worker composes, and asks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from evennia_ai.compose import Composition, compose_with_lore
from evennia_ai.inputs import Inputs
from evennia_ai.plain_values import ExecutionRequestError, PlainReader, plain
from evennia_ai.prompt.messages import Message, ToolSpec
from evennia_ai.prompt.tokens import ESTIMATE, TokenCounter

VERSION: Final = 1
"""The version of the plain values; what reads them knows this one alone."""

KB_META_PROMPT: Final = "kb_meta_prompt"
"""The key of the block about knowledge bases, and the name of its field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionRequest:
    """A turn of an NPC that is to be composed and asked.

    `kb_meta_prompt` is always what the block of that key among the inputs says, "" without one.
    """

    inputs: Inputs
    """Everything the prompt depends on."""
    npc_ref: str
    """The database id of the NPC that answers."""
    conversation: int
    """The id of the conversation it answers in."""
    event: str
    """The id of the record that it answers."""
    tools: tuple[ToolSpec, ...] = ()
    """What its model may call, sorted by name."""
    kb_meta_prompt: str = ""
    """What is told of the knowledge bases that the NPC may search, "" for nothing."""

    def __post_init__(self) -> None:
        told = kb_meta_prompt_of(self.inputs)
        if self.kb_meta_prompt != told:
            raise ExecutionRequestError(
                KB_META_PROMPT,
                f"its text is not that of the block {KB_META_PROMPT} among the inputs;"
                " make the request with `execution_request`, or give both the same text",
            )

    def composed(self) -> Composition:
        """The prompt, the lore that was active in it and the memories that were recalled.

        BudgetError: what is required does not fit the limit.
        """
        return compose_with_lore(self.inputs)

    def after(self, messages: Sequence[Message]) -> "ExecutionRequest":
        """The request that goes on after `messages`: calls of tools and what came of them."""
        inputs = replace(self.inputs, tools=(*self.inputs.tools, *messages))
        return replace(self, inputs=inputs)

    def to_dict(self) -> dict[str, Any]:
        """The request as values that JSON can hold, for `from_dict`.

        ExecutionRequestError: it holds something that has no plain form.
        """
        return {
            "version": VERSION,
            "metadata": {
                "npc_ref": self.npc_ref,
                "conversation": self.conversation,
                "event": self.event,
                KB_META_PROMPT: self.kb_meta_prompt,
            },
            "tools": plain(self.tools, at="tools"),
            "inputs": plain(_with_kb_meta_prompt(self.inputs, ""), at="inputs"),
        }

    @classmethod
    def from_dict(
        cls, data: Any, *, counters: Sequence[TokenCounter] = (ESTIMATE,)
    ) -> "ExecutionRequest":
        """The request that `to_dict` wrote; `counters` are the token counters known here.

        ExecutionRequestError: it is of another version, or has a key or a value that it cannot
        have; the error names it.
        """
        _check_version(data)
        read = PlainReader(counters=counters).read(data, _Sent, at="")
        told: _Metadata = read.metadata
        if told.kb_meta_prompt and not _has_place(read.inputs):
            raise ExecutionRequestError(
                f"metadata.{KB_META_PROMPT}",
                f"there is a text, and no block {KB_META_PROMPT} in inputs.blocks where it stands",
            )
        return cls(
            inputs=_with_kb_meta_prompt(read.inputs, told.kb_meta_prompt),
            npc_ref=told.npc_ref,
            conversation=told.conversation,
            event=told.event,
            tools=read.tools,
            kb_meta_prompt=told.kb_meta_prompt,
        )


def execution_request(
    inputs: Inputs,
    *,
    npc_ref: str,
    conversation: int,
    event: str,
    tools: Sequence[ToolSpec] = (),
) -> ExecutionRequest:
    """The request for these inputs."""
    return ExecutionRequest(
        inputs=inputs,
        npc_ref=npc_ref,
        conversation=conversation,
        event=event,
        tools=tuple(tools),
        kb_meta_prompt=kb_meta_prompt_of(inputs),
    )


def kb_meta_prompt_of(inputs: Inputs) -> str:
    """What the inputs tell of knowledge bases, "" for nothing."""
    for block in inputs.blocks:
        if block.key == KB_META_PROMPT:
            return block.text
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Metadata:
    """What is sent beside the inputs; a sender that knows no bases leaves their field out."""

    npc_ref: str
    conversation: int
    event: str
    kb_meta_prompt: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sent:
    """A request as it is sent."""

    version: int
    metadata: _Metadata
    inputs: Inputs
    tools: tuple[ToolSpec, ...] = ()


def _check_version(data: Any) -> None:
    """Say so before anything else is read: the keys of another version are not mistakes."""
    if not isinstance(data, Mapping):
        raise ExecutionRequestError("", f"must be an object, not {type(data).__name__}")
    version = data.get("version")
    if version != VERSION or isinstance(version, bool):
        told = f"version {version!r}" if "version" in data else "no version"
        raise ExecutionRequestError(
            "version",
            f"{told}; this program reads version {VERSION}: run the same release of evennia_ai"
            " on both sides",
        )


def _has_place(inputs: Inputs) -> bool:
    return any(block.key == KB_META_PROMPT for block in inputs.blocks)


def _with_kb_meta_prompt(inputs: Inputs, text: str) -> Inputs:
    """The inputs with this text in the block about knowledge bases, where they have one."""
    if not _has_place(inputs):
        return inputs
    blocks = tuple(
        replace(block, text=text) if block.key == KB_META_PROMPT else block
        for block in inputs.blocks
    )
    return replace(inputs, blocks=blocks)
