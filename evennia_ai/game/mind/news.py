"""News: what goes wrong with models, told at once to builders who asked for it (`ai/tell on`).

One line each: a call failed, a limit was reached, a prompt began otherwise than the one before,
so that a provider's cache is of no use. Of the same thing one line a minute is told, and a few in
all, so that a model that is away floods nobody. Whoever asked for it has a tag, which stays.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final

from evennia import SESSION_HANDLER
from evennia.objects.models import ObjectDB
from twisted.internet.defer import CancelledError

from evennia_ai.game.models.limits import Refusal
from evennia_ai.game.models.watching import WatchedCall, Watcher
from evennia_ai.game.senses.presence import object_of
from evennia_ai.game.senses.text import plain_name
from evennia_ai.game.speech.output import safe_text
from evennia_ai.prompt.cache_account import MEANINGS
from evennia_ai.store.history.turns import StoredTurn
from evennia_ai.store.model_calls import NewCall
from evennia_ai.work.counting import ModelStopped

TELL: Final = "tell"
TAGS: Final = "evennia_ai"
"""Category of the tag of those who are told."""
SECONDS: Final = 60.0
MOST: Final = 5
"""Lines in so many seconds, whatever they are about."""

# How prompts begin otherwise in the course of any conversation.
_USUAL: Final = frozenset({"append", "dynamic", "moving", "lore", "compaction", "control"})


def is_told(person: Any) -> bool:
    """Whether somebody asked to be told."""
    return bool(person.tags.has(TELL, category=TAGS))


def set_told(person: Any, told: bool) -> None:
    """Tell somebody from now on, or no longer; it stays so through reloads."""
    if told:
        person.tags.add(TELL, category=TAGS)
    else:
        person.tags.remove(TELL, category=TAGS)


def tell_builders(line: str) -> None:
    """Tell those who are here, asked for it, and still are builders."""
    people = {puppet.id: puppet for puppet in _puppets()}
    for person in map(people.__getitem__, _told_among(people)):
        if person.locks.check_lockstring(person, "perm(ai) or perm(Builder)"):
            person.msg(safe_text(line, max_lines=1))


def _told_among(refs: Iterable[int]) -> Iterable[int]:
    """Who of these asked to be told, in one query: for who has no such tag Evennia asks anew."""
    tagged = ObjectDB.objects.filter(db_tags__db_key=TELL, db_tags__db_category=TAGS)
    return tagged.filter(id__in=list(refs)).order_by("id").values_list("id", flat=True)


def _puppets() -> list[Any]:
    sessions = SESSION_HANDLER.get_sessions()
    return [puppet for session in sessions if (puppet := session.get_puppet()) is not None]


class News(Watcher):
    """Makes lines of what happens; `now` gives seconds."""

    def __init__(
        self, *, now: Callable[[], float], tell: Callable[[str], None] = tell_builders
    ) -> None:
        self._now: Final = now
        self._tell: Final = tell
        self._told_at: dict[tuple[str, str], float] = {}
        self._lately: deque[float] = deque()
        self._untold = 0

    def failed(self, call: WatchedCall, error: BaseException, row: NewCall) -> None:
        """A call that no person gave up."""
        if isinstance(error, ModelStopped | CancelledError):
            return
        name = _name(call.key.npc_ref)
        kind = row.outcome.partition(":")[2] or row.outcome
        self._line(
            ("failed", call.endpoint),
            f"a call of {call.endpoint} for {name} ({call.name}) failed: {kind}; ai/log {name}",
        )

    def refused(self, npc_ref: str, refusal: Refusal) -> None:
        """A limit."""
        name = _name(npc_ref)
        self._line((refusal.limit, npc_ref), f"{name} asks no model: {refusal.told}; ai/limits")

    def prompted(self, turn: StoredTurn) -> None:
        """A prompt that shares less with the one before than it could have."""
        reason = turn.manifest.break_reason
        if reason is None or reason in _USUAL:
            return
        name = _name(turn.npc_ref)
        # Not of which book or entry: its lock may hide that from some who read this.
        kind = (turn.manifest.broken_by or "").partition(":")[0]
        self._line(
            ("cache", turn.npc_ref),
            f"the cache of {name}'s prompts broke in turn {turn.number} at"
            f" {kind}: {MEANINGS[reason]}; ai/cache {name}",
        )

    def _line(self, about: tuple[str, str], text: str) -> None:
        now = self._now()
        while self._lately and self._lately[0] <= now - SECONDS:
            self._lately.popleft()
        if now - self._told_at.get(about, now - SECONDS) < SECONDS or len(self._lately) >= MOST:
            self._untold += 1
            return
        self._told_at = {key: at for key, at in self._told_at.items() if at > now - SECONDS}
        self._told_at[about] = now
        self._lately.append(now)
        more = f" ({self._untold} more were not told)" if self._untold else ""
        self._untold = 0
        self._tell(f"[ai] {text}{more}")


def _name(npc_ref: str) -> str:
    npc = object_of(npc_ref)
    return f"#{npc_ref}" if npc is None else plain_name(npc.key)
