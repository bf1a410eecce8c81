"""The scheduler: whose turn runs when.

At most one turn of an NPC is in flight, at most so many of the whole game; NPCs take turns in
starting, and each rests a moment between two starts. Who answers a person goes before who chats
with another NPC or acts by itself, but never for ever. What waits is bounded, for each NPC and for
each speaker at it. No step looks at more than one NPC, however many there are or wait.

Speakers share the places and the turns of an NPC (`Shares`), a turn each: who was served longest
ago is next. Who goes on speaking while the NPC still owes them an answer presses, and for a while
goes behind those who do not; of so many turns one is of those who press, so that they never wait
for ever either.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Collection
from heapq import heappop, heappush
from typing import Final, NamedTuple

from twisted.internet.base import DelayedCall
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.python.failure import Failure

from evennia_ai.llm.resilience import Clock

PRESSING_SECONDS: Final = 30.0
"""How long somebody counts as pressing after the last time they pressed."""

PRESSING_SHARE: Final = 4
"""Of so many turns one is of somebody who presses, where both wait."""

MOST_SERVED: Final = 256
"""Owners of whom it is remembered when they were served."""

CHATTER_SHARE: Final = 5
"""Of so many starts one is of chatter, where chatter waits."""

Work = Callable[[], "Deferred[None] | None"]
OnError = Callable[[str, Failure], None]


class Waiting(NamedTuple):
    """What waits, and for whom; "" is nobody in particular."""

    work: Work
    cooldown_seconds: float | None
    owner: str = ""


class Shares:
    """What waits for one NPC, by owner (the speaker whose words wait); each owner's is in order."""

    def __init__(self) -> None:
        self._of: dict[str, deque[Waiting]] = {}
        self._again: deque[Waiting] = deque()
        self._count = 0
        self._now_serving: str | None = None
        # The owners that were served, the latest last; and until when somebody presses.
        self._served: OrderedDict[str, int] = OrderedDict()
        self._turns = 0
        self._pressing_until: dict[str, float] = {}
        self._since_pressing = 0

    def __len__(self) -> int:
        return self._count

    def add(self, one: Waiting, *, now: float) -> None:
        """Let it wait behind what its owner has waiting already."""
        owner = one.owner
        if owner and (owner in self._of or owner == self._now_serving):
            self._pressing_until[owner] = now + PRESSING_SECONDS
        self._of.setdefault(owner, deque()).append(one)
        self._count += 1

    def put_back(self, one: Waiting) -> None:
        """Let it wait before everything else."""
        self._again.appendleft(one)
        self._count += 1

    def next(self, *, now: float) -> Waiting:
        """Take out what is next; `ended` is to be called when it is done."""
        self._count -= 1
        if self._again:
            one = self._again.popleft()
        else:
            owner = self._next_owner(now)
            one = self._of[owner].popleft()
            if not self._of[owner]:
                del self._of[owner]
        self._serve(one.owner)
        return one

    def ended(self) -> None:
        """What was taken out last is done."""
        self._now_serving = None

    def without(self, works: Collection[Work]) -> None:
        """Forget these works, as far as they wait."""
        self._again = _without(self._again, works)
        kept = {owner: _without(waiting, works) for owner, waiting in self._of.items()}
        self._of = {owner: waiting for owner, waiting in kept.items() if waiting}
        self._count = len(self._again) + sum(map(len, self._of.values()))

    def of_owner(self, owner: str) -> int:
        """How much of one owner waits."""
        return len(self._of.get(owner, ()))

    def oldest_of(self, owner: str) -> Work | None:
        """What of one owner waits longest, None where nothing does."""
        return self._of[owner][0].work if owner in self._of else None

    def greediest(self) -> str:
        """The owner of whom most waits, "" where nothing of anybody does."""
        return max(self._of, key=self.of_owner, default="")

    def _next_owner(self, now: float) -> str:
        pressing = [owner for owner in self._of if self._presses(owner, now)]
        quiet = [owner for owner in self._of if owner not in pressing]
        if quiet and not (pressing and self._since_pressing >= PRESSING_SHARE - 1):
            self._since_pressing += bool(pressing)
            owners = quiet
        else:
            self._since_pressing = 0
            owners = pressing
        return min(owners, key=lambda owner: self._served.get(owner, 0))

    def _presses(self, owner: str, now: float) -> bool:
        if self._pressing_until.get(owner, now) <= now:
            self._pressing_until.pop(owner, None)
        return owner in self._pressing_until or (bool(owner) and self.of_owner(owner) > 1)

    def _serve(self, owner: str) -> None:
        self._now_serving = owner
        self._turns += 1
        self._served[owner] = self._turns
        self._served.move_to_end(owner)
        if len(self._served) > MOST_SERVED:
            forgotten, _ = self._served.popitem(last=False)
            self._pressing_until.pop(forgotten, None)


def _without(waiting: deque[Waiting], works: Collection[Work]) -> deque[Waiting]:
    return deque(one for one in waiting if one.work not in works)


class _Queue:
    """What waits for one key, what answers people apart from chatter."""

    def __init__(self) -> None:
        self.people = Shares()
        self.chatter: deque[Waiting] = deque()
        self.is_running = False
        self.rests_until = 0.0

    def __len__(self) -> int:
        return len(self.people) + len(self.chatter)

    def next(self, *, now: float) -> Waiting:
        return self.people.next(now=now) if self.people else self.chatter.popleft()


class Scheduler:
    """Starts work of many keys (NPCs), in order for each key, fairly over the keys.

    Nothing starts inside `offer`: what is being said reaches everybody before anybody answers.
    One work starts in one call from the reactor, so that what else goes on in the server goes on
    between two starts.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        max_running: int,
        queue_limit: int,
        cooldown_seconds: float,
        on_error: OnError,
        speaker_limit: int | None = None,
    ) -> None:
        """`speaker_limit` is how much of one owner waits for one key, None for the whole queue."""
        self._clock: Final = clock
        self._max_running: Final = max_running
        self._queue_limit: Final = queue_limit
        self._speaker_limit: Final = queue_limit if speaker_limit is None else speaker_limit
        self._cooldown_seconds: Final = cooldown_seconds
        self._on_error: Final = on_error
        self._lines: dict[str, _Queue] = {}
        # Keys that may start now, in the order in which they will; each in one of the two.
        self._people: OrderedDict[str, None] = OrderedDict()
        self._chatter: OrderedDict[str, None] = OrderedDict()
        self._since_chatter = 0
        # (until when, key) of keys that rest; an entry counts if the line still says the same.
        self._resting: list[tuple[float, str]] = []
        self.running = 0
        """How much is in flight in the whole game."""
        self.waiting_in_all = 0
        """How much waits in the whole game."""
        self._is_stopped = False
        self._wake: DelayedCall | None = None

    @property
    def busy_keys(self) -> tuple[str, ...]:
        """The keys of which something waits or is in flight."""
        return tuple(key for key, line in self._lines.items() if len(line) or line.is_running)

    def rest_seconds(self, key: str) -> float:
        """How long this key rests yet, 0 where it may start."""
        line = self._lines.get(key)
        return 0.0 if line is None else max(0.0, line.rests_until - self._clock.seconds())

    def offer(
        self,
        key: str,
        work: Work,
        *,
        owner: str = "",
        chatter: bool = False,
        cooldown_seconds: float | None = None,
    ) -> bool:
        """Queue `work`; false where too much of this key, or of this owner at it, waits already.

        The owner is the person who waits for it. Chatter is nobody's, and fills at most half of
        what may wait, so that a person finds room. The cooldown is the rest after this work has
        started, where it is not that of the game.
        """
        line = self._lines.setdefault(key, _Queue())
        is_full = len(line) >= self._queue_limit
        if is_full or (chatter and len(line.chatter) >= max(1, self._queue_limit // 2)):
            return False
        made = Waiting(work, cooldown_seconds, owner)
        if chatter:
            line.chatter.append(made)
        elif owner and line.people.of_owner(owner) >= self._speaker_limit:
            return False
        else:
            line.people.add(made, now=self._clock.seconds())
        self.waiting_in_all += 1
        self._make_ready(key, line)
        self._plan()
        return True

    def room_for(self, key: str, *, owner: str) -> Work | None:
        """What would have to go so that one more of `owner` could wait; None: nothing need or can.

        Where their share is full it is the owner's own oldest; where the queue is, it is the oldest
        of whoever has more than they would have then, else their own.
        """
        line = self._lines.get(key)
        if line is None or not owner:
            return None
        own = line.people.of_owner(owner)
        if own < self._speaker_limit and len(line) < self._queue_limit:
            return None
        greediest = line.people.greediest() if own < self._speaker_limit else owner
        if line.people.of_owner(greediest) <= own + 1:
            greediest = owner
        return line.people.oldest_of(greediest)

    def put_back(
        self,
        key: str,
        work: Work,
        *,
        delay_seconds: float,
        owner: str = "",
        chatter: bool = False,
        cooldown_seconds: float | None = None,
    ) -> None:
        """Queue `work` again before all other of its kind, to start not before the delay."""
        line = self._lines.setdefault(key, _Queue())
        made = Waiting(work, cooldown_seconds, owner)
        if chatter:
            line.chatter.appendleft(made)
        else:
            line.people.put_back(made)
        self.waiting_in_all += 1
        self._rest(key, line, until=self._clock.seconds() + delay_seconds)
        self._plan()

    def withdraw(self, key: str, works: Collection[Work]) -> int:
        """Forget these works of a key, as far as they wait; how many that were."""
        line = self._lines.get(key)
        if line is None:
            return 0
        before = len(line)
        line.people.without(works)
        line.chatter = _without(line.chatter, works)
        gone = before - len(line)
        self.waiting_in_all -= gone
        self._not_ready(key)
        self._settle(key, line)
        return gone

    def waiting(self, key: str) -> int:
        """How much of this key waits."""
        return len(self._lines.get(key, ()))

    def in_flight(self, key: str) -> bool:
        """Whether work of this key has started and not ended."""
        line = self._lines.get(key)
        return line is not None and line.is_running

    def stop(self) -> None:
        """Start nothing any more."""
        self._is_stopped = True
        self._lines.clear()
        self._people.clear()
        self._chatter.clear()
        self.waiting_in_all = 0
        if self._wake is not None and self._wake.active():
            self._wake.cancel()

    # Where a key stands

    def _make_ready(self, key: str, line: _Queue) -> None:
        """Put the key at the end of those that may start, if it may and does not stand there."""
        if line.is_running or not len(line) or line.rests_until > self._clock.seconds():
            return
        if line.people:
            self._chatter.pop(key, None)
            self._people.setdefault(key)
        else:
            self._chatter.setdefault(key)

    def _not_ready(self, key: str) -> None:
        self._people.pop(key, None)
        self._chatter.pop(key, None)

    def _rest(self, key: str, line: _Queue, *, until: float) -> None:
        line.rests_until = until
        self._not_ready(key)
        heappush(self._resting, (until, key))

    def _settle(self, key: str, line: _Queue) -> None:
        """After a change: the key may start, or waits for something, or is forgotten."""
        self._make_ready(key, line)
        is_idle = not line.is_running and not len(line)
        if is_idle and line.rests_until <= self._clock.seconds():
            self._lines.pop(key, None)

    def _wake_rested(self) -> None:
        now = self._clock.seconds()
        while self._resting and self._resting[0][0] <= now:
            until, key = heappop(self._resting)
            line = self._lines.get(key)
            if line is not None and line.rests_until == until:
                self._settle(key, line)

    # Starting

    def _start_one(self) -> None:
        self._wake_rested()
        if self.running < self._max_running and (self._people or self._chatter):
            self._start(self._next_key())
        self._plan()

    def _next_key(self) -> str:
        is_chatters_turn = self._since_chatter >= CHATTER_SHARE - 1
        if self._chatter and (is_chatters_turn or not self._people):
            self._since_chatter = 0
            return self._chatter.popitem(last=False)[0]
        self._since_chatter += bool(self._chatter)
        return self._people.popitem(last=False)[0]

    def _start(self, key: str) -> None:
        line = self._lines[key]
        waiting = line.next(now=self._clock.seconds())
        self.waiting_in_all -= 1
        self.running += 1
        line.is_running = True
        rests = waiting.cooldown_seconds
        rests = self._cooldown_seconds if rests is None else rests
        self._rest(key, line, until=self._clock.seconds() + rests)
        done = maybeDeferred(waiting.work)
        done.addErrback(lambda failure: self._on_error(key, failure))
        done.addBoth(lambda _: self._ended(key, line))

    def _ended(self, key: str, line: _Queue) -> None:
        self.running -= 1
        line.is_running = False
        line.people.ended()
        if not self._is_stopped:
            self._settle(key, line)
            self._plan()

    def _plan(self) -> None:
        """Come back when the next work may start, unless something has to end before."""
        if self._is_stopped or self.running >= self._max_running:
            return
        if self._people or self._chatter:
            self._wake_in(0.0)
        elif self.waiting_in_all and self._resting:
            self._wake_in(max(0.0, self._resting[0][0] - self._clock.seconds()))

    def _wake_in(self, seconds: float) -> None:
        """Look again after `seconds`, or when it was planned, whichever is sooner."""
        if self._wake is not None and self._wake.active():
            if self._wake.getTime() <= self._clock.seconds() + seconds:
                return
            self._wake.cancel()
        self._wake = self._clock.callLater(seconds, self._start_one)
