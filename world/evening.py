"""Play one evening in Ebbwick: its parts, the ferry, where people are, and what visitors find out.

`world/demo/evening.yaml` describes the parts. The script `Evening` moves them on while somebody is
in the game, and begins again when nobody is. A part sets the habits of the people, which they do at
their ticks without a model. What a character has found out is a tag in the category `found`. Lore
and exits test it, so NPCs guard the same secrets with a model and without one.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from django.conf import settings
from evennia.objects.models import ObjectDB
from evennia.scripts.models import ScriptDB
from evennia.scripts.scripts import DefaultScript
from evennia.server.sessionhandler import SESSIONS

from evennia_ai import happened
from evennia_ai.engine.prompt.conditions import Fact
from evennia_ai.npc.mind.handler import HABITS
from evennia_ai.npc.senses.events import Event
from evennia_ai.npc.senses.presence import NPC, object_of
from evennia_ai.npc.speech.output import escape_block
from world.demo_content import DemoContent, Part, read_content

TAG: Final = "demo"
FOUND: Final = "found"
KEY: Final = "evening"
BEAT_SECONDS: Final = 15


@cache
def content() -> DemoContent:
    """Return the files of the demo, read once."""
    return read_content()


def tagged(name: str) -> Any:
    """Return what the demo made under this name, such as `room:inn`, or None if it is gone."""
    return ObjectDB.objects.get_by_tag(name, category=TAG).first()


def forget() -> None:
    """Read the files and the clock again at their next use."""
    content.cache_clear()
    _clock.cache_clear()


# What a character has found out


def learn(character: Any, finding: str) -> None:
    """Note that a character has found something out, and show it what that is, once."""
    if not finding or character.tags.has(finding, category=FOUND):
        return
    character.tags.add(finding, category=FOUND)
    character.msg(escape_block(f"\n({content().findings[finding]})"))


def found_by(character: Any) -> tuple[str, ...]:
    """Return what a character has found out, sorted."""
    return tuple(sorted(character.tags.get(category=FOUND, return_list=True)))


def lore_facts(npc: NPC, event: Event | None) -> Mapping[str, Fact]:
    """Return facts for lorebooks: the part of the evening, and what the speaker has found out.

    EVENNIA_AI_LORE_FACTS names this function.
    """
    now = part_now()
    speaker = object_of(event.speaker_ref) if event is not None and event.speaker_ref else None
    facts: dict[str, Fact] = {"evening.part": now.id, "time.part": now.part}
    return facts if speaker is None else {**facts, "speaker.found": found_by(speaker)}


# The parts of the evening


class Evening(DefaultScript):
    """The clock of the demo.

    `db.part` is the part of the evening, and `db.passed` are its seconds so far.
    """

    def at_script_creation(self) -> None:
        """Begin before the evening slack. Evennia calls this hook."""
        self.key = KEY
        self.interval = BEAT_SECONDS
        self.persistent = True
        self.db.part = content().evening[0].id
        self.db.passed = 0

    def at_repeat(self, **kwargs: Any) -> None:
        """Let time pass for players, or begin again if there are none. Evennia calls this hook."""
        if not settings.DEMO_EVENING:
            return
        if not SESSIONS.account_count():
            if self.db.part != content().evening[0].id:
                begin(content().evening[0])
            return
        self.db.passed += BEAT_SECONDS
        if self.db.passed >= part_now().seconds:
            begin(part_after(part_now()))


@cache
def _clock() -> Any:
    """Return the script, or None. It is kept, because lore and exits ask often."""
    return ScriptDB.objects.filter(db_key=KEY).first()


def part_now() -> Part:
    """Return the current part of the evening; the first one if the demo has no clock."""
    clock = _clock()
    parts = {one.id: one for one in content().evening}
    return parts.get(clock.db.part if clock else "", content().evening[0])


def part_after(part: Part) -> Part:
    """Return the part that follows. After the last one comes the first one of the next evening."""
    parts = content().evening
    return parts[(parts.index(part) + 1) % len(parts)]


def minutes_left() -> int:
    """Return how many minutes the current part lasts, at least one."""
    clock = _clock()
    passed = clock.db.passed if clock else 0
    return max(1, round((part_now().seconds - passed) / 60))


def begin(part: Part) -> None:
    """Begin a part of the evening: move people and the ferry, and set what people do."""
    clock = _clock()
    if clock is not None:
        clock.db.part, clock.db.passed = part.id, 0
    if part is content().evening[0]:
        for room in content().rooms:
            _show(room.id, "A night and a day go by. It is an hour before the evening slack.")
    ferry = content().ferry
    if part.id == "slack":
        _gather(part)
        _sail(ferry.home, ferry.away, ferry.over)
    elif part.id == "turning":
        _sail(ferry.away, ferry.home, ferry.back)
        _gather(part)
    else:
        _gather(part)
    set_habits(part)
    for room_id, text in part.sounds.items():
        _show(room_id, text)


def set_habits(part: Part) -> None:
    """Give each person the habits of this part of the evening."""
    for person in content().npcs:
        npc = tagged(f"npc:{person.id}")
        if npc is not None:
            npc.attributes.add(HABITS, part.habits.get(person.id, []))


def _show(room_id: str, text: str) -> None:
    """Show what happens in a room to the people there. NPCs remember it."""
    room = tagged(f"room:{room_id}")
    if room is not None:
        room.msg_contents(escape_block(text))
        happened(room, "evening", text)


def _gather(part: Part) -> None:
    """Move each person to its place, unless a builder has put it somewhere else or plays it."""
    places = {one.id: {one.room} for one in content().npcs}
    for each in content().evening:
        for who, where in each.people.items():
            places[who].add(where)
    for person in content().npcs:
        npc, target = (
            tagged(f"npc:{person.id}"),
            tagged(f"room:{part.people.get(person.id, person.room)}"),
        )
        usual = {tagged(f"room:{place}") for place in places[person.id]}
        is_free = npc is not None and not npc.has_account and npc.location in usual
        if is_free and target is not None and npc.location != target:
            npc.move_to(target, move_type="move")


def _sail(start: str, end: str, text: str) -> None:
    """Move the ferry with everybody aboard: its exits lead to the other shore from now on."""
    boat = tagged(f"room:{content().ferry.boat}")
    here, there = tagged(f"room:{start}"), tagged(f"room:{end}")
    if boat is None or here is None or there is None:
        return
    _show(start, "The Patience puts out.")
    for way in boat.exits:
        way.destination = there
    for way in ObjectDB.objects.filter(db_destination=boat):
        way.location = there
    _show(content().ferry.boat, text)
    _show(end, "The Patience comes alongside.")
