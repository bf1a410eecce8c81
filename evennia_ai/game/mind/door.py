"""The door of the web: what its pages ask of the game, which they do not import.

The app names this module, and `web/site/door.py` says what it is asked for. What a page gets is a
plain value; what changes something in the running game is done in the reactor's thread.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from twisted.internet import reactor as running
from twisted.internet import threads
from twisted.python.threadable import isInIOThread

from evennia_ai.errors import NotStoredError
from evennia_ai.game.mind import emergency, overview
from evennia_ai.game.mind.viewers import allows, viewer_of
from evennia_ai.game.senses.presence import HasMind, object_of

__all__ = ["may_edit", "npcs", "pause", "resume", "start_all", "stop_all", "viewer_of"]

reactor: Any = running  # which one it is, is known when the game runs
T = TypeVar("T")
_WHY: Final = "stopped on the web page"


def npcs(part: str = "") -> tuple[overview.ListedNPC, ...]:
    """The NPCs with `part` in their name or room, by name; one query, no object is made."""
    return overview.all_npcs(part)


def may_edit(account: Any, locks: str) -> bool:
    """Whether a lock string lets an account change what it is on."""
    return allows(account, locks, "edit")


def pause(ref: str, *, by: str) -> None:
    """Have one NPC ask no model until `resume`; what it is at is given up."""
    _in_the_reactor(lambda: emergency.pause(_npc(ref), by=by, reason=_WHY))


def resume(ref: str, *, by: str) -> None:
    """Let a paused NPC go on."""
    _in_the_reactor(lambda: emergency.resume(_npc(ref), by=by))


def stop_all(*, by: str) -> None:
    """Stop the whole game's NPCs until `start_all`."""
    _in_the_reactor(lambda: emergency.stop_all(by=by, reason=_WHY))


def start_all(*, by: str) -> None:
    """Let the game's NPCs answer again."""
    _in_the_reactor(lambda: emergency.start_all(by=by))


def _npc(ref: str) -> Any:
    found = object_of(ref)
    if not isinstance(found, HasMind):
        raise NotStoredError("NPC with the number", ref, [])
    return found


def _in_the_reactor(act: Callable[[], T]) -> T:
    if isInIOThread() or not reactor.running:  # a script has none that would take it over
        return act()
    done: T = threads.blockingCallFromThread(reactor, act)
    return done
