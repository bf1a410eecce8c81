"""What an account has chosen about NPCs: whether they hear it, whom it ignores, its language.

It also remembers which kinds of NPCs the account has met.

A choice belongs to the account, so it holds for every character of a player. Evennia caches the
tags of an account, so reading a choice makes no query after the first one.
"""

from typing import Any, Final

CATEGORY: Final = "evennia_ai"
"""The tag category of all choices."""
_OFF: Final = "off"
_IGNORES: Final = "ignores:"
_MET: Final = "met:"
_LANGUAGE: Final = "language:"


def has_opted_out(person: Any) -> bool:
    """True if the player of a character wants no NPC to hear or see them (`ai off`)."""
    return opted_out(getattr(person, "account", None))


def opted_out(account: Any) -> bool:
    """True if an account has switched NPCs off for itself. False for None."""
    return account is not None and _OFF in _choices_of(account)


def opt_out(account: Any) -> None:
    """Let NPCs neither hear nor see the characters of an account from now on."""
    account.tags.add(_OFF, category=CATEGORY)


def opt_in(account: Any) -> None:
    """Let NPCs hear and see the characters of an account again."""
    account.tags.remove(_OFF, category=CATEGORY)


def ignores(person: Any, npc_ref: str) -> bool:
    """True if the player of a character does not want to read what this NPC says."""
    account = getattr(person, "account", None)
    return account is not None and f"{_IGNORES}{npc_ref}" in _choices_of(account)


def ignored_npcs(account: Any) -> tuple[str, ...]:
    """Return the references of the NPCs that an account ignores, the oldest NPC first."""
    refs = [one.removeprefix(_IGNORES) for one in _choices_of(account) if one.startswith(_IGNORES)]
    return tuple(sorted(refs, key=int))


def ignore(account: Any, npc_ref: str) -> None:
    """Hide the speech of an NPC from the characters of an account."""
    account.tags.add(f"{_IGNORES}{npc_ref}", category=CATEGORY)


def stop_ignoring(account: Any, npc_ref: str) -> None:
    """Show the speech of an NPC to the characters of an account again."""
    account.tags.remove(f"{_IGNORES}{npc_ref}", category=CATEGORY)


def has_met(account: Any, kind: str) -> bool:
    """True if an account was told that NPCs of this kind speak through a model."""
    return f"{_MET}{kind}".lower() in _choices_of(account)


def note_met(account: Any, kind: str) -> None:
    """Remember that an account was told that NPCs of this kind speak through a model."""
    account.tags.add(f"{_MET}{kind}", category=CATEGORY)


def chosen_language(account: Any) -> str:
    """Return the code of the language that an account has chosen, "" for none. "" for None."""
    if account is None:
        return ""
    found = (one for one in _choices_of(account) if one.startswith(_LANGUAGE))
    return next(found, "").removeprefix(_LANGUAGE)


def choose_language(account: Any, code: str) -> None:
    """Remember the language that an account wants to read. "": that of the game."""
    for one in [one for one in _choices_of(account) if one.startswith(_LANGUAGE)]:
        account.tags.remove(one, category=CATEGORY)
    if code:
        account.tags.add(f"{_LANGUAGE}{code}", category=CATEGORY)


def _choices_of(account: Any) -> list[str]:
    found: list[str] = account.tags.get(category=CATEGORY, return_list=True)
    return found
