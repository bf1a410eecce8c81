"""Our own providers: each returns facts of the moment as the text of one block.

They return only facts. How an NPC should behave belongs in components, which stay the same from
request to request. Two providers read Attributes that a builder or the game writes. `ai_relations`
is a dictionary from the id of a character ("12" or "#12") to words ("an old friend"). `ai_goals` is
a text or a list of texts, the most urgent first.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from heapq import merge
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, Final, NamedTuple

from evennia_ai.engine.history.projection import record_of
from evennia_ai.engine.history.records import Record, RecordKind, speaker_known_in
from evennia_ai.engine.history.role_markup import neutralize_markup
from evennia_ai.engine.knowledge import meta_prompt
from evennia_ai.engine.knowledge.pages.page import BaseInfo
from evennia_ai.engine.memory.memories import Memory
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.memo import Slot
from evennia_ai.engine.prompt.names import quote_name
from evennia_ai.engine.prompt.tokens import ESTIMATE
from evennia_ai.npc.inputs.facts import hours_now
from evennia_ai.npc.knowledge.guarding import bases_for_npc, guarded_keys, searchable_bases
from evennia_ai.npc.recording.heard import game_minute, real_minute, records_of_room
from evennia_ai.npc.senses.events import NOBODYS, Event
from evennia_ai.npc.senses.labels import label_of
from evennia_ai.npc.senses.presence import NPC, known_ref, seen_here
from evennia_ai.npc.senses.text import one_line, plain_name
from evennia_ai.services.settings.game import Conf
from evennia_ai.store import memories
from evennia_ai.store.history.record_rows import ConversationRef
from evennia_ai.store.history.windows import windows

# Adverbs for common words of volume. Other words are shown unchanged.
_LOUD: Final = {
    "mutter": "muttering",
    "quiet": "quietly",
    "whisper": "whispering",
    "loud": "loudly",
    "yell": "yelling",
    "shout": "shouting",
}


def speaker(npc: NPC, event: Event | None, conversation: ConversationRef | None) -> str:
    """Return who speaks or acts, with permission, language and volume."""
    if event is None:
        return ""
    if not event.speaker_ref:
        return "Nobody speaks to you."
    how = "acts" if event.is_happening else "whispers to you" if event.private else "speaks"
    language = f", in {quote_name(event.language)}" if event.language else ""
    volume = _LOUD.get(event.volume, event.volume)
    volume = f", {quote_name(volume)}" if volume else ""
    name = quote_name(event.speaker_name)
    return f"Who {how}: {name} ({event.speaker_rank}){language}{volume}."


RELATIONS: Final = "ai_relations"
MOST_OF_RELATION: Final = 200
MOST_PEOPLE: Final = 20


def relation(npc: NPC, event: Event | None, conversation: ConversationRef | None) -> str:
    """Return what the speaker, and then each other character present, is to `npc`, one per line."""
    relations = npc.attributes.get(RELATIONS)
    if not relations:
        return ""
    names: dict[str, str] = {}
    if event is not None and event.speaker_ref:
        names[event.known_ref] = event.speaker_name
    for other in seen_here(npc):
        names.setdefault(known_ref(npc, other), label_of(npc, other))
    told = ((name, _relation_words(relations, ref)) for ref, name in names.items())
    lines = [f"What {quote_name(name)} is to you: {words}." for name, words in told if words]
    return "\n".join(lines[:MOST_PEOPLE])


def _relation_words(relations: Any, speaker_ref: str) -> str:
    """Return the words about the relation to one character.

    Raises:
        TypeError: The Attribute is not a dictionary.
    """
    if not isinstance(relations, Mapping):
        raise TypeError(
            f"the Attribute {RELATIONS} is {type(relations).__name__}, not a dictionary"
        )
    said = relations.get(speaker_ref) or relations.get(f"#{speaker_ref}") or ""
    return neutralize_markup(one_line(str(said))[:MOST_OF_RELATION].rstrip(" ."))


_HOURS_OF_A_DAY = 24


def acquaintance(
    npc: NPC, event: Event | None, conversation: ConversationRef | None, *, conf: Conf
) -> str:
    """Return how many things `npc` remembers of the speaker, and since when.

    Return "" if the prompt contains all these memories anyway.
    """
    rules = conf.memory
    if event is None or not event.speaker_ref or not rules.enabled:
        return ""
    # Whispered memories count only in private, because only there they may be recalled.
    known = [
        memory
        for memory in memories.held_by(str(npc.id)).candidates(
            speaker_ref=event.known_ref, present_refs=()
        )
        if memory.about == event.known_ref and (event.private or memory.learnt == "aloud")
    ]
    if len(known) <= rules.recall.most:
        return ""
    name = quote_name(event.speaker_name)
    return f"What you remember of {name}: {len(known)} things, {_since(known)}."


def _since(known: list[Memory]) -> str:
    """Return for how many game days the oldest of these memories has existed, as words."""
    days = int((hours_now() - min(memory.created_at for memory in known)) / _HOURS_OF_A_DAY)
    return f"the first for {days} days" if days > 1 else "all of them new"


KIND: Final = "show"
MOST_THINGS: Final = 5
"""The most things that are listed for one person. The last ones that they showed are listed."""


def shown(npc: NPC, event: Event | None, conversation: ConversationRef | None) -> str:
    """Return what each person present has shown `npc` before, one line per person."""
    things: dict[str, list[str]] = {}
    for record in sorted(_shown_records(npc, conversation), key=_record_number):
        listed = things.setdefault(speaker_known_in(record), [])
        item = quote_name(plain_name(str(record.meta["item"])))
        if item in listed:
            listed.remove(item)
        listed.append(item)
    lines = []
    for other in seen_here(npc) if things else ():
        if listed := things.get(known_ref(npc, other), []):
            name = quote_name(label_of(npc, other))
            lines.append(f"What {name} has shown you before: {', '.join(listed[-MOST_THINGS:])}.")
    return "\n".join(lines)


def _shown_records(npc: NPC, conversation: ConversationRef | None) -> Iterator[Record]:
    """Yield the records of things shown to `npc` that are not in the prompt's own history."""
    for room in _rooms(npc, conversation):
        window = windows(room.id)
        is_here = conversation is not None and room.id == conversation.id
        before = window.cut if is_here else window.history.stop
        yield from (record for at, record in _things(window.history, str(npc.id)) if at < before)


def _rooms(npc: NPC, conversation: ConversationRef | None) -> Iterator[ConversationRef]:
    """Yield the recent room conversations of `npc`.

    For the current room, yield `conversation`, which may be a branch.
    """
    for room in npc.ai.lately.rooms():
        is_here = conversation is not None and room.place_ref == conversation.place_ref
        yield conversation if conversation is not None and is_here else room


class _Things(NamedTuple):
    """The things shown in a history, up to the absolute index `stop`."""

    stop: int
    shown: tuple[tuple[int, Record], ...]
    """The records of the showing, each with its absolute index, oldest first."""


_THINGS: Final = Slot[_Things]("things shown")


def _things(history: History, npc_ref: str) -> Iterator[tuple[int, Record]]:
    """Yield the records of things shown to this NPC, newest first, each with its absolute index.

    Each message is examined only once, because the result is cached with the history.
    """
    known = history.memo.get(_THINGS) or _Things(history.earlier, ())
    if known.stop < history.stop:
        first = max(known.stop, history.earlier)
        newer = enumerate(history.between(first, history.stop), start=first)
        records = ((at, record_of(message)) for at, message in newer if not message.stays)
        shown = [(at, one) for at, one in records if one is not None and _is_thing(one, npc_ref)]
        known = history.memo[_THINGS] = _Things(history.stop, (*known.shown, *shown))
    return (one for one in reversed(known.shown) if history.earlier <= one[0] < history.stop)


def _is_thing(record: Record, npc_ref: str) -> bool:
    return is_shown_to(record, npc_ref) and bool(record.meta.get("item"))


def is_shown_to(record: Record, npc_ref: str) -> bool:
    """True if the record is an event in which somebody showed something to this NPC."""
    return record.meta.get("event") == KIND and record.meta.get("to") == npc_ref


def _record_number(record: Record) -> int:
    return int(record.id)


MOST_COMPANY: Final = 20


@lru_cache(maxsize=1024)
def _name_of_thing(name: str) -> str:
    """Return the name of a place or thing, quoted or changed if it could imitate facts."""
    return quote_name(neutralize_markup(plain_name(name)))


def place(npc: NPC, event: Event | None, conversation: ConversationRef | None) -> str:
    """Return the name of the room of `npc` and who is present. "" without a location."""
    if npc.location is None:
        return ""
    here = _name_of_thing(npc.location.get_display_name(npc))
    text = f"Place: {here}."
    seen = seen_here(npc)
    if not seen:
        return text
    names = ", ".join(quote_name(label_of(npc, other)) for other in seen[:MOST_COMPANY])
    more = f" and {len(seen) - MOST_COMPANY} more" if len(seen) > MOST_COMPANY else ""
    return f"{text} Present: {names}{more}."


WORN: Final = "worn"
"""The Attribute with which Evennia's contrib `clothing` marks a thing as worn."""
MOST_BELONGINGS: Final = 20
"""The most kinds of things that are listed as carried, and as worn."""
MOST_SEEN: Final = 200
"""The most things that are looked at, because an NPC may carry a whole shop."""


class Belongings(NamedTuple):
    """The things that an NPC has on itself, as it calls them, with their numbers: "coin (3)"."""

    worn: tuple[str, ...]
    carried: tuple[str, ...]


def belongings_of(npc: NPC) -> Belongings:
    """Return what `npc` wears and carries, as far as it can see it, the oldest things first."""
    worn: Counter[str] = Counter()
    carried: Counter[str] = Counter()
    for thing in npc.contents[:MOST_SEEN]:
        shown = str(thing.get_display_name(npc))
        if shown.strip() and thing.access(npc, "view"):
            (worn if thing.attributes.get(WORN) else carried)[_name_of_thing(shown)] += 1
    return Belongings(tuple(_counted(worn)), tuple(_counted(carried)))


def _counted(things: Counter[str]) -> Iterator[str]:
    """Yield the names with their numbers, and how many more things there are."""
    for name, count in islice(things.items(), MOST_BELONGINGS):
        yield name if count == 1 else f"{name} ({count})"
    if more := sum(islice(things.values(), MOST_BELONGINGS, None)):
        yield f"{more} more"


def belongings(npc: NPC, event: Event | None, conversation: ConversationRef | None) -> str:
    """Return what `npc` wears and carries. "" for nothing."""
    worn, carried = belongings_of(npc)
    told = (("You wear", worn), ("You carry", carried))
    return " ".join(f"{what}: {', '.join(things)}." for what, things in told if things)


GOALS: Final = "ai_goals"
MOST_GOALS: Final = 10
MOST_OF_GOAL: Final = 300
"""The most characters that are shown of one goal."""


def goals(npc: NPC, event: Event | None, conversation: ConversationRef | None) -> str:
    """Return the current goals of `npc`, one per line. "" if it has none."""
    told = npc.attributes.get(GOALS)
    if not told:
        return ""
    texts = [told] if isinstance(told, str) else list(told)
    lines = [
        line for text in texts if (line := neutralize_markup(one_line(str(text))[:MOST_OF_GOAL]))
    ]
    if not lines:
        return ""
    return "\n".join(["What you are after now:", *(f"- {line}" for line in lines[:MOST_GOALS])])


def game_time(npc: NPC, event: Event | None, conversation: ConversationRef | None) -> str:
    """Return date and minute of the game and of the real world.

    A game date outside the calendar is left out.
    """
    in_game = game_minute()
    told = [f"In the game it is {in_game}."] if in_game else []
    return " ".join([*told, f"Outside of it, it is {real_minute()}."])


HEADING: Final = "What you lately lived through elsewhere:"
MOST_OF_LINE: Final = 300
"""The most characters that are shown of one line from another room."""
MOST_LINES: Final = 30
"""The most lines from one other room."""
_SAID: Final = frozenset({RecordKind.USER, RecordKind.ASSISTANT, RecordKind.EVENT})
# Arrivals, departures and looks are too unimportant for a line here.
_PASSING: Final = NOBODYS | {"arrive", "leave", "look", "moved"}
_LINE: Final = Slot[tuple[str, int]]("line of another place")
_THEN, _PLACE = itemgetter(0), itemgetter(1)


class _Line(NamedTuple):
    """A line from another room: its record's number, its place, its text and its tokens."""

    number: int
    place: str
    text: str
    tokens: int


def elsewhere(
    npc: NPC, event: Event | None, conversation: ConversationRef | None, *, conf: Conf
) -> str:
    """Return what `npc` recently experienced in other rooms, oldest first.

    The newest lines are kept, as many as fit into EVENNIA_AI_ELSEWHERE_TOKENS.
    """
    room_for = conf.elsewhere_tokens - ESTIMATE.recall(HEADING)
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
    return "\n".join([HEADING, *_render_lines(npc, kept[::-1])])


def _newest_first(npc: NPC, conversation: ConversationRef | None) -> Iterator[_Line]:
    here = conversation.id if conversation is not None else None
    rooms = (room for room in _rooms(npc, conversation) if room.id != here)
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
    """Return the text of a record's line and its tokens. Cached with the record."""
    known = record.memo.get(_LINE)
    if known is None:
        said = neutralize_markup(one_line(record.body)[:MOST_OF_LINE])
        who = "you" if record.kind is RecordKind.ASSISTANT else quote_name(record.name)
        text = f"- {who}: {said}" if who else f"- {said}"
        known = record.memo[_LINE] = (text, ESTIMATE.count(text) + 1)
    return known


def _render_lines(npc: NPC, lines: list[_Line]) -> Iterator[str]:
    """Yield the lines, grouped under the names of their places.

    Each is a list item. A line without indentation could be taken for a label, which names must not
    imitate.
    """
    for place, its in groupby(lines, key=_PLACE):
        name = npc.ai.lately.place_name(npc, place)
        yield f"- in {_name_of_thing(name)}:" if name else "- somewhere:"
        yield from (f"  {line.text}" for line in its)


def kb_meta_prompt(npc: NPC, event: Event | None, conversation: ConversationRef | None) -> str:
    """Return the block that lists the knowledge bases of `npc`, its place and the conversation.

    Of bases that the NPC must guard, it shows only safe metadata. "" if there are no bases. It is
    called only for NPCs with the search tool (`providers.NEEDS`).
    """
    bases = bases_for_npc(npc, searchable_bases(npc, conversation))
    return _block(bases, guarded_keys(npc, bases)) if bases else ""


@lru_cache(maxsize=256)
def _block(bases: tuple[BaseInfo, ...], held: frozenset[str]) -> str:
    """Return the text of the block. Cached until something about these knowledge bases changes."""
    return meta_prompt.kb_meta_prompt(bases, restricted=held)
