"""The execution request: what was decided about a turn, before it is composed and asked.

The game makes one of what it gathered, and composes and asks from it alone. As JSON it can be
sent to a process without the game, where it gives the same prompt: composing from it needs no
Django, Evennia or Twisted, and no database. What is told of knowledge bases is made by the game and
travels in the metadata; who composes takes it as it is. The records behind the messages stay in the
game, and so does committing: a worker composes, and asks.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import PydanticSerializationError

from evennia_ai.engine.compose import Composition, compose_with_lore
from evennia_ai.engine.errors import EvenniaAIError, FormatError
from evennia_ai.engine.foreign.documents import one_line
from evennia_ai.engine.foreign.fields import to_format_error
from evennia_ai.engine.inputs import Inputs
from evennia_ai.engine.prompt.messages import Message, ToolSpec
from evennia_ai.engine.prompt.tokens import ESTIMATE, TokenCounter

KIND: Final = "request"
VERSION: Final = 1
"""The version of the JSON; what reads it knows this one alone."""

_ANEW: Final = "write the request anew with ai/request in the game"

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
            raise FormatError(
                KIND,
                f"{KB_META_PROMPT}: its text is not that of the block {KB_META_PROMPT} among the"
                " inputs; make the request with `execution_request`, or give both the same text",
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

    def to_json(self) -> str:
        """Return the request as JSON, for `from_json`.

        Raises:
            FormatError: It holds something that cannot be written.
        """
        sent = _Sent.model_construct(
            version=VERSION,
            metadata=_Metadata(
                npc_ref=self.npc_ref,
                conversation=self.conversation,
                event=self.event,
                kb_meta_prompt=self.kb_meta_prompt,
            ),
            inputs=_with_kb_meta_prompt(self.inputs, ""),
            tools=self.tools,
        )
        try:
            return sent.model_dump_json(exclude_defaults=True, warnings="error")
        except (PydanticSerializationError, UnicodeError) as error:
            raise FormatError(
                KIND, f"the request cannot be written: {one_line(str(error))}"
            ) from error

    @classmethod
    def from_json(
        cls,
        text: str | bytes,
        *,
        where: str = "the request",
        counters: Sequence[TokenCounter] = (ESTIMATE,),
    ) -> "ExecutionRequest":
        """Return the request that `to_json` wrote.

        Args:
            text: The JSON, as text or as UTF-8.
            where: What errors call it, such as the name of its file.
            counters: The token counters that are known here.

        Raises:
            FormatError: It is no JSON, has another version, or has a key or a value that a request
                cannot have. The error names the first of them.
        """
        try:
            _check_version(_Versioned.model_validate_json(text).version, where=where)
            sent = _Sent.model_validate_json(text, context={"counters": counters})
        except ValidationError as error:
            problem = to_format_error(error, kind=KIND, where="").message.lstrip(".: ")
            raise FormatError(KIND, f"{where}: {problem}; {_ANEW}") from error
        except FormatError:
            raise
        except EvenniaAIError as error:  # a value that its own class refuses
            raise FormatError(KIND, f"{where}: {error}; {_ANEW}") from error
        told = sent.metadata.kb_meta_prompt
        if told and not _has_place(sent.inputs):
            raise FormatError(
                KIND,
                f"{where}: metadata.{KB_META_PROMPT}: there is a text, and inputs.blocks has no"
                f" block {KB_META_PROMPT} where it would go; add the block, or leave the text out",
            )
        return cls(
            inputs=_with_kb_meta_prompt(sent.inputs, told),
            npc_ref=sent.metadata.npc_ref,
            conversation=sent.metadata.conversation,
            event=sent.metadata.event,
            tools=sent.tools,
            kb_meta_prompt=told,
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


class _Versioned(BaseModel):
    """The version of a request, read before all else: other keys may belong to another version."""

    version: Any = None


class _Sent(BaseModel):
    """A request as it is sent.

    The dataclasses inside share this configuration: nothing is converted, unknown keys are refused.
    """

    model_config = ConfigDict(
        strict=True, extra="forbid", ser_json_inf_nan="constants", defer_build=True
    )

    version: int
    metadata: _Metadata
    inputs: Inputs
    tools: tuple[ToolSpec, ...] = ()


def _check_version(version: object, *, where: str) -> None:
    if version != VERSION or isinstance(version, bool):
        told = "has no version" if version is None else f"has version {version!r}"
        raise FormatError(
            KIND,
            f"{where}: {told}, and this program reads version {VERSION}; use the same release of"
            " evennia_ai that wrote it",
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
