"""Lore state: what the lore of each conversation remembers from turn to turn.

Written with the turn whose prompt was sent and with no other, so looking changes nothing. A warm
read makes no query.
"""

import json
import time
from typing import Final

from evennia_ai import models
from evennia_ai.errors import StoreError
from evennia_ai.history.records import canonical_json
from evennia_ai.lorebook.activation.timers import NO_STATE, LoreState, state_from
from evennia_ai.store.core.snapshots import LORE_STATES, Snapshots, changing
from evennia_ai.store.history.record_rows import ConversationRef


def _load(conversation_id: int) -> LoreState:
    rows = models.LoreState.objects.filter(conversation_id=conversation_id)
    text = rows.values_list("state", flat=True).first()
    if text is None:
        return NO_STATE
    try:
        return state_from(json.loads(text))
    except (AttributeError, TypeError, ValueError) as error:
        raise StoreError(
            f"the lore state of conversation {conversation_id} is none ({error}); somebody wrote"
            " it past the store: reset it"
        ) from error


states: Final = Snapshots(LORE_STATES, _load)
"""What lore remembers, by the number of the conversation; the same until a turn changes it."""


def remember(conversation: ConversationRef, state: LoreState, *, turn: int) -> None:
    """The current transaction writes the turn of this number, whose prompt left `state`."""
    models.LoreState.objects.update_or_create(
        conversation_id=conversation.id,
        defaults={
            "state": canonical_json(state.to_plain()),
            "turn": turn,
            "updated_at": time.time(),
        },
    )
    states.wrote(conversation.id, state)


def reset(conversation: ConversationRef, *, by: str) -> bool:
    """Let the lore of the conversation begin anew; whether it remembered anything.

    The process where the NPC speaks notices a reset of another process at its next refresh; a
    turn it takes before that remembers on.
    """
    with changing(LORE_STATES, f"resetting the lore of {conversation} for {by}"):
        removed, _ = models.LoreState.objects.filter(conversation_id=conversation.id).delete()
        states.written(conversation.id)
    return removed > 0


def forget(conversation: ConversationRef) -> None:
    """Another process may have written it: read it again."""
    states.drop(conversation.id)
