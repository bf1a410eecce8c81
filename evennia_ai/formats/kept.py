"""Kept answers (test cases): good answers of NPCs, each in a YAML file with a check of its prompt.

The file has the inputs of one turn that no builder writes: the event, the history, facts of the
moment, memories, dice and the time. It has no cards, lore, components, notes, presets or settings:
a check composes the prompt again with those that the game has now. The file is data: it is read
strictly, and nothing in it is run.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import PydanticSerializationError

from evennia_ai.engine.compose import Composition
from evennia_ai.engine.errors import EvenniaAIError, FormatError
from evennia_ai.engine.foreign.documents import line_in_yaml, one_line, read_text, read_yaml
from evennia_ai.engine.foreign.documents import write_yaml as yaml_of
from evennia_ai.engine.foreign.fields import to_format_error
from evennia_ai.engine.history.turn.replay import (
    Difference,
    message_differences,
    shared_messages,
)
from evennia_ai.engine.history.turn.sending import storable_messages
from evennia_ai.engine.inputs import NO_HISTORY, NOW, START, ComposeRules, Inputs
from evennia_ai.engine.lorebook.activation.timers import NO_STATE, Clock, LoreState
from evennia_ai.engine.lorebook.entry import SourceName
from evennia_ai.engine.lorebook.rules import ActivationRules
from evennia_ai.engine.memory.memories import Memory
from evennia_ai.engine.memory.recalling import Moment
from evennia_ai.engine.prompt.blocks import DynamicBlock
from evennia_ai.engine.prompt.conditions import CHARACTER_NAME, CHARACTER_TAGS, Facts
from evennia_ai.engine.prompt.contexts import CONVERSATION
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.expansion import ComponentSet
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.memo import Memo
from evennia_ai.engine.prompt.messages import Message, Role, ToolCall, messages_sha256
from evennia_ai.engine.prompt.placement import Anchors
from evennia_ai.engine.prompt.report import final_verdicts, make_report, origins_called

KIND: Final = "kept case"
VERSION: Final = 1
"""The version of the file's form. A program reads only the versions that it knows."""
SUFFIX: Final = ".yaml"
_NO_ITEMS: Final = frozenset({"history", "event", "framing", "tool"})
_NO_LIMIT: Final = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """An object of the game: its name, and the database id that it had when the answer was kept."""

    name: str
    ref: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptScope:
    """A scope that applied to the NPC. A room and an NPC also have a name, to find them again."""

    kind: Literal["game", "zone", "room", "npc", "faction", "player", "conversation"]
    ref: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptInputs:
    """The inputs of a turn that no builder writes. `engine/inputs.py` explains each field."""

    event: Message | None = None
    history: History = NO_HISTORY
    tools: tuple[Message, ...] = ()
    blocks: tuple[DynamicBlock, ...] = ()
    memories: tuple[Memory, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    facts: Facts = field(default_factory=dict)
    sources: Mapping[SourceName, str] = field(default_factory=dict)
    now: str = ""
    clock: Clock = START
    moment: Moment = NOW
    near: tuple[tuple[int, float], ...] = ()
    dice: Dice
    cut: int = 0
    anchors: Anchors = field(default_factory=dict)
    lore_state: LoreState = NO_STATE
    guidance: str = ""
    greeting_index: int | None = None
    """The index of the greeting that opened the conversation, None if none did."""

    def inputs(self) -> Inputs:
        """Return the inputs of a prompt with these values and no texts of builders."""
        return Inputs(
            components=ComponentSet(()),
            rules=ComposeRules(
                budget=CONVERSATION.budget(_NO_LIMIT),
                dice=self.dice,
                lore=ActivationRules(greeting_index=self.greeting_index),
            ),
            **{name: getattr(self, name) for name in _SHARED},
        )


_SHARED: Final = tuple(
    name for name in KeptInputs.__dataclass_fields__ if name not in ("dice", "greeting_index")
)
"""The fields that `KeptInputs` and `Inputs` have in common."""


def kept_inputs(inputs: Inputs) -> KeptInputs:
    """Return those inputs of a turn that the game made and no builder wrote, without record ids."""
    of_card = (CHARACTER_NAME, CHARACTER_TAGS)
    return KeptInputs(
        dice=inputs.rules.dice,
        greeting_index=inputs.rules.lore.greeting_index,
        **{name: getattr(inputs, name) for name in _SHARED}
        | {
            "facts": {name: fact for name, fact in inputs.facts.items() if name not in of_card},
            "sources": {
                name: text for name, text in inputs.sources.items() if name in ("persona", "room")
            },
            "event": inputs.event and _without_record(inputs.event),
            "tools": tuple(map(_without_record, inputs.tools)),
            "history": History(
                map(_without_record, inputs.history),
                earlier=inputs.history.earlier,
                earlier_users=inputs.history.earlier_users,
                earlier_replies=inputs.history.earlier_replies,
                segment=inputs.history.segment,
            ),
        },
    )


def _without_record(message: Message) -> Message:
    is_said = message.origin.partition(":")[0] in ("history", "event", "tool")
    origin = "" if is_said else message.origin
    return replace(message, record=None, origin=origin, memo=Memo())


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedMessage:
    """One message of the expected prompt, as the model sees it."""

    role: Role
    name: str | None = None
    of: tuple[str, ...] = ()
    """The origins of its texts, in order."""
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None

    @property
    def message(self) -> Message:
        """The message, with all its origins in one line."""
        return Message(
            role=self.role,
            content=self.content,
            name=self.name,
            origin=", ".join(self.of),
            tool_calls=self.tool_calls,
            tool_call_id=self.tool_call_id,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """The conditions that the prompt of a kept answer must meet. At least one must be given."""

    active: tuple[str, ...] = ()
    """Entries of lore that must be active: by name, or as `lore:harbour#5`."""
    in_order: tuple[str, ...] = ()
    """Texts that must be in the prompt, in this order."""
    at_most_tokens: Annotated[int, Field(ge=1)] | None = None
    cached_share: Annotated[float, Field(ge=0, le=1)] | None = None
    """The least share of the prompt that a provider can find in its cache in the next turn."""
    tokens: int | None = None
    """The tokens of `prompt`, to compare."""
    items: Mapping[str, int] = field(default_factory=dict)
    """The tokens of each item in `prompt`, to compare."""
    prompt: tuple[ExpectedMessage, ...] | None = None
    """The whole prompt: every message must have exactly these texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptCase:
    """A kept answer of an NPC: the inputs of its turn, the reply, and conditions for its prompt."""

    about: str = ""
    npc: Named
    speaker: Named | None = None
    """The person who was answered; None for an event without a person."""
    conversation: str
    """The kind of the conversation: "room" or "private"."""
    context: str
    """The name of the turn's context, such as "whisper"."""
    scopes: tuple[KeptScope, ...]
    """The scopes that applied to the NPC, from wide to narrow."""
    limit_tokens: int | None = None
    """The prompt limit of the NPC's own model; None for the limit of the game."""
    npc_tools: tuple[str, ...] = ()
    """The names of the NPC's tools."""
    reply: str
    expect: Expectation
    inputs: KeptInputs
    seen: Mapping[str, str] = field(default_factory=dict)
    """The revisions of the authored texts that applied when `expect` was written."""


class _Versioned(BaseModel):
    """The format version of the file, read first: files of other versions may have other keys."""

    kept: Any = None


class _File(BaseModel):
    """A kept answer as it is in its file."""

    model_config = ConfigDict(
        strict=True, extra="forbid", ser_json_inf_nan="constants", defer_build=True
    )

    kept: int = VERSION
    case: KeptCase


def case_text(case: KeptCase) -> str:
    """Return the text of the file for a kept answer.

    Raises:
        FormatError: A value cannot be written.
    """
    made = _File.model_construct(case=case)
    try:
        written = made.model_dump(mode="json", exclude_defaults=True, warnings="error")
    except (PydanticSerializationError, UnicodeError) as error:
        problem = f"the kept answer cannot be written: {one_line(str(error))}"
        raise FormatError(KIND, problem) from error
    return yaml_of({"kept": VERSION, **written["case"]})


def read_case(path: Path) -> KeptCase:
    """Read a kept answer from a file.

    Raises:
        FormatError: This version cannot read the file. The message names the file, and the line if
            possible.
    """
    return parse_case(read_text(path, kind=KIND), where=str(path))


def parse_case(text: str, *, where: str) -> KeptCase:
    """Read a kept answer from the text of its file. `where` names the file in errors."""
    values = read_yaml(text, kind=KIND, where=where)
    if not isinstance(values, dict):
        raise FormatError(
            KIND,
            f"{where}: is not the file of a kept answer; the command ai/keep writes such files",
        )
    version = values.pop("kept", None)
    if version != VERSION or isinstance(version, bool):
        found = "has no format version" if version is None else f"has format version {version!r}"
        raise FormatError(
            KIND,
            f"{where}: line 1: {found}, and this program reads version {VERSION}; keep the answer"
            " again, or use the release of evennia_ai that wrote the file",
        )
    try:
        case = _File.model_validate_json(json.dumps({"case": values})).case
    except ValidationError as error:
        path = error.errors(include_url=False, include_input=False)[0]["loc"][1:]
        problem = to_format_error(error, kind=KIND, where="").message.removeprefix(".case.")
        raise FormatError(KIND, f"{where}: line {line_in_yaml(text, path)}: {problem}") from error
    except EvenniaAIError as error:  # a class among the inputs refuses a value
        raise FormatError(KIND, f"{where}: {one_line(str(error))}") from error
    if case.expect == Expectation():
        line = line_in_yaml(text, ("expect",))
        raise FormatError(
            KIND,
            f"{where}: line {line}: expect says nothing that must hold; give it prompt, active,"
            " in_order, at_most_tokens or cached_share",
        )
    return case


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemChange:
    """A text of the prompt that entered, left, moved or changed, and the tokens that it costs."""

    how: str
    item: str
    """The origin of the text; for a lore entry also the entry's name."""
    tokens: int
    """The tokens that the change adds to the prompt; negative if it removes tokens."""
    why: str = ""
    """The reason why the text entered the prompt or was left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseChange:
    """How the prompt of a kept answer has changed, and which conditions it no longer meets."""

    tokens_before: int | None
    tokens: int
    shared_messages: int = 0
    """The number of unchanged messages at the start of the prompt."""
    items: tuple[ItemChange, ...] = ()
    differences: tuple[Difference, ...] = ()
    broken: tuple[str, ...] = ()
    """Sentences about conditions that do not hold."""


def expected_prompt(composition: Composition) -> Expectation:
    """Return the expectation that the prompt stays exactly as it was composed here."""
    prompt = composition.prompt
    return Expectation(
        tokens=prompt.tokens,
        items=_tokens_of_items(prompt.by_origin),
        prompt=tuple(
            ExpectedMessage(
                role=message.role,
                name=message.name,
                of=tuple(dict.fromkeys(map(_plain_origin, message.origins))),
                content=message.content,
                tool_calls=message.tool_calls,
                tool_call_id=message.tool_call_id,
            )
            for message in storable_messages(prompt.messages)
        ),
    )


def _plain_origin(origin: str) -> str:
    """Return the origin of a text without the id of a record, which another game does not have."""
    return "history" if origin.startswith("history:") else origin


def _tokens_of_items(by_origin: Mapping[str, int]) -> dict[str, int]:
    return {
        origin: tokens
        for origin, tokens in by_origin.items()
        if origin.partition(":")[0] not in _NO_ITEMS
    }


def judge(
    expect: Expectation, composition: Composition, *, names: Mapping[str, str]
) -> CaseChange | None:
    """Return how a composed prompt fails the conditions of a kept answer; None if it meets all.

    Args:
        names: The names of lore entries, by their origin.
    """
    prompt = composition.prompt
    broken = tuple(_broken(expect, composition, names))
    if expect.prompt is None:
        if not broken:
            return None
        return CaseChange(tokens_before=expect.tokens, tokens=prompt.tokens, broken=broken)
    before = [one.message for one in expect.prompt]
    now = storable_messages(prompt.messages)
    is_same = messages_sha256(before) == messages_sha256(now)
    if is_same and not broken:
        return None
    return CaseChange(
        tokens_before=expect.tokens,
        tokens=prompt.tokens,
        shared_messages=shared_messages(before, now),
        items=tuple(_item_changes(expect, composition, names)),
        differences=message_differences(before, now),
        broken=broken,
    )


def _broken(
    expect: Expectation, composition: Composition, names: Mapping[str, str]
) -> Iterator[str]:
    """Yield a sentence for each condition that does not hold."""
    prompt = composition.prompt
    if expect.active:
        kept, left = final_verdicts(make_report(prompt))
        reasons = {one.item: one.cause or one.reason for one in left}
        active = {one.item for one in kept}
        for entry in expect.active:
            meant = {entry, f"lore:{entry}", *origins_called(entry, names)}
            if not meant & active:
                why = next(
                    (reasons[one] for one in meant if one in reasons), "no entry is called so"
                )
                yield f"'{entry}' must be active and is not: {why}"
    text, at = "\n".join(message.content for message in prompt.messages), 0
    for wanted in expect.in_order:
        found = text.find(wanted, at)
        if found < 0:
            where = "before the text above it in in_order" if wanted in text else "nowhere"
            yield f"the text '{one_line(wanted)}' is {where} in the prompt"
            continue
        at = found + len(wanted)
    if expect.at_most_tokens is not None and prompt.tokens > expect.at_most_tokens:
        yield f"the prompt has {prompt.tokens} tokens; {expect.at_most_tokens} are allowed"
    if (
        expect.cached_share is not None
        and (share := _cached_share(composition)) < expect.cached_share
    ):
        yield f"{share:.2f} of the prompt can be cached; at least {expect.cached_share:.2f} must be"


def _cached_share(composition: Composition) -> float:
    prompt = composition.prompt
    return prompt.stable_tokens / max(prompt.tokens, 1)


def accepted(
    expect: Expectation, composition: Composition, *, names: Mapping[str, str]
) -> Expectation:
    """Return the expectation with each condition changed so that it holds of a composed prompt.

    A whole prompt becomes the new one. A limit becomes the new figure. An entry that is not active
    and a text that is not found are dropped.
    """
    whole = expected_prompt(composition)
    if expect.prompt is not None:
        expect = replace(expect, tokens=whole.tokens, items=whole.items, prompt=whole.prompt)
    if expect.at_most_tokens is not None:
        most = max(expect.at_most_tokens, composition.prompt.tokens)
        expect = replace(expect, at_most_tokens=most)
    if expect.cached_share is not None:
        share = int(_cached_share(composition) * 100) / 100
        expect = replace(expect, cached_share=min(expect.cached_share, share))

    def holds(**condition: Any) -> bool:
        return not any(_broken(Expectation(**condition), composition, names))

    active = tuple(one for one in expect.active if holds(active=(one,)))
    in_order: tuple[str, ...] = ()
    for text in expect.in_order:
        if holds(in_order=(*in_order, text)):
            in_order = (*in_order, text)
    changed = replace(expect, active=active, in_order=in_order)
    return changed if changed != Expectation() else whole


def _item_changes(
    expect: Expectation, composition: Composition, names: Mapping[str, str]
) -> Iterator[ItemChange]:
    """Yield the items that entered, left, changed or moved, in the order of the new prompt."""
    assert expect.prompt is not None
    prompt = composition.prompt
    kept, left = final_verdicts(make_report(prompt))
    reasons = {one.item: one.cause or one.reason for one in (*kept, *left)}
    before, now = expect.items, _tokens_of_items(prompt.by_origin)

    def change(how: str, item: str, tokens: int, why: str = "") -> ItemChange:
        name = f"{item} ({names[item]})" if item in names else item
        return ItemChange(how=how, item=name, tokens=tokens, why=why)

    for item in now:
        if item not in before:
            yield change("entered", item, now[item], reasons.get(item, ""))
    for item in before:
        if item not in now:
            yield change("left", item, -before[item], reasons.get(item, "it no longer exists"))
    there = before.keys() & now.keys()
    for item in _changed_items(expect.prompt, prompt.messages, there):
        yield change("changed", item, now[item] - before[item])
    for item in _moved_items(expect.prompt, prompt.messages, there):
        yield change("moved", item, 0)


def _changed_items(
    before: Sequence[ExpectedMessage], now: Sequence[Message], items: Collection[str]
) -> Iterator[str]:
    """Yield the items with new text: `before` does not have it in a message of the same origin."""
    texts: dict[str, list[str]] = {}
    for one in before:
        for origin in one.of:
            texts.setdefault(origin, []).append(one.content)
    placed = [pair for message in now for pair in message.stretches if pair[0] in items]
    changed = (item for item, text in placed if not any(text in old for old in texts[item]))
    yield from dict.fromkeys(changed)


def _moved_items(
    before: Sequence[ExpectedMessage], now: Sequence[Message], items: Collection[str]
) -> Iterator[str]:
    """Yield the items that `now` has in another order than `before`."""
    old = [origin for one in before for origin in one.of if origin in items]
    new = [origin for one in now for origin in one.origins if origin in items]
    blocks = SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    stay = {old[at] for first, _, size in blocks for at in range(first, first + size)}
    yield from dict.fromkeys(item for item in new if item not in stay)


def change_lines(change: CaseChange) -> Iterator[str]:
    """Yield the lines of a report about the changed prompt, for people who write its texts."""
    before = change.tokens_before
    if before is not None:
        yield (
            f"{before} -> {change.tokens} tokens ({change.tokens - before:+}); the first"
            f" {change.shared_messages} messages stay"
        )
    yield from change.broken
    for one in change.items:
        cost = f", {one.tokens:+} tokens" if one.tokens else ""
        yield f"{one.how} {one.item}{cost}{f': {one.why}' if one.why else ''}"
    for difference in change.differences:
        yield (
            f"message {difference.at} {difference.change}, {difference.role}:"
            f" {', '.join(difference.origins)}"
        )
        yield from (f"  {line}" for line in difference.lines)
