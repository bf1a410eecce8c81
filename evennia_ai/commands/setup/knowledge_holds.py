"""The switch of `kb` that tells who guards a restricted base for good, and lets somebody go.

A lock such as `restricted:tag(outsider)` asks for what any builder can take away. So whom it held
once stays held until somebody who may change the base says otherwise, here.
"""

from collections.abc import Collection, Iterator
from typing import Any, Final

from evennia.utils.search import search_object

from evennia_ai.commands.naming import npc_named
from evennia_ai.commands.setup import knowledge_named as named
from evennia_ai.commands.shown import day_and_time
from evennia_ai.commands.strict import CommandError, StrictCommand
from evennia_ai.game.guarding import is_held_by_lock, names_some
from evennia_ai.game.holding import look_at_all
from evennia_ai.game.viewers import allows
from evennia_ai.knowledge.pages import BaseInfo
from evennia_ai.store import knowledge_holds
from evennia_ai.store.knowledge_holds import Hold
from evennia_ai.text.columns import hanging, visible

_USAGE: Final = "kb/release <base> [= <npc>]"
_MOST: Final = 40


class KnowledgeHolds(StrictCommand):
    """Everything about those who guard a base for good."""

    def release(self) -> None:
        """Tell who guards a base for good, or let one of them go."""
        info = named.base_named(self.caller, self.wanted(_USAGE))
        look_at_all(info)
        if self.rhs is None:
            self.show("\n".join(_lines(info)))
        else:
            self._release(info, self.rhs)

    def _release(self, info: BaseInfo, who: str) -> None:
        named.refuse_change(self.caller, info)
        held = {hold.npc_ref: hold for hold in knowledge_holds.holds(info.key)}
        ref, name = self._guard(who, held.keys())
        if ref not in held:
            raise CommandError(f"{name} does not guard {info.key} for good. Nothing was changed.")
        if not all(_may_release(self.caller, locks) for locks in held[ref].locks):
            raise CommandError(
                f"{name} guarded a base '{info.key}' that was removed, and its lock lets you not"
                " change it. Nothing was changed."
            )
        npc = _object(ref)
        if npc is not None and names_some(info) and is_held_by_lock(npc, info):
            raise CommandError(
                f"The lock of {info.key} still holds {name}: {info.locks}. Take away first what it"
                " asks for. Nothing was changed."
            )
        knowledge_holds.release(info.key, ref)
        self.say(f"{name} guards {info.key} no longer: what its pages say is told to {name}.")

    def _guard(self, who: str, refs: Collection[str]) -> tuple[str, str]:
        """The reference and the name of whoever is meant; one who is gone is named by number."""
        number = who.removeprefix("#").strip()
        if number.isdecimal() and _object(number) is None and number in refs:
            return number, f"#{number}"
        npc = npc_named(self.caller, who)
        return str(npc.id), str(npc.key)


def still_held(info: BaseInfo) -> str:
    """The end of what is said of a changed base: how many guard it whatever its lock says."""
    count = len(knowledge_holds.held_refs(info.key))
    if not count or not info.restricted:
        return ""
    return f" NPCs that guard it for good: {count}; kb/release {info.key} names them."


def _may_release(caller: object, locks: str) -> bool:
    return allows(caller, locks, "view") and allows(caller, locks, "edit")


def _lines(info: BaseInfo) -> Iterator[str]:
    held = knowledge_holds.holds(info.key)
    if not info.restricted:
        yield f"Knowledge base {info.key} is not restricted: nobody guards it now."
    elif not names_some(info):
        yield f"Knowledge base {info.key} is restricted for every NPC."
    if not held:
        yield f"Nobody guards {info.key} for good."
        return
    yield f"Who guards {info.key} for good, whatever its lock says of them now:"
    for hold in held[:_MOST]:
        yield from hanging(f"  {_row(info, hold)}")
    if len(held) > _MOST:
        yield f"  and {len(held) - _MOST} more"
    yield f"kb/release {info.key} = <npc> lets one go."


def _row(info: BaseInfo, hold: Hold) -> str:
    npc = _object(hold.npc_ref)
    name = visible(npc.key) if npc is not None else "gone"
    by_lock = npc is not None and names_some(info) and is_held_by_lock(npc, info)
    now = "the lock holds it now" if by_lock else "the lock would let it go"
    return f"{name} (#{hold.npc_ref}), since {day_and_time(hold.held_since)}; {now}"


def _object(ref: str) -> Any:
    found = search_object(f"#{ref}")
    return found[0] if found else None
