"""Actors: who changes something, with permissions that are checked again for each change."""

from collections.abc import Iterable
from typing import Any, Final

import evennia
from evennia.accounts.accounts import DefaultAccount
from evennia.accounts.models import AccountDB

from evennia_ai.engine.actors import Actor
from evennia_ai.npc.mind.viewers import lock_allows

MOST_NAME: Final = 200
COMMAND: Final = "cmd"
"""Evennia's access type of the right to use a command."""


def actor_of(somebody: Any, locks: str, *, addresses: Iterable[str] = ()) -> Actor:
    """Return an object or account of the game as an actor.

    Args:
        somebody: Who changes something: an account, or the character that it plays.
        locks: The lock string of the command or page. Its access type `cmd` is checked for each
            change.
        addresses: The network addresses of the request. They are checked for bans, as are those of
            the account's sessions at the moment of the change.
    """
    account = _account_of(somebody)
    known = tuple(addresses)

    def acting() -> Any:
        """Return whose locks are checked: the character's only while its player plays it."""
        return somebody if _account_of(somebody) == account else account

    def why_not() -> str:
        if account is None:
            if somebody.pk is None:
                return "who asked for it was deleted"
        elif why := _why_shut_out(account, known):
            return why
        if not lock_allows(acting(), locks, COMMAND):
            return (
                "your account no longer has the permission that this needs; ask an Admin for it,"
                " then try again"
            )
        return ""

    return Actor(
        name=str(somebody.key)[:MOST_NAME],
        why_not=why_not,
        passes=lambda lock, access: lock_allows(acting(), lock, access),
        plays=lambda ref: acting() is somebody and str(somebody.id) == ref,
    )


def _account_of(somebody: Any) -> Any:
    """Return the account itself, or the account that plays a character; None without one."""
    if isinstance(somebody, AccountDB):
        return somebody
    return getattr(somebody, "account", None)


def _why_shut_out(account: Any, addresses: Iterable[str]) -> str:
    """Return why an account may not be in the game at all, "" if it may.

    Evennia checks bans only when somebody logs in, so open connections must be checked here.
    """
    is_active = AccountDB.objects.filter(pk=account.pk).values_list("is_active", flat=True).first()
    if is_active is None:
        return "your account was deleted"
    if not is_active:
        return "your account is switched off; ask an Admin why"
    places = {*addresses, *addresses_of(*evennia.SESSION_HANDLER.sessions_from_account(account))}
    # A game's own class of accounts may have its own bans. Some accounts have only Django's class.
    rules = account if isinstance(account, DefaultAccount) else DefaultAccount
    if rules.is_banned(username=account.username) or any(
        rules.is_banned(ip=place) for place in places
    ):
        return "you are banned; ask an Admin why"
    return ""


def addresses_of(*sessions: Any) -> frozenset[str]:
    """Return the network addresses of sessions, without ports.

    Evennia stores some addresses as a pair with the port.
    """
    found = (one.address for one in sessions if one is not None and one.address)
    return frozenset(str(one[0] if isinstance(one, tuple | list) else one) for one in found)
