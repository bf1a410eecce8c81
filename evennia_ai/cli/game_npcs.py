"""Which NPC of a game is meant on the command line: `#12`, or a name.

Imported after `evennia_ai.cli.game_folder.opened_game` alone, because the store needs Django.
"""

import contextlib
import re
import sys
from collections.abc import Collection, Iterable
from typing import Any

from evennia_ai.errors import FormatError

with contextlib.redirect_stdout(sys.stderr):  # Evennia may print while it is imported
    from evennia.objects.models import ObjectDB

    from evennia_ai.game.npc import AIMixin

_REF = re.compile(r"#([0-9]{1,18})")


def ref_among(wanted: str, known: Collection[str], *, did: str) -> str:
    """The reference among `known` that `wanted` means; `did` says what these NPCs did.

    An NPC that is gone is known by its number. FormatError: none or several are meant.
    """
    by_ref = _REF.fullmatch(wanted)
    if by_ref is not None:
        if by_ref[1] not in known:
            raise FormatError("npc", f"the object {wanted} is none that {did}")
        return by_ref[1]
    named = ObjectDB.objects.filter(db_key__iexact=wanted).values_list("id", flat=True)
    return _only([str(one) for one in named if str(one) in known], wanted, did=did)


def ref_of_npc(wanted: str) -> str:
    """The reference of the NPC that `wanted` means, whatever it did."""
    by_ref = _REF.fullmatch(wanted)
    meant = {"id": by_ref[1]} if by_ref else {"db_key__iexact": wanted}
    there: Iterable[Any] = ObjectDB.objects.filter(**meant)
    found = [str(one.id) for one in there if _is_npc(one)]
    return _only(found, wanted, did="is an NPC with a mind")


def _is_npc(found: Any) -> bool:
    return isinstance(found, AIMixin)


def _only(found: Collection[str], wanted: str, *, did: str) -> str:
    if len(found) == 1:
        return next(iter(found))
    if found:
        which = ", ".join(f"#{one}" for one in sorted(found, key=int))
        raise FormatError("npc", f"'{wanted}' could be {which}; name one so")
    raise FormatError(
        "npc", f"nobody called '{wanted}' {did}; name the NPC as the game does, or as #12"
    )
