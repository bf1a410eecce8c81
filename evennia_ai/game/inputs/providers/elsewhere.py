"""What the NPC lately lived through elsewhere: said and done in the rooms of other conversations.

Only what was said and done aloud. What somebody whispered stays in the conversation with them,
also when nobody else is there: what the NPC then says aloud is part of the room from then on.
"""

from collections.abc import Iterator
from heapq import merge
from itertools import groupby, islice
from operator import itemgetter
from typing import Final, NamedTuple

from evennia_ai.game.inputs.providers.people import is_shown_to
from evennia_ai.game.recording.heard import records_of_room
from evennia_ai.game.senses.events import NOBODYS, Event
from evennia_ai.game.senses.presence import NPC
from evennia_ai.game.senses.text import in_sentence, one_line
from evennia_ai.history.records import Record, RecordKind
from evennia_ai.prompt.memo import Slot
from evennia_ai.prompt.tokens import ESTIMATE
from evennia_ai.settings.conf import conf
from evennia_ai.store.history.conversations import ConversationRef

HEADING: Final = "What you lately lived through elsewhere:"
MOST_OF_LINE: Final = 300
"""Of one line."""
MOST_LINES: Final = 30
"""Of one place."""
_SAID: Final = frozenset({RecordKind.USER, RecordKind.ASSISTANT, RecordKind.EVENT})
# Who came and went or looked somewhere is forgotten first; a thing shown is told by `shown`.
_PASSING: Final = NOBODYS | {"arrive", "leave", "look", "moved"}
_LINE: Final = Slot[tuple[str, int]]("line of another place")
_THEN, _PLACE = itemgetter(0), itemgetter(1)


class _Line(NamedTuple):
    """One line: the number of its record, its place, its text and what it costs."""

    number: int
    place: str
    text: str
    tokens: int


def elsewhere(npc: NPC, event: Event | None, conversation: ConversationRef | None) -> str:
    """What `npc` lately lived through in other rooms, oldest first; "" for nothing.

    As much of the newest as there is room for in EVENNIA_AI_ELSEWHERE_TOKENS.
    """
    room_for = conf().elsewhere_tokens - ESTIMATE.recall(HEADING)
    if room_for <= 0:
        return ""
    kept: list[_Line] = []
    for line in _newest_first(npc, conversation):
        room_for -= line.tokens
        if room_for < 0:
            break
        kept.append(line)
    if not kept:
        return ""
    return "\n".join([HEADING, *_told(npc, kept[::-1])])


def _newest_first(npc: NPC, conversation: ConversationRef | None) -> Iterator[_Line]:
    here = conversation.id if conversation is not None else None
    rooms = (room for room in npc.ai.lately.rooms() if room.id != here)
    return merge(*(_lines(room, str(npc.id)) for room in rooms), key=_THEN, reverse=True)


def _lines(room: ConversationRef, npc_ref: str) -> Iterator[_Line]:
    told = (record for record in records_of_room(room) if _is_told(record, npc_ref))
    for record in islice(told, MOST_LINES):
        text, tokens = _line(record)
        yield _Line(int(record.id), room.place_ref, text, tokens)


def _is_told(record: Record, npc_ref: str) -> bool:
    if record.kind not in _SAID or not record.body.strip() or record.meta.get("tool_calls"):
        return False
    return record.meta.get("event") not in _PASSING and not is_shown_to(record, npc_ref)


def _line(record: Record) -> tuple[str, int]:
    """The line of a record and its tokens, worked out once."""
    known = record.memo.get(_LINE)
    if known is None:
        said = one_line(record.body)[:MOST_OF_LINE]
        who = "you" if record.kind is RecordKind.ASSISTANT else in_sentence(record.name)
        text = f"- {who}: {said}" if who else f"- {said}"
        known = record.memo[_LINE] = (text, ESTIMATE.count(text) + 1)
    return known


def _told(npc: NPC, lines: list[_Line]) -> Iterator[str]:
    """The lines under the names of their places, a name again where the place changes.

    Each is an item of a list: what begins at the margin is a label, which a name must not become.
    """
    for place, its in groupby(lines, key=_PLACE):
        name = npc.ai.lately.place_name(npc, place)
        yield f"- in {in_sentence(name)}:" if name else "- somewhere:"
        yield from (f"  {line.text}" for line in its)
