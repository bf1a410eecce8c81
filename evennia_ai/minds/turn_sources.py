"""What a turn was made of, as JSON values for its manifest; `minds/past_inputs.py` reads them back.

Small values are written down. Big ones (components, cards, lorebooks, notes) have tables of
revisions: a turn keeps which of them counted for it, in their order; so it does of memories, whose
words may have to go, and of records by their ends. Texts of a card that lore may scan follow from
its revision, the values and the dice: their hashes are kept, to tell whether they still do.
"""

from collections.abc import Mapping
from dataclasses import asdict, fields
from hashlib import sha256
from math import isfinite
from typing import Any, Final

from evennia_ai.compose import Inputs
from evennia_ai.history.records import Record
from evennia_ai.knowledge.meta_prompt import TOOL as KNOWLEDGE_TOOL
from evennia_ai.lorebook.conditions import Fact
from evennia_ai.lorebook.entry import SourceName
from evennia_ai.lorebook.rules import ActivationRules
from evennia_ai.minds.view import KNOWLEDGE_POLICY, NPCView
from evennia_ai.prompt.history import History

_OF_THE_WORLD: Final = ("room",)


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


def made_of(
    view: NPCView,
    inputs: Inputs,
    *,
    context: str,
    newest_record: int,
    providers: Mapping[str, str],
) -> dict[str, Any]:
    """The sources of `inputs`, made from `view` for `context`, by name and revision.

    `newest_record` is the number of the newest record of the segment; `providers` are the paths of
    the game's own functions by the keys of the blocks that they tell.
    """
    sources = view.sources
    told = {block.key for block in inputs.blocks}
    own = {key: path for key, path in providers.items() if key in told}
    return {
        "scopes": [[scope.kind, scope.ref] for scope in sources.scopes],
        "components": _components(view),
        "card": [sources.card.name, sources.card.revision] if sources.card else None,
        "books": [[book.label, book.attach, book.revision] for book in inputs.books],
        "notes": [[note.position, note.revision] for note in sources.notes],
        "context": context,
        "off": sorted(inputs.components.off),
        "newest_record": newest_record,
        "post_history_depth": sources.conf.post_history_depth,
        **({"providers": own} if own else {}),
        **_policy(view),
    }


def policy_sha256() -> str:
    """What tells the policy of knowledge from that of another version of this program."""
    return sha256(KNOWLEDGE_POLICY.content.encode()).hexdigest()


def _policy(view: NPCView) -> dict[str, str]:
    """That the NPC was told how it uses what it can look up, if it was."""
    return {"policy": policy_sha256()} if KNOWLEDGE_TOOL in view.sources.tools else {}


def _components(view: NPCView) -> dict[str, dict[str, int]]:
    """The revisions of the components that counted, by scope and key; the card's own are its."""
    found: dict[str, dict[str, int]] = {}
    for component in view.sources.registry.resolved(view.sources.scopes):
        scope = component.scope
        found.setdefault(f"{scope.kind}:{scope.ref}", {})[component.key] = component.revision
    return found


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
