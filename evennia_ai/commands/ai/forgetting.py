"""`ai/forget`: what a player whispered and what is remembered of them, once it was asked twice.

A right of the player, done by whoever may: the lock is stricter than that of `ai`.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from evennia_ai.commands.naming import npc_named, place_named
from evennia_ai.commands.shown import name_of, shown_line
from evennia_ai.prompt.components import Scope
from evennia_ai.store import model_calls
from evennia_ai.store.erasing import (
    Forgotten,
    count_about,
    erasable_private,
    forget_person,
    people,
    private_partners,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Who is to be forgotten, by one NPC or, without, by every NPC."""

    player_ref: str
    npc: Any = None

    @property
    def found(self) -> Forgotten:
        """What there is to erase."""
        ref, npc_ref = self.player_ref, self._npc_ref
        return Forgotten(
            private=erasable_private(ref, npc_ref=npc_ref),
            memories=count_about(ref, npc_ref=npc_ref),
            calls=model_calls.count_of_player(ref, npc_ref=npc_ref),
        )

    def __str__(self) -> str:
        who, with_whom = name_of(self.player_ref), self.npc.key if self.npc else "every NPC"
        return f"the private conversations of {who} with {with_whom}, and the memories of {who}"

    def erase(self, by: str) -> Forgotten:
        """Erase it all; `by` is recorded."""
        return forget_person(self.player_ref, by=by, npc_ref=self._npc_ref)

    @property
    def _npc_ref(self) -> str | None:
        return self.npc.ai.ref if self.npc else None


def request_of(caller: Any, npc_name: str, player_name: str) -> Request:
    """What was typed as a value; a player who is gone is named by number, as #12."""
    known = {Scope(kind="player", ref=ref) for ref in (*private_partners(), *people())}
    player = place_named(caller, f"player:{player_name}", known=known)
    npc = npc_named(caller, npc_name) if npc_name else None
    return Request(player_ref=player.ref, npc=npc)


def forgetting(request: Request, by: str) -> Generator[Any, Any, str]:
    """Ask, then erase; what came of it."""
    found = request.found
    if not (found.private.conversations or found.memories or found.calls):
        return f"There is nothing to erase of {request}."
    answer = yield shown_line(f"Erase {request}: {_counted(found)}? There is no way back. yes/[no]")
    if str(answer).strip().lower() not in ("y", "yes"):
        return "Nothing was erased."
    done = request.erase(by)
    return (
        f"Erased {request}: {_counted(done)}. What was said aloud in rooms stays, as do exported"
        f" files and backups.{_calls_told(done)}"
    )


def _calls_told(done: Forgotten) -> str:
    """That it is forgotten which calls of models answered the player."""
    if not done.calls:
        return ""
    calls = "1 call of a model was" if done.calls == 1 else f"{done.calls} calls of models were"
    return f" {calls} made for their words; that it was for theirs is forgotten."


def _counted(erased: Forgotten) -> str:
    private, memories = erased.private, erased.memories
    counts = {
        "conversation": private.conversations,
        "record": private.records,
        "turn": private.turns,
    }
    told = [f"{n} {what}{'' if n == 1 else 's'}" for what, n in counts.items()]
    if memories:
        told.append(f"{memories} {'memory' if memories == 1 else 'memories'}")
    return ", ".join(told)
