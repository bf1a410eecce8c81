"""Addressing: decides if an event is meant for an NPC, how surely, and why.

The functions are pure. A person is answered if they name the NPC, speak only to it, or continue a
conversation with it (`Engagement`). Otherwise the NPC's response mode decides. If the only person
among NPCs greets nobody in particular, one NPC answers. A pose is meant for those whom it names.

Another NPC is answered only if it names this NPC or speaks to it directly, only for a limited time,
and never if no model chose its words. `bidding` decides which of several NPCs answers.

All listeners of a line ask the same questions about the characters in the room. `Companies` caches
the answers for one iteration of the reactor, in which nobody comes, goes or is renamed. Without the
cache, one line to thirty NPCs would cost a thousand look-ups of names.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final, NamedTuple

from evennia_ai.engine.history.records import Record
from evennia_ai.engine.prompt.names import wearer_of
from evennia_ai.engine.text.words import COMMON_WORDS
from evennia_ai.npc.senses.events import NOBODYS, Event, asks_for_answer
from evennia_ai.npc.senses.presence import is_npc, names_of
from evennia_ai.services.llm.offline.asked import Kind, classify_line
from evennia_ai.services.llm.resilience import Clock
from evennia_ai.services.settings.npc import Mode


class Addressed(StrEnum):
    """How surely an NPC should answer.

    Every MEANT NPC answers. At most one of the other NPCs answers. An NPC that is ENGAGED in a
    conversation with the speaker comes first. Then comes an NPC that is WILLING to answer anybody,
    and then one that is UNDECIDED.
    """

    MEANT = "meant"
    ENGAGED = "engaged"
    WILLING = "willing"
    UNDECIDED = "undecided"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """The decision if an event is meant for an NPC, and its reason.

    `named_at` is the index of the NPC's name in the text. It is 0 if the reason is not the name.
    """

    claim: Addressed
    why: str
    named_at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class HeardVerdict:
    """A decision about one event and its reason, for builders.

    `heard_at` is the time of the clock.
    """

    heard_at: float
    record: Record
    """The event's record."""
    kind: str
    speaker: str
    text: str
    answers: bool
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """What addressing needs to know of an NPC that hears an event.

    `names_another` returns True if a text names another character in the room, except the speaker.
    `is_chain_over` is true if NPCs have answered each other for the allowed time. `react_to` has
    the kinds of happenings that the NPC answers. `is_among_npcs` is true if the speaker is the only
    person.
    """

    ref: str
    names: tuple[str, ...]
    names_another: Callable[[str], bool] = lambda _: False
    mode: Mode = "name_match"
    is_engaged: bool = False
    hop_limit: int = 3
    is_chain_over: bool = False
    react_to: tuple[str, ...] = ()
    is_among_npcs: bool = False


# The decisions of the response modes, for events that no other rule decides.
_BY_MODE: Final[Mapping[str, Address]] = {
    "always": Address(claim=Addressed.WILLING, why="answers everybody"),
    "decide": Address(claim=Addressed.UNDECIDED, why="its decider is asked"),
}


def address_of(event: Event, listener: Listener) -> Address:
    """Return how surely an event is meant for `listener`, and why."""
    why_not = _why_never(event, listener)
    if why_not:
        return _none(why_not)
    if event.is_happening:
        return _of_happening(event, listener)
    if event.private:
        return _meant("whispered to")
    if event.to_ref:
        return _meant("spoken to directly")
    return _of_pose(event, listener) if event.kind == "pose" else _of_words(event, listener)


def _why_never(event: Event, listener: Listener) -> str:
    """Return why the NPC does not answer, whatever the words are; "" if it may."""
    why_no_npc = _why_no_npc(event, listener)
    if why_no_npc or event.is_happening or event.private:
        return why_no_npc
    if event.to_ref and event.to_ref != listener.ref:
        return "said to somebody else"
    return "answers whispers only" if listener.mode == "whisper_only" else ""


def _why_no_npc(event: Event, listener: Listener) -> str:
    """Return why the event gets no answer if it is not from a person; "" if it may get one."""
    if event.hops > listener.hop_limit:
        return f"{event.hops} NPC replies in a row, {listener.hop_limit} are allowed"
    if event.by_rote:
        return "said by an NPC without a model"
    if event.is_without_person and listener.is_chain_over:
        return "NPCs have talked long enough without a person"
    return ""


def _of_happening(event: Event, listener: Listener) -> Address:
    why = asks_for_answer(event, listener.react_to)
    if why is None:
        return _none(f"does not react to {event.kind}")
    is_its_own = event.to_ref == listener.ref or event.kind in NOBODYS
    if event.wants_answer and is_its_own:
        return _meant(why)
    return Address(claim=Addressed.WILLING, why=why)


def _of_pose(event: Event, listener: Listener) -> Address:
    """Return the address of a pose. A possessive such as "Oren's hat" does not name Oren."""
    named_at = place_of(_OF_SOMEBODY.sub("", event.text), listener.names)
    if event.hops or named_at is None:
        return _none("a pose")
    return Address(claim=Addressed.MEANT, why="named in a pose", named_at=named_at)


_OF_SOMEBODY: Final = re.compile(r"\w+['’]s\b")


def _of_words(event: Event, listener: Listener) -> Address:
    """Return the address of words that are said aloud to nobody in particular."""
    named_at = called_at(event.text, listener.names)
    if named_at is not None:
        return Address(claim=Addressed.MEANT, why="called by name", named_at=named_at)
    if event.hops:
        return _none("said by an NPC that does not name it")
    if listener.names_another(event.text):
        return _none("somebody else is named")
    if listener.is_engaged:
        return Address(claim=Addressed.ENGAGED, why="in conversation")
    if event.alone:
        return _meant("alone with the speaker")
    return _BY_MODE.get(listener.mode) or _of_nobody(event, listener)


def _of_nobody(event: Event, listener: Listener) -> Address:
    """Return the address of words when no other rule applies: only a greeting may be answered."""
    if listener.is_among_npcs and classify_line(event.text, of="").kind is Kind.GREETING:
        return Address(claim=Addressed.WILLING, why="a greeting to everybody")
    return _none("not named")


# Words that may come right before the name of the one who is called: "hey Oren", "thanks Oren".
_LEADS: Final = frozenset(
    {
        *("hey", "hi", "hello", "hallo", "hullo", "ho", "yo", "oh", "ah"),
        *("ok", "okay", "well", "so", "and", "but", "no", "yes", "aye"),
        *("please", "thanks", "you", "there", "dear", "good", "old", "master", "mistress"),
        *("sir", "lady", "greetings", "hail", "morning", "evening", "day", "night", "afternoon"),
        *("welcome", "farewell", "goodbye", "bye", "sorry", "listen", "look", "friend", "ask"),
    }
)
# After a name at the start of a sentence, these words make it a statement about that character.
_TELLS: Final = re.compile(
    r"\s+(?:is|was|isn['’]t|wasn['’]t|has|had|says|said|went|goes|looks|seems)\b[^?]*\Z",
    re.IGNORECASE,
)
_SENTENCE: Final = re.compile(r"[.!?…;:]+[\s\"'”’)]*|\n+")


def called_at(text: str, names: Iterable[str]) -> int | None:
    """Return the index in `text` where one of `names` calls somebody. None if none does.

    "I met Fig yesterday" and "Is this Clo's hat?" call nobody: the name is between other words, or
    is a possessive. A name calls somebody at the start or end of a sentence, next to a comma, and
    after words such as "hey". A name right before a full stop, as in "I met Fig.", calls nobody.
    """
    for pattern in _any_of(tuple(names)):
        for found in pattern.finditer(text):
            if _is_call(text, *found.span()):
                return found.start()
    return None


def _is_call(text: str, start: int, end: int) -> bool:
    before, after = text[:start], text[end:]
    sentence = _SENTENCE.split(before)[-1].strip(" \"'“”‘’(*-–—")
    rest = _SENTENCE.split(after)[0]
    if re.match(r"['’]s\b", after):
        return False
    if not sentence:
        return not _TELLS.match(rest + after[len(rest) : len(rest) + 1])
    last = sentence.split()[-1]
    if sentence.endswith(",") or last.casefold().strip(",") in _LEADS or re.match(r"\s*,", after):
        return True
    if rest.strip(" \"'”’)*"):
        return False
    return not after.lstrip(" \"'”’)*").startswith(".") or after.lstrip().startswith("...")


def mentions(text: str, names: Iterable[str]) -> bool:
    """True if `text` contains one of `names`."""
    return place_of(text, names) is not None


def place_of(text: str, names: Iterable[str]) -> int | None:
    """Return the index in `text` of the first of `names`, None if none occurs.

    A name matches whole words in any case. A name that is also a common word ("the", "will") counts
    only if it is written as a name: by itself or with a comma at the start or end, or with a
    capital letter inside a sentence.
    """
    patterns = (pattern.search(text) for pattern in _any_of(tuple(names)))
    return min((found.start() for found in patterns if found), default=None)


@lru_cache(maxsize=2048)
def _any_of(names: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    words = sorted({name.strip() for name in names if name.strip()}, key=len, reverse=True)
    plain = [word for word in words if word.casefold() not in COMMON_WORDS]
    common = [word for word in words if word.casefold() in COMMON_WORDS]
    found = []
    if plain:
        found.append(re.compile(rf"(?<!\w)(?:{_either(plain)})(?!\w)", re.IGNORECASE))
    if common:
        called = _either(common)
        alone = rf"^\W*(?:{called})(?=\s*[,:!…]|\W*$)|(?<=,)\s*(?:{called})(?=\W*$)"
        found.append(re.compile(alone, re.IGNORECASE))
    capital = [word for word in common if word != word.casefold()]
    if capital:
        found.append(re.compile(rf"(?<=[\w,;]\s)(?:{_either(capital)})(?!\w)"))
    return tuple(found)


def _either(words: Iterable[str]) -> str:
    return "|".join(map(re.escape, words))


def _meant(why: str) -> Address:
    return Address(claim=Addressed.MEANT, why=why)


def _none(why: str) -> Address:
    return Address(claim=Addressed.NONE, why=why)


@dataclass(frozen=True, slots=True)
class _Engaged:
    room_ref: str
    since: float
    until: float


class Engagement:
    """The persons with whom one NPC is in conversation.

    A conversation ends after a silence, or when the person or the NPC leaves.
    """

    def __init__(self) -> None:
        self._with: dict[str, _Engaged] = {}

    def begin(self, event: Event, *, now: float, lasts_seconds: float) -> None:
        """Begin or renew the conversation with the person who said this. Do nothing for an NPC."""
        self._with = {ref: one for ref, one in self._with.items() if one.until > now}
        if event.speaker_ref and not event.hops:
            self._with[event.known_ref] = _Engaged(event.room_ref, now, now + lasts_seconds)

    def since(self, event: Event, *, now: float) -> float | None:
        """Return when the speaker was last addressed or answered here.

        None without a conversation.
        """
        known = self._with.get(event.known_ref)
        if known is None or known.room_ref != event.room_ref or now >= known.until:
            return None
        return known.since

    def end(self, speaker_ref: str) -> None:
        """End the conversation with a speaker who left, also in a guise."""
        self._with = {ref: one for ref, one in self._with.items() if wearer_of(ref) != speaker_ref}

    def clear(self) -> None:
        """End all conversations, because the NPC itself left."""
        self._with.clear()


class Somebody(NamedTuple):
    """A character in a room, as far as lines can name it."""

    ref: str
    names: tuple[str, ...]
    """The key, the aliases, and the names in the short description."""
    is_npc: bool


class Company:
    """The characters in one room, in order of arrival, with a cache of which texts name them."""

    def __init__(self, there: Sequence[Any]) -> None:
        refs, names, ours = [str(who.id) for who in there], map(names_of, there), map(is_npc, there)
        self.people: Final = tuple(map(Somebody, refs, names, ours))
        self._names: Final = tuple(name for one in self.people for name in one.names)
        self._named: Final[dict[str, frozenset[str]]] = {}

    def named_in(self, text: str) -> frozenset[str]:
        """Return the references of the characters that a text names."""
        known = self._named.get(text)
        if known is None:
            asked = self.people if mentions(text, self._names) else ()
            named = [one.ref for one in asked if mentions(text, one.names)]
            known = self._named[text] = frozenset(named)
        return known


class Companies:
    """Caches the company of each room for the current iteration of the reactor."""

    def __init__(self, clock: Clock) -> None:
        self._clock: Final = clock
        self._known: Final[dict[int, Company]] = {}

    def around(self, character: Any) -> Company:
        """Return the characters in the room of `character`, itself included."""
        room = character.location
        if room is None:
            return NOBODY
        if not self._known:
            self._clock.callLater(0, self._known.clear)
        known = self._known.get(room.id)
        if known is None:
            there = room.contents_get(content_type="character")
            known = self._known[room.id] = Company(there)
        return known


NOBODY: Final = Company(())
