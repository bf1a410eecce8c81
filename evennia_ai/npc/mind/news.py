"""News: lines that tell builders at once about problems with models.

Builders who switched news on (`ai/tell on`) get one line for each failed call, each reached limit,
and each prompt whose start changed so that the provider's cache was useless. The same problem is
reported at most once a minute, and all problems together at most five times a minute. So an
unreachable model does not flood anybody. A tag marks these builders, so the choice is permanent.

Some news goes to other builders as well. A builder who spoke to an NPC learns why it gave no
answer. All builders in the NPC's room learn once that its prompts are cut, and that it failed
several times in a row for the same reason. All builders of the game learn once that its money for a
day or a month is spent.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from evennia import SESSION_HANDLER
from evennia.objects.models import ObjectDB
from evennia.utils import logger
from twisted.internet.defer import CancelledError

from evennia_ai.engine.errors import ModelError, on_one_line
from evennia_ai.engine.prompt.cache_account import MEANINGS
from evennia_ai.npc.jobs.counting import ModelStopped
from evennia_ai.npc.model_calls.examining import CHECK
from evennia_ai.npc.model_calls.limits import Refusal
from evennia_ai.npc.model_calls.watching import TurnOutcome, WatchedCall, WatchedTurn, Watcher
from evennia_ai.npc.senses.presence import object_of
from evennia_ai.npc.senses.text import plain_name
from evennia_ai.npc.speech.output import safe_text
from evennia_ai.services.llm.arrival import describe_cut_prompt
from evennia_ai.services.llm.chat import ChatReply
from evennia_ai.services.llm.quotas import MONEY
from evennia_ai.store.history.turns import StoredTurn
from evennia_ai.store.model_calls import NewCall

TELL: Final = "tell"
TAGS: Final = "evennia_ai"
"""The category of the tag that marks builders with news."""
SECONDS: Final = 60.0
MOST: Final = 5
"""The most lines in `SECONDS` about all problems together."""
IN_A_ROW: Final = frozenset({3, 10, 100, 1000})
"""The numbers of failures in a row that are reported to all builders in the room."""

_NUMBERS: Final = re.compile(r"[0-9.,]+")

# Reasons why the start of a prompt changes in any normal conversation.
_USUAL: Final = frozenset({"append", "dynamic", "moving", "lore", "compaction", "control"})


def has_news(person: Any) -> bool:
    """True if a person switched news on."""
    return bool(person.tags.has(TELL, category=TAGS))


def switch_news(person: Any, told: bool) -> None:
    """Switch news on or off for a person. The choice survives reloads."""
    if told:
        person.tags.add(TELL, category=TAGS)
    else:
        person.tags.remove(TELL, category=TAGS)


class Tell(Protocol):
    """A function that sends a line to builders in the game."""

    def __call__(
        self,
        line: str,
        *,
        near: str = "",
        but: str = "",
        to: str = "",
        knows: bool = False,
        everybody: bool = False,
    ) -> int:
        """Send a line to builders with news, and to builders in the room of the NPC `near`.

        Args:
            near: The reference of an NPC, "" for none.
            but: The reference of a builder who does not get the line.
            to: Send the line only to the builder with this reference.
            knows: Together with `to`: skip a builder with news, who has just got another line on
                it.
            everybody: Send the line to all builders.

        Returns:
            The number of people who got the line.
        """


def tell_builders(
    line: str,
    *,
    near: str = "",
    but: str = "",
    to: str = "",
    knows: bool = False,
    everybody: bool = False,
) -> int:
    """Send a line to builders. See `Tell` for the arguments. Return how many people got it."""
    count = 0
    people = {puppet.id: puppet for puppet in _puppets()}
    if everybody:
        told = list(people)
    elif to:
        told = [
            key for key, one in people.items() if str(key) == to and not (knows and has_news(one))
        ]
    else:
        npc = object_of(near) if near else None
        room = None if npc is None else npc.location
        here = [key for key, one in people.items() if room is not None and one.location == room]
        told = list(dict.fromkeys((*_with_news(people), *here)))
    for person in (people[key] for key in told if str(key) != but):
        if person.locks.check_lockstring(person, "perm(ai) or perm(Builder)"):
            person.msg(safe_text(line, max_lines=1))
            count += 1
    return count


def _with_news(refs: Iterable[int]) -> Iterable[int]:
    """Return which of these objects have news switched on.

    One query for all, because Evennia does not cache that a tag is missing.
    """
    tagged = ObjectDB.objects.filter(db_tags__db_key=TELL, db_tags__db_category=TAGS)
    return tagged.filter(id__in=list(refs)).order_by("id").values_list("id", flat=True)


def _puppets() -> list[Any]:
    sessions = SESSION_HANDLER.get_sessions()
    return [puppet for session in sessions if (puppet := session.get_puppet()) is not None]


@dataclass(frozen=True, slots=True)
class _Failures:
    """How often in a row an NPC failed for the same reason."""

    reason: str
    times: int


class News(Watcher):
    """A watcher that turns problems into lines for builders. `now` returns seconds."""

    def __init__(self, *, now: Callable[[], float], tell: Tell = tell_builders) -> None:
        self._now: Final = now
        self._tell: Final = tell
        self._told_at: dict[tuple[str, str], float] = {}
        self._lately: deque[float] = deque()
        self._untold = 0
        self._failures: dict[str, _Failures] = {}
        self._spent: dict[tuple[str, int], int] = {}
        """By limit of money and the end of its day or month: how many builders know of it."""
        self._cut: dict[
            tuple[str, str], int
        ] = {}  # by NPC and endpoint: how many tokens the server read

    def answered(self, call: WatchedCall, reply: ChatReply, row: NewCall) -> None:
        """Report once that a server read only part of a prompt."""
        about = (call.key.npc_ref, call.endpoint)
        if row.whole_tokens is None:
            if row.input_tokens > self._cut.get(about, row.input_tokens):
                del self._cut[about]  # the server now reads more
            return
        if about in self._cut:
            return
        self._cut[about] = row.input_tokens
        told = describe_cut_prompt(
            counted=row.input_tokens, whole=row.whole_tokens, profile=call.key.profile
        )
        name = _name(call.key.npc_ref)
        self._tell(f"[ai] {name} ({call.name}): {told}", near=call.key.npc_ref)

    def turn_failed(self, npc_ref: str, speaker_ref: str, error: Exception) -> None:
        """Report a turn without a reply to its speaker. Report repeated failures to the room."""
        name, why = _name(npc_ref), on_one_line(error)
        reason = _NUMBERS.sub("", why)  # numbers such as seconds differ each time
        before = self._failures.get(npc_ref)
        times = before.times + 1 if before is not None and before.reason == reason else 1
        self._failures[npc_ref] = _Failures(reason, times)
        row = f" ({times} in a row)" if times > 1 else ""
        line = f"[ai] {name} has no answer{row}: {why}; ai/log {name}"
        if speaker_ref:
            endpoint = error.endpoint if isinstance(error, ModelError) else ""
            told_at = self._told_at.get(("failed", endpoint), 0.0)
            self._tell(line, to=speaker_ref, knows=self._now() - told_at < 1.0)
        if times in IN_A_ROW:
            self._tell(line, near=npc_ref, but=speaker_ref)

    def turn_ended(self, turn: WatchedTurn, outcome: TurnOutcome, ended_at: float) -> None:
        """Begin to count failures anew after an answer."""
        if outcome == "answered":
            self._failures.pop(turn.npc_ref, None)

    def failed(self, call: WatchedCall, error: BaseException, row: NewCall) -> None:
        """Report a failed call, unless a person stopped it."""
        if isinstance(error, ModelStopped | CancelledError) or call.key.role == CHECK:
            return
        name = _name(call.key.npc_ref)
        # The turn also tells the speaker, unless another model answers instead.
        self._line(
            ("failed", call.endpoint),
            f"a call for {name} ({call.name}) failed: {on_one_line(error)}; ai/log {name}",
        )

    def refused(self, npc_ref: str, refusal: Refusal) -> None:
        """Report that a limit refused a call. Tell all builders once that the money is spent."""
        if refusal.scope == "game" and refusal.limit.startswith(MONEY):
            self._report_spent(refusal)
            return
        name = _name(npc_ref)
        self._line((refusal.limit, npc_ref), f"{name} asks no model: {refusal.told}; ai/limits")

    def _report_spent(self, refusal: Refusal) -> None:
        """Log that a limit of money is reached, and tell builders as soon as one is there."""
        key = (refusal.limit, round(refusal.at + refusal.retry_in_seconds))
        line = f"no NPC asks a model: {refusal.told}; ai shows what to do"
        if key not in self._spent:
            logger.log_warn(f"evennia_ai: {line}")
        self._spent[key] = self._spent.get(key) or self._tell(f"[ai] {line}", everybody=True)

    def prompted(self, turn: StoredTurn) -> None:
        """Report a prompt that shares less with the previous one than it could."""
        reason = turn.manifest.break_reason
        if reason is None or reason in _USUAL:
            return
        name = _name(turn.npc_ref)
        # Do not name the book or entry, because its lock may hide it from some readers.
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
        more = f" ({self._untold} more lines were left out)" if self._untold else ""
        self._untold = 0
        self._tell(f"[ai] {text}{more}")


def _name(npc_ref: str) -> str:
    npc = object_of(npc_ref)
    return f"#{npc_ref}" if npc is None else plain_name(npc.key)
