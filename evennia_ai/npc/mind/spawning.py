"""Bring a card to life as an NPC in a room, and delete the NPC again.

Commands and pages call these functions in the reactor's thread.
"""

from collections.abc import Sequence
from typing import Any

from evennia.accounts.models import AccountDB
from evennia.utils.create import create_object
from evennia.utils.utils import class_from_module

from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import EvenniaAIError, NotPermittedError
from evennia_ai.engine.prompt.components import of_npc
from evennia_ai.npc.mind.npc_list import npcs_called
from evennia_ai.npc.senses.presence import NPC, HasMind
from evennia_ai.npc.senses.text import plain_name
from evennia_ai.npc.views.parse_cache import parsed_card
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.authored import cards
from evennia_ai.store.authored.cards import StoredCard
from evennia_ai.store.core.authoring import MAX_NAME


class SpawnError(EvenniaAIError):
    """An NPC cannot be created or deleted. Nothing was changed."""


def npc_name(card: StoredCard, wanted: str = "") -> str:
    """Return the name of an NPC that plays this card: the wanted one, or the name in the card.

    Raises:
        SpawnError: The name is empty or too long.
    """
    name = " ".join((wanted or parsed_card(card).char).split())
    if not name or len(name) > MAX_NAME:
        raise SpawnError(
            f"The name of an NPC has 1 to {MAX_NAME} characters, not {len(name)}. No NPC was"
            " created."
        )
    return name


def namesakes(name: str) -> Sequence[str]:
    """Return the references of the NPCs that have this name already."""
    return npcs_called(plain_name(name))


def spawn_npc(card: StoredCard, *, name: str, room: Any, maker: Any, by: Actor) -> NPC:
    """Create an NPC in a room that plays a card and greets with the card's first message.

    Args:
        name: The result of `npc_name`.
        maker: The character that may control, edit and delete the NPC; or an account, then only
            Admins may.

    Raises:
        SpawnError: The game's typeclass of NPCs is unusable.
        NotPermittedError: `by` or the lock of the room forbids it.
    """
    typeclass = _npc_typeclass()
    by.check(f"making {name}")
    if not room.access(maker, "teleport_here", default=True):
        raise NotPermittedError(f"making {name}", f"the lock of {room.key} lets you bring nobody")
    # A lock names a character. An account without one is left to Admins.
    own = "" if isinstance(maker, AccountDB) else f"id({maker.id}) or "
    owner = f"{own}perm(Admin)"
    locks = f"control:{owner};delete:{owner};edit:{owner}"
    npc: Any = create_object(typeclass, key=name, location=room, home=room, locks=locks)
    cards.CARDS.assign(card.name, of_npc(npc.ai.ref), by=by)
    if parsed_card(card).first_mes.strip():
        cards.set_greeting(npc.ai.ref, 0, by=by)
    return npc


def delete_npc(npc: Any, *, lookers: Sequence[Any], by: Actor) -> None:
    """Delete an NPC that plays a card. The card and what was recorded stay.

    Raises:
        SpawnError: `why_not_deleted` has a reason, or the game's own code refuses.
        NotPermittedError: `by` may change nothing now.
    """
    if why := why_not_deleted(npc, lookers):
        raise SpawnError(why)
    label, ref = f"{npc.key} (#{npc.id})", npc.ai.ref
    by.check(f"deleting {label}")
    if not npc.delete():
        raise SpawnError(f"The game's own code refused to delete {label}. No NPC was deleted.")
    cards.CARDS.unassign(of_npc(ref), by=by)


def why_not_deleted(npc: Any, lookers: Sequence[Any]) -> str:
    """Return why none of these characters and accounts can delete this NPC now, "" if one can."""
    if not npc.pk:
        return f"{npc.key} is deleted already."
    label = f"{npc.key} (#{npc.id})"
    if cards.assignment_of(npc.ai.ref) is None:
        return (
            f"{label} plays no card, so card/despawn does not delete it; destroy #{npc.id}"
            " deletes an object. No NPC was deleted."
        )
    if npc.has_account:
        return f"A player plays {label} now. No NPC was deleted."
    if not any(npc.access(who, "delete") or npc.access(who, "control") for who in lookers):
        return f"The lock of {label} does not let you delete it."
    return ""


def _npc_typeclass() -> Any:
    """Return the typeclass that the game wants for its NPCs.

    Raises:
        SpawnError: It does not exist, or it has no mind.
    """
    path = conf().npc_typeclass
    try:
        typeclass = class_from_module(path)
    except ImportError as error:
        raise SpawnError(
            f"EVENNIA_AI_NPC_TYPECLASS names {path}, which does not exist: {error}. No NPC was"
            " created."
        ) from error
    if not issubclass(typeclass, HasMind):
        raise SpawnError(
            f"EVENNIA_AI_NPC_TYPECLASS names {path}, which has no mind: add"
            " evennia_ai.typeclasses.AIMixin to it. No NPC was created."
        )
    return typeclass
