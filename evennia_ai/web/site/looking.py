"""Who looks at a page, and what past turns are read with for it."""

from threading import local
from typing import Any, Final

from evennia_ai.minds.recomposing import PastInputs, PastReader
from evennia_ai.minds.visibility import Seer
from evennia_ai.store.history.turns import StoredTurn
from evennia_ai.web.site.door import door


def seer_for(account: Any, npc_ref: str) -> Seer:
    """What an account may see of one NPC: the function that the game's screens ask, too."""
    return Seer(door().viewer_of(account), npc_ref)


class _OfThread(local):
    """Each thread of the site's reads past turns for itself."""

    def __init__(self) -> None:
        self.reader = PastReader()


_of_thread: Final = _OfThread()


def past_reader() -> PastReader:
    """Reads past turns back for one request: what never changes is kept from those before."""
    _of_thread.reader.forget_histories()
    return _of_thread.reader


def past_of(turn: StoredTurn) -> PastInputs:
    """What the turn was composed from; NotReadBackError says what of it is gone."""
    return past_reader().inputs(turn)
