"""The execution request: one turn of an NPC as a value, which another process can carry out.

The game makes a request from the inputs that it gathered. The request travels as JSON to another
process, which composes the same prompt without Django, Evennia, Twisted or a database, and asks the
model.

The game writes the text about knowledge bases beforehand and sends it in the metadata. Records stay
in the game, and only the game stores the turn.
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
"""The version of the JSON form of a request. A program reads only its own version."""

_WRITE_AGAIN: Final = "write the request again with ai/request in the game"

KB_META_PROMPT: Final = "kb_meta_prompt"
"""The key of the block about knowledge bases, and of its field in the request's metadata."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionRequest:
    """One turn of an NPC, before its prompt is composed and sent to a model."""

    inputs: Inputs
    """The inputs of the prompt: everything that the prompt depends on."""
    npc_ref: str
    """The database id of the NPC that answers."""
    conversation: int
    """The id of the conversation."""
    event: str
    """The id of the record to which the NPC replies."""
    tools: tuple[ToolSpec, ...] = ()
    """The tools that the model may call, sorted by name."""
    kb_meta_prompt: str = ""
    """The text about the knowledge bases that the NPC may search, "" for none.

    It always equals the text of the block `KB_META_PROMPT` among the inputs."""

    def __post_init__(self) -> None:
        if self.kb_meta_prompt != kb_meta_prompt_of(self.inputs):
            raise FormatError(
                KIND,
                f"{KB_META_PROMPT}: its text differs from the block {KB_META_PROMPT} among the"
                " inputs; make the request with `execution_request`, or give both the same text",
            )

    def composed(self) -> Composition:
        """Compose the prompt of the request; return it with its lore and memories.

        Raises:
            BudgetError: the required texts do not fit the limit.
        """
        return compose_with_lore(self.inputs)

    def after(self, messages: Sequence[Message]) -> "ExecutionRequest":
        """Return a request for the turn's next prompt, with more messages of tools.

        Args:
            messages: The tool calls that the model made, and their results.
        """
        inputs = replace(self.inputs, tools=(*self.inputs.tools, *messages))
        return replace(self, inputs=inputs)

    def to_json(self) -> str:
        """Return the request as JSON text, which `from_json` reads.

        Raises:
            FormatError: the request contains a value that JSON cannot express.
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
        """Return a request from JSON that `to_json` wrote.

        Args:
            text: The JSON, as text or as UTF-8.
            where: A name for the request in error messages, such as its file.
            counters: The token counters that this process has.

        Raises:
            FormatError: the text is not JSON, has another version, or has a key or a value that a
                request cannot have. The error names the first of them.
        """
        try:
            _check_version(_Versioned.model_validate_json(text).version, where=where)
            sent = _Sent.model_validate_json(text, context={"counters": counters})
        except ValidationError as error:
            problem = to_format_error(error, kind=KIND, where="").message.lstrip(".: ")
            raise FormatError(KIND, f"{where}: {problem}; {_WRITE_AGAIN}") from error
        except FormatError:
            raise
        # A class among the inputs refuses a value with its own error: report it as a format error.
        except EvenniaAIError as error:
            raise FormatError(KIND, f"{where}: {error}; {_WRITE_AGAIN}") from error
        meta_prompt = sent.metadata.kb_meta_prompt
        if meta_prompt and not _has_place(sent.inputs):
            raise FormatError(
                KIND,
                f"{where}: metadata.{KB_META_PROMPT}: there is a text, and inputs.blocks has no"
                f" block {KB_META_PROMPT} where it would go; add the block, or leave the text out",
            )
        return cls(
            inputs=_with_kb_meta_prompt(sent.inputs, meta_prompt),
            npc_ref=sent.metadata.npc_ref,
            conversation=sent.metadata.conversation,
            event=sent.metadata.event,
            tools=sent.tools,
            kb_meta_prompt=meta_prompt,
        )


def execution_request(
    inputs: Inputs,
    *,
    npc_ref: str,
    conversation: int,
    event: str,
    tools: Sequence[ToolSpec] = (),
) -> ExecutionRequest:
    """Return the request of a turn with these inputs."""
    return ExecutionRequest(
        inputs=inputs,
        npc_ref=npc_ref,
        conversation=conversation,
        event=event,
        tools=tuple(tools),
        kb_meta_prompt=kb_meta_prompt_of(inputs),
    )


def kb_meta_prompt_of(inputs: Inputs) -> str:
    """Return the text about knowledge bases among the inputs, "" if there is none."""
    for block in inputs.blocks:
        if block.key == KB_META_PROMPT:
            return block.text
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Metadata:
    """The fields of a request's JSON besides its inputs.

    A sender without knowledge bases leaves `kb_meta_prompt` out.
    """

    npc_ref: str
    conversation: int
    event: str
    kb_meta_prompt: str = ""


class _Versioned(BaseModel):
    """The version of a request's JSON, read first: other versions may have other keys."""

    version: Any = None


class _Sent(BaseModel):
    """A request in the form in which it is sent as JSON.

    The dataclasses inside share this configuration: pydantic converts nothing and refuses unknown
    keys.
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
        found = "has no version" if version is None else f"has version {version!r}"
        raise FormatError(
            KIND,
            f"{where}: {found}, and this program reads version {VERSION}; use the same release of"
            " evennia_ai that wrote it",
        )


def _has_place(inputs: Inputs) -> bool:
    return any(block.key == KB_META_PROMPT for block in inputs.blocks)


def _with_kb_meta_prompt(inputs: Inputs, text: str) -> Inputs:
    """Return the inputs of a prompt with this text in the block about knowledge bases.

    Inputs without such a block are returned unchanged.
    """
    if not _has_place(inputs):
        return inputs
    blocks = tuple(
        replace(block, text=text) if block.key == KB_META_PROMPT else block
        for block in inputs.blocks
    )
    return replace(inputs, blocks=blocks)
