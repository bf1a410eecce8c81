"""What a prompt was made from, as JSON values for the manifest of its turn.

Small values are written down; big ones (components, cards, books, notes) are named by the
revisions beside them, and read back from their tables; so are memories, whose words may have to
go. Texts of a card that lore may scan follow from its revision, the values and the dice: their
hashes are kept, to tell whether they still do.
"""

from collections.abc import Mapping
from dataclasses import asdict, fields
from hashlib import sha256
from math import isfinite
from typing import Any

from evennia_ai.compose import Inputs
from evennia_ai.history.records import Record
from evennia_ai.lorebook.conditions import Fact
from evennia_ai.lorebook.entries import SourceName
from evennia_ai.lorebook.rules import ActivationRules
from evennia_ai.prompt.history import History

_OF_THE_WORLD = ("room",)


def recorded_inputs(
    inputs: Inputs, *, event: Record, now: History, reply_tokens: int
) -> dict[str, Any]:
    """The values of `inputs`, which answer `event`; `now` is the conversation's whole window."""
    rules = inputs.rules
    return {
        "values": dict(inputs.values),
        "dice": asdict(rules.dice),
        "facts": {name: _json(fact) for name, fact in inputs.facts.items()},
        "clock": asdict(inputs.clock),
        "lore_state": inputs.lore_state.to_plain(),
        "cut": inputs.cut,
        "anchors": dict(inputs.anchors),
        "layout": rules.layout,
        "blocks_mode": rules.blocks,
        "limit_tokens": rules.budget.limit_tokens,
        "keep_percent": rules.budget.keep_percent,
        "reply_tokens": reply_tokens,
        "lore": _changed(rules.lore),
        "blocks": [[block.key, block.text] for block in inputs.blocks],
        "filled": {block.key: block.component for block in inputs.blocks if block.component},
        "sources": _sources(inputs.sources),
        "history": _range(inputs.history, now, event),
        "event": event.id,
        "tools": [message.record for message in inputs.tools],
        "memories": _memories(inputs) if inputs.memories else None,
        **({"guidance": inputs.guidance} if inputs.guidance else {}),
    }


def _memories(inputs: Inputs) -> dict[str, Any]:
    """The candidates by their revisions, and when each was recalled last."""
    return {
        "rules": asdict(inputs.rules.memory),
        "moment": asdict(inputs.moment),
        "held": [[memory.id, memory.revision, memory.recalled_at] for memory in inputs.memories],
    }


def _changed(rules: ActivationRules) -> dict[str, Any]:
    """The rules of lore that are not as they are by default."""
    usual = ActivationRules()
    names = (field.name for field in fields(rules))
    return {
        name: value for name in names if (value := getattr(rules, name)) != getattr(usual, name)
    }


def _sources(texts: Mapping[SourceName, str]) -> dict[str, Any]:
    """What the world says as it is, what a card says by its hash."""
    return {
        name: text if name in _OF_THE_WORLD else {"sha256": sha256(_bytes(text)).hexdigest()}
        for name, text in texts.items()
    }


def _range(history: History, now: History, event: Record) -> dict[str, Any]:
    """Which records the history held: from the first to the last, but those that were left out."""
    ids = [message.record for message in history]
    left: list[str | None] = []
    if len(now) != len(history) + 1:
        held = {*ids, event.id}
        left = [message.record for message in now if message.record not in held]
    return {
        "segment": history.segment,
        "first": ids[0] if ids else None,
        "last": ids[-1] if ids else None,
        "left_out": left,
        "earlier": [history.earlier, history.earlier_users, history.earlier_replies],
    }


def _json(fact: Fact) -> Any:
    """The fact as JSON knows it; a number that is none as a text."""
    if isinstance(fact, tuple):
        return list(fact)
    return fact if not isinstance(fact, float) or isfinite(fact) else str(fact)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
