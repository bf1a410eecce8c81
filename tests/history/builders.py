"""Records and prompts for the tests of the history; each shows only what matters."""

from collections.abc import Iterable, Sequence

from evennia_ai.compose import ComposeRules, DynamicBlock, Inputs, compose
from evennia_ai.history.projection import project
from evennia_ai.history.records import NewRecord, Record, RecordKind, chain_sha256
from evennia_ai.prompt.budget import BudgetRules
from evennia_ai.prompt.components import PromptComponent
from evennia_ai.prompt.expansion import ComponentSet
from evennia_ai.prompt.messages import Role, pending
from evennia_ai.prompt.prompt import Prompt

ROLES: dict[RecordKind, Role] = {
    RecordKind.USER: "user",
    RecordKind.EVENT: "user",
    RecordKind.ASSISTANT: "assistant",
    RecordKind.TOOL_CALL: "assistant",
    RecordKind.TOOL_RESULT: "tool",
}


def a_new_record(body: str, *, kind: RecordKind = RecordKind.EVENT, **fields) -> NewRecord:
    return NewRecord(kind=kind, role=ROLES.get(kind, "system"), body=body, **fields)


def stored(new: Iterable[NewRecord]) -> list[Record]:
    """`new` as they come back from the store."""
    records: list[Record] = []
    digest = ""
    for seq, record in enumerate(new, start=1):
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
                sha256=digest,
                created_at=1000.0 + seq,
            )
        )
    return records


def a_conversation(length: int) -> list[Record]:
    """A player's lines and an NPC's answers in turn."""
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
    limit_tokens: int = 4000,
    cut: int = 0,
) -> Prompt:
    """The prompt that answers the newest record, with components, an injection and a block."""
    *past, event = records
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
            history=project(past),
            event=pending(event.body, name=event.name or None, record=event.id),
            blocks=(DynamicBlock(key="place", text="The quay, at dusk."),),
            cut=cut,
        )
    )
