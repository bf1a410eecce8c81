"""Prefixes: what two past prompts of a conversation share, told from their manifests alone.

Every text of a prompt is a record, and equal texts of a segment are one record: where two prompts
name the same records they were the same bytes. For turns whose process did not know the prompt
before, because the server had been started anew.
"""

from itertools import takewhile
from typing import NamedTuple

from evennia_ai.history.turns import RecordedMessage, RenderedMessage, TurnManifest


class SharedPrefix(NamedTuple):
    """The messages at the start of a prompt that the one before began with as well."""

    messages: int
    tokens: int
    is_whole: bool
    """Whether all of the prompt before is among them."""


def shared_prefix(older: TurnManifest, newer: TurnManifest) -> SharedPrefix:
    """What the newer prompt still shares with the older one, at least."""
    pairs = zip(older.messages, newer.messages, strict=False)
    shared = [now for _, now in takewhile(lambda pair: _is_same(*pair), pairs)]
    return SharedPrefix(
        messages=len(shared),
        tokens=sum(message.tokens for message in shared),
        is_whole=len(shared) == len(older.messages),
    )


def _is_same(
    older: RecordedMessage | RenderedMessage, newer: RecordedMessage | RenderedMessage
) -> bool:
    return (
        isinstance(older, RecordedMessage)
        and isinstance(newer, RecordedMessage)
        and older.record == newer.record
    )
