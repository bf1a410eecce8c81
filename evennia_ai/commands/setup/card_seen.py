"""What of each card a builder was shown last, till a reload: nobody approves or grants unread.

Two builders may be at one card: what the other one put there meanwhile is another text than the one
that was read.
"""

from typing import Any

from evennia_ai.commands.strict import CommandError
from evennia_ai.store.card_revisions import CardChange
from evennia_ai.store.cards import StoredCard


def saw_report(builder: Any, change: CardChange) -> None:
    """The builder was shown the report on this revision."""
    builder.ndb.card_reports = {**reports_seen(builder), change.name: change.number}
    _saw_file(builder, change.name, change.sha256)


def reports_seen(builder: Any) -> dict[str, int]:
    """The revision whose report the builder was shown last, by the card's name."""
    return builder.ndb.card_reports or {}


def saw_card(builder: Any, card: StoredCard) -> None:
    """The builder was shown the card in force."""
    _saw_file(builder, card.name, card.sha256)


def refuse_unseen(builder: Any, card: StoredCard) -> None:
    """CommandError where the file in force is not the one the builder was shown last."""
    known = (builder.ndb.card_files_seen or {}).get(card.name, card.sha256)
    if known != card.sha256:
        raise CommandError(
            f"Another file is in force as card {card.name} than the one you were shown last: look"
            f" at it with card {card.name}, then type this again. Nothing was changed."
        )


def _saw_file(builder: Any, name: str, sha256: str) -> None:
    builder.ndb.card_files_seen = {**(builder.ndb.card_files_seen or {}), name: sha256}
