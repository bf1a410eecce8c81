"""What a builder probably meant by a switch that a command does not have.

The words of `MEANT_BY` are not switches: a command only suggests the verb that they stand for.
"""

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Final

_WORDS: Final[Mapping[str, str]] = {
    "create": "new add make",
    "edit": "change modify rewrite write text content set new add make",
    "set": "field option value",
    "on": "enable activate start unpause",
    "off": "disable deactivate mute silence",
    "assign": "attach bind link give play use",
    "unassign": "detach unbind unlink take unuse",
    "import": "load upload",
    "report": "preview inspect",
    "approve": "accept confirm",
    "reject": "refuse decline deny",
    "grant": "allow permit",
    "revoke": "forbid disallow",
    "export": "save download dump",
    "revisions": "history log changes versions",
    "revert": "undo rollback restore",
    "remove": "delete del rm clear destroy erase drop",
    "reset": "clear restart",
    "limits": "cost costs price usage quota limit budget money spent",
    "forecast": "predict estimate",
    "": "list show view look read info display status",
}
"""Words that people try, by the verb that they mean. "" is the command without a switch."""


def _by_word() -> Mapping[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for verb, words in _WORDS.items():
        for word in words.split():
            found[word] = (*found.get(word, ()), verb)
    return found


MEANT_BY: Final = _by_word()
"""The verbs that each word may mean. A command takes the first one that it has."""


def meant_verb(typed: str, verbs: Collection[str]) -> str | None:
    """Return the verb that `typed` stands for, "" for the command without a switch, or None."""
    return next((verb for verb in MEANT_BY.get(typed, ()) if verb in verbs), None)


def nearest_verb(typed: str, verbs: Collection[str]) -> str | None:
    """Return the verb that is spelled most like `typed`, or None."""
    known = [verb for verb in verbs if verb]
    near = get_close_matches(typed, known, n=1)
    return near[0] if near else None


def verbs_elsewhere(typed: str, commands: Mapping[str, Collection[str]]) -> list[str]:
    """Return `<command>/<verb>` for each command that has the typed switch.

    If no command has it, return those with a switch that the typed word probably means.
    """
    exact = [f"{key}/{typed}" for key, verbs in commands.items() if typed in verbs]
    if exact:
        return exact
    found = ((key, meant_verb(typed, verbs)) for key, verbs in commands.items())
    return [f"{key}/{verb}" for key, verb in found if verb]
