"""How things are shown to a builder: conversations and people by name, moments, others' texts.

Text that others wrote is shown as it is, and nothing of it is interpreted.
"""

from datetime import UTC, datetime
from typing import Final

from evennia.utils.search import search_object

from evennia_ai.game.senses.text import plain_name
from evennia_ai.game.speech.output import escaped
from evennia_ai.store.history.record_rows import ConversationRef
from evennia_ai.text.columns import visible

MAX_LINE: Final = 600


def shown_block(text: str) -> str:
    """`text` with its lines, for `msg`: no colour, link, function or control in it counts."""
    lines = text.replace("\r\n", "\n").replace("\t", "    ").split("\n")
    shown = escaped("\n".join(visible(line) for line in lines))
    return f"{shown} " if shown.endswith("|") else shown  # the portal misreads a last pipe


def shown_line(text: str) -> str:
    """`text` as one line of bounded length, for `msg`."""
    line = " ".join(text.split())
    return shown_block(line if len(line) <= MAX_LINE else line[: MAX_LINE - 3] + "...")


def day_and_time(seconds: float) -> str:
    """A moment as builders read it."""
    return datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%d %H:%M UTC")


def in_words(conversation: ConversationRef) -> str:
    """Which conversation it is; what was whispered is marked so."""
    if conversation.kind == "private":
        who = name_of(conversation.partner_ref)
        return f"conversation {conversation.id}: WHISPERED, with {who} alone"
    return f"conversation {conversation.id}: in the room {name_of(conversation.place_ref)}"


def name_of(ref: str) -> str:
    """What somebody or something is called now, its number where it is gone."""
    found = search_object(f"#{ref}") if ref.isdecimal() else ()
    return f"{plain_name(found[0].key)} (#{ref})" if found else f"#{ref}"
