"""Builders of records and prompts for the tests of the history."""

from collections.abc import Iterable, Sequence
from typing import Any

from evennia_ai.engine.compose import compose
from evennia_ai.engine.history.projection import project_records
from evennia_ai.engine.history.records import (
    NewRecord,
    Record,
    RecordKind,
    chain_sha256,
    content_sha256,
)
from evennia_ai.engine.history.turn.manifest import (
    RecordedMessage,
    RecordedMessages,
    TurnManifest,
    runs_of,
)
from evennia_ai.engine.history.turn.sending import SentMessages, make_draft, text_key
from evennia_ai.engine.inputs import ComposeRules, Inputs
from evennia_ai.engine.prompt.blocks import DynamicBlock
from evennia_ai.engine.prompt.budget import BudgetRules
from evennia_ai.engine.prompt.components import PromptComponent
from evennia_ai.engine.prompt.expansion import ComponentSet
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import Role, event_message
from evennia_ai.engine.prompt.prompt import Prompt

ROLES: dict[RecordKind, Role] = {
    RecordKind.USER: "user",
    RecordKind.EVENT: "user",
    RecordKind.ASSISTANT: "assistant",
    RecordKind.TOOL_CALL: "assistant",
    RecordKind.TOOL_RESULT: "tool",
}


def a_new_record(body: str, *, kind: RecordKind = RecordKind.EVENT, **fields) -> NewRecord:
    return NewRecord(kind=kind, role=ROLES.get(kind, "system"), body=body, **fields)


def stored(new: Iterable[NewRecord], *, after: Sequence[Record] = ()) -> list[Record]:
    """Return new records as the store returns them, appended after the records `after`."""
    records: list[Record] = []
    digest = after[-1].sha256 if after else ""
    for seq, record in enumerate(new, start=len(after) + 1):
        digest = chain_sha256(digest, record)
        records.append(
            Record(
                id=str(100 + seq),
                conversation=1,
                segment=1,
                seq=seq,
                kind=record.kind,
                role=record.role,
                name=record.name,
                body=record.body,
                meta=record.meta,
                content_sha256=content_sha256(record),
                sha256=digest,
                created_at=1000.0 + seq,
            )
        )
    return records


def a_conversation(length: int) -> list[Record]:
    """Return stored records of a conversation: a player's lines and an NPC's answers by turns."""
    said = []
    for number in range(length):
        if number % 2:
            said.append(a_new_record(f"Answer {number}.", kind=RecordKind.ASSISTANT))
        else:
            said.append(a_new_record(f"Line {number}.", name="Anna"))
    return stored(said)


def a_prompt(
    records: Sequence[Record],
    *,
    mood: str = "Oren is tired.",
    mood_revision: int = 3,
    block: str = "The quay, at dusk.",
    limit_tokens: int = 4000,
    cut: int = 0,
) -> Prompt:
    """Return the prompt that answers the newest record.

    It has two components, one of them at a depth, and a block of facts.
    """
    *past, event = records
    return a_prompt_after(
        project_records(past),
        event,
        mood=mood,
        mood_revision=mood_revision,
        block=block,
        limit_tokens=limit_tokens,
        cut=cut,
    )


def a_prompt_after(
    history: History,
    event: Record,
    *,
    mood: str = "Oren is tired.",
    mood_revision: int = 3,
    block: str = "The quay, at dusk.",
    limit_tokens: int = 4000,
    cut: int = 0,
) -> Prompt:
    """Return the prompt that answers `event`, with this history and the parts of `a_prompt`."""
    components = [
        PromptComponent(id=0, key="system_prompt", content="Stay in character.", revision=1),
        PromptComponent(
            id=1200, key="mood", content=mood, injection_depth=2, revision=mood_revision
        ),
    ]
    return compose(
        Inputs(
            components=ComponentSet(components),
            rules=ComposeRules(budget=BudgetRules(limit_tokens=limit_tokens)),
            history=history,
            event=event_message(event.body, name=event.name or None, record=event.id),
            blocks=(DynamicBlock(key="place", text=block),),
            cut=cut,
        )
    )


def sent(
    prompt: Prompt, records: Sequence[Record], **told: Any
) -> tuple[TurnManifest, SentMessages, list[Record]]:
    """Commit a prompt; return its manifest, its messages, and all records after the commit."""
    draft = make_draft(prompt, event=records[-1], **told)
    texts = {text.key: text.new for text in draft.texts}
    written = stored(texts.values(), after=records)
    settled = draft.settle({text_key(record): record for record in written})
    return draft.commit_manifest(settled, segment=1), settled, [*records, *written]


def recorded(messages: Iterable[RecordedMessage]) -> RecordedMessages:
    """Return these messages as columns of a manifest."""
    shown = [*messages]
    return RecordedMessages(
        records=tuple(one.record for one in shown),
        runs=runs_of((one.block, one.injected) for one in shown),
        tokens=tuple(one.tokens for one in shown),
    )


def manifest_of(prompt: Prompt, records: Sequence[Record], **told: Any) -> TurnManifest:
    """Commit a prompt, and return only its manifest."""
    return sent(prompt, records, **told)[0]
