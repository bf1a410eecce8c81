"""`ai/forget`: the private conversations of a player are erased, once it was asked twice.

A right of the player, done by whoever may: the lock is stricter than that of `ai`.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from evennia_ai.commands.inspect_history import name_of
from evennia_ai.commands.naming import npc_named, place_named
from evennia_ai.commands.shown import shown_line
from evennia_ai.prompt.components import Scope
from evennia_ai.store.erasing import Erased, erasable_private, erase_private, private_partners


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Whose private conversations are to be erased, with one NPC or, without, with every NPC."""

    player_ref: str
    npc: Any = None

    @property
    def found(self) -> Erased:
        """What there is to erase."""
        return erasable_private(self.player_ref, npc_ref=self._npc_ref)

    def __str__(self) -> str:
        with_whom = self.npc.key if self.npc else "every NPC"
        return f"the private conversations of {name_of(self.player_ref)} with {with_whom}"

    def erase(self, by: str) -> Erased:
        """Erase them; `by` is recorded."""
        return erase_private(self.player_ref, by=by, npc_ref=self._npc_ref)

    @property
    def _npc_ref(self) -> str | None:
        return self.npc.ai.ref if self.npc else None


def request_of(caller: Any, npc_name: str, player_name: str) -> Request:
    """What was typed as a value; a player who is gone is named by number, as #12."""
    known = {Scope(kind="player", ref=ref) for ref in private_partners()}
    player = place_named(caller, f"player:{player_name}", known=known)
    npc = npc_named(caller, npc_name) if npc_name else None
    return Request(player_ref=player.ref, npc=npc)


def forgetting(request: Request, by: str) -> Generator[Any, Any, str]:
    """Ask, then erase; what came of it."""
    found = request.found
    if not found.conversations:
        return f"There is nothing to erase of {request}."
    answer = yield shown_line(f"Erase {request}: {_counted(found)}? There is no way back. yes/[no]")
    if str(answer).strip().lower() not in ("y", "yes"):
        return "Nothing was erased."
    done = request.erase(by)
    return (
        f"Erased {request}: {_counted(done)}. What was said aloud in rooms stays, as do exported"
        " files and backups."
    )


def _counted(erased: Erased) -> str:
    counts = {
        "conversation": erased.conversations,
        "record": erased.records,
        "turn": erased.turns,
    }
    return ", ".join(f"{n} {what}{'' if n == 1 else 's'}" for what, n in counts.items())
