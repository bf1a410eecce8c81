"""What pages ask of the running game.

Each function returns plain values. Reads of the game's memory and all changes run in the reactor's
thread.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from evennia.objects.models import ObjectDB
from twisted.internet import reactor as running
from twisted.internet import threads
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.python.failure import Failure
from twisted.python.threadable import isInIOThread

from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import NotStoredError
from evennia_ai.engine.knowledge.pages.page import BackendError
from evennia_ai.engine.knowledge.restricted.mediation import MOST_IN_ALL, PagePassage
from evennia_ai.engine.prompt.report import Report
from evennia_ai.npc.knowledge import search
from evennia_ai.npc.knowledge.guarding import is_held_by_lock, searchable_bases
from evennia_ai.npc.mind import emergency
from evennia_ai.npc.mind.actors import actor_of
from evennia_ai.npc.mind.home import Home, home_now
from evennia_ai.npc.mind.memory_list import ListedMemory, list_memories
from evennia_ai.npc.mind.status import GameNow, NPCStatus, game_now, stored_status
from evennia_ai.npc.mind.viewers import seer_for
from evennia_ai.npc.npc_settings import given_to, settings_of
from evennia_ai.npc.runtime import runtime
from evennia_ai.npc.senses.presence import HasMind, object_of
from evennia_ai.npc.tools.knowledge import USUAL_HITS
from evennia_ai.npc.tools.registry import choice_of
from evennia_ai.npc.views.looking import foreseen_report
from evennia_ai.npc.views.why import Because, titles_of, why_active
from evennia_ai.store.history.branches import npc_of
from evennia_ai.store.knowledge import knowledge_bases

reactor: Any = running  # the game chooses its reactor before it imports this module
TOOLS: Final = "tools"
_WHY: Final = "stopped on the web page"


def page_actor(account: Any, rank: str, *, address: str) -> Actor:
    """Return an account as an actor who must have the permission `rank` or a higher one."""
    return actor_of(account, f"cmd:perm({rank})", addresses=[address])


def character_refs(account: Any) -> tuple[str, ...]:
    """Return the references of an account's characters, those that it plays now first.

    The others are included because a builder who looks at a page has often left the game.
    """
    now = ObjectDB.objects.filter(db_account_id=account.id).values_list("id", flat=True)
    # `account.characters` may write to the database each time it is read.
    own = (one.id for one in account.db._playable_characters or () if one)
    return tuple(dict.fromkeys(map(str, (*now, *own))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """A prompt that an NPC would send, and why its lore would be active."""

    report: Report
    reasons: tuple[Because, ...]
    titles: Mapping[str, str]
    """The names of its texts, by origin."""


def preview(ref: str, line: str, *, account: Any) -> Preview:
    """Return the prompt that an NPC would send if the account now said `line`.

    What the account may not see is hidden. "" means a prompt without a line. Nothing is stored and
    no model is asked.

    Raises:
        NotStoredError: There is no such NPC.
        BudgetError: The turn would fail with this line.
    """

    def composed() -> Preview:
        speaker = next(iter(character_refs(account)), "")
        inputs = _npc(ref).ai.foreseen(line or None, object_of(speaker))
        seer = seer_for(account, ref)
        made, report = foreseen_report(seer, inputs)
        seen = seer.seen(inputs).inputs
        return Preview(report=report, reasons=why_active(seen, made.lore), titles=titles_of(seen))

    found: Preview = _in_the_reactor(composed)
    return found


def home(stored: Home) -> Home:
    """Return the home with what NPCs do now. No object is loaded."""
    found: Home = _in_the_reactor(lambda: home_now(runtime(), stored, now=time.time()))
    return found


def npc_status(ref: str) -> NPCStatus:
    """Return the state of an NPC or of a builder's branch. A deleted NPC has only what is stored.

    The queries about what is stored run in the page's thread.
    """
    now = time.time()
    stored = stored_status(ref, now=now)

    def read() -> Any:
        if not isinstance(object_of(npc_of(ref)), HasMind):
            return stored
        return _npc(npc_of(ref)).ai.status_now(stored, now=now)

    found: NPCStatus = _in_the_reactor(read)
    return found


def memories(ref: str, *, account: Any) -> tuple[ListedMemory, ...]:
    """Return what an NPC remembers, as the account may see it."""
    found: tuple[ListedMemory, ...] = _in_the_reactor(
        lambda: list_memories(ref, seer_for(account, ref))
    )
    return found


def game_state() -> GameNow:
    """Return what all NPCs of the game do now."""
    found: GameNow = _in_the_reactor(lambda: game_now(runtime()))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A setting of an NPC. `is_own` is False if the NPC follows the game's setting."""

    name: str
    value: str
    is_own: bool


def settings(ref: str) -> tuple[Setting, ...]:
    """Return the settings of an NPC and its tools.

    Raises:
        NotStoredError: There is no such NPC.
    """

    def read() -> tuple[Setting, ...]:
        npc = _npc(ref)
        own, values = given_to(npc), settings_of(npc)
        told = [
            Setting(
                name=one.name, value=_in_words(getattr(values, one.name)), is_own=one.name in own
            )
            for one in fields(values)
            if one.name != TOOLS
        ]
        tools = ", ".join(tool.name for tool in choice_of(npc).has)
        return (*told, Setting(name=TOOLS, value=tools or "none", is_own=TOOLS in own))

    found: tuple[Setting, ...] = _in_the_reactor(read)
    return found


def _in_words(value: Any) -> str:
    if value is None or value in ("", (), {}):
        return "not set, as in the game"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {said}" for name, said in value.items())
    return ", ".join(map(str, value)) if isinstance(value, tuple | frozenset) else str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundBy:
    """What an NPC finds in a knowledge base."""

    may_search: bool
    """True if the base is assigned to the NPC or its place, and its lock allows the NPC."""
    guards: bool
    """True if the NPC gets only safe summaries or hints."""
    passages: tuple[PagePassage, ...] = ()


def search_as(ref: str, base: str, words: str) -> FoundBy:
    """Return what an NPC finds in a base. The NPC learns nothing, and nothing is stored.

    Raises:
        BackendError: The base cannot be read now.
    """
    return _in_the_reactor(lambda: _searched(_npc(ref), base, words))


async def _searched(npc: Any, base: str, words: str) -> FoundBy:
    known = next((info for info in searchable_bases(npc, None) if info.key == base), None)
    if known is None:
        return FoundBy(may_search=False, guards=False)
    found = await search.search_bases(
        npc,
        [known],
        words,
        backends=runtime().backends,
        limit=USUAL_HITS,
        most_whole=MOST_IN_ALL,
    )
    if found.unread:
        raise BackendError(f"knowledge base '{base}' cannot be read now; the Server log says why")
    is_kept = str(npc.id) in knowledge_bases.held_refs(base)
    guards = known.restricted and (is_kept or is_held_by_lock(npc, known))
    return FoundBy(may_search=True, guards=guards, passages=found.chunks)


def pause(ref: str, *, by: Actor) -> None:
    """Stop one NPC until `resume`, and give up its running turn."""
    _in_the_reactor(lambda: emergency.pause(_npc(ref), by=by, reason=_WHY))


def resume(ref: str, *, by: Actor) -> None:
    """Let a paused NPC answer again."""
    _in_the_reactor(lambda: emergency.resume(_npc(ref), by=by))


def stop_all(*, by: Actor) -> None:
    """Stop all NPCs of the game until `start_all`."""
    _in_the_reactor(lambda: emergency.stop_all(by=by, reason=_WHY))


def start_all(*, by: Actor) -> None:
    """Let all NPCs of the game answer again."""
    _in_the_reactor(lambda: emergency.start_all(by=by))


def _npc(ref: str) -> Any:
    found = object_of(ref)
    if not isinstance(found, HasMind):
        raise NotStoredError("NPC with the number", ref, [])
    return found


def _in_the_reactor(act: Callable[[], Any]) -> Any:
    """Call `act` in the reactor's thread. Wait for its result, also if it is a coroutine."""

    def done() -> "Deferred[Any]":
        return maybeDeferred(act)

    if reactor.running and not isInIOThread():
        return threads.blockingCallFromThread(reactor, done)
    told = done()  # without a running reactor, as in a script, all work finishes at once
    if isinstance(told.result, Failure):
        told.result.raiseException()
    return told.result
