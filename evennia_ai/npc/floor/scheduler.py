"""The scheduler: decides when each NPC's turn runs.

An NPC has at most one running turn. The running turns are limited for each model and for the whole
game, so a slow model delays only the NPCs that use it. Models and NPCs take turns to start, and an
NPC rests a moment between two starts. Answers to persons come before chatter (words among NPCs, and
acts of their own), but chatter gets a share. The queue is limited for each NPC, and for each
speaker to an NPC. No step looks at more than one NPC, so its cost does not grow
with their number.

People often type one thought as several lines. So an idle NPC waits a moment before it begins, and
a line that arrives while the speaker's earlier line waits joins that line's turn.

`Shares` decides whose words an NPC answers next, if several people speak to it. Speakers take
turns: next comes the one who was answered longest ago. A speaker who says more before the NPC has
answered counts as pressing. For a while, pressing speakers come after the others. One of every few
turns is still for them, so they never wait for ever.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Hashable
from heapq import heappop, heappush
from typing import Final, NamedTuple

from twisted.internet.base import DelayedCall
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.python.failure import Failure

from evennia_ai.services.llm.resilience import Clock

PRESSING_SECONDS: Final = 30.0
"""How long a speaker counts as pressing after they last spoke too soon."""

PRESSING_SHARE: Final = 4
"""If others wait too, one of so many turns is for a pressing speaker."""

MOST_SERVED: Final = 256
"""The most owners whose last turn is remembered."""

Work = Callable[[], "Deferred[None] | None"]


class Waiting(NamedTuple):
    """Work that waits. `owner` is the person who waits for the answer, "" for nobody."""

    work: Work
    cooldown_seconds: float | None
    owner: str = ""


class Shares:
    """The work that waits for one NPC, in order for each owner (a speaker)."""

    def __init__(self) -> None:
        self._of: dict[str, deque[Waiting]] = {}
        self._again: deque[Waiting] = deque()
        self._count = 0
        self._now_serving: str | None = None
        # By owner: the number of the turn in which their work last started, latest owner last.
        self._served: OrderedDict[str, int] = OrderedDict()
        self._turns = 0
        self._pressing_until: dict[str, float] = {}
        self._since_pressing = 0

    def __len__(self) -> int:
        return self._count

    def add(self, one: Waiting, *, now: float) -> None:
        """Queue work after the work of the same owner."""
        owner = one.owner
        if owner and (owner in self._of or owner == self._now_serving):
            self.presses(owner, now=now)
        self._of.setdefault(owner, deque()).append(one)
        self._count += 1

    def put_back(self, one: Waiting) -> None:
        """Queue work that was already started, before all other work that waits."""
        self._again.appendleft(one)
        self._count += 1

    def presses(self, owner: str, *, now: float) -> None:
        """Note that a speaker says more before the NPC has answered."""
        self._pressing_until[owner] = now + PRESSING_SECONDS

    def exchange(self, old: Work, new: Waiting) -> bool:
        """Put `new` in the place of waiting work of its owner. Return False if that is gone."""
        waiting = self._of.get(new.owner, ())
        at = next((at for at, one in enumerate(waiting) if one.work == old), None)
        if at is not None:
            self._of[new.owner][at] = new
        return at is not None

    def next(self, *, now: float) -> Waiting:
        """Remove and return the work that comes next. Call `ended` when it is done."""
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
        """Note that the work that `next` returned last is done."""
        self._now_serving = None

    def forget(self, works: Collection[Work]) -> None:
        """Remove this work, as far as it still waits."""
        self._again = without_works(self._again, works)
        kept = {owner: without_works(waiting, works) for owner, waiting in self._of.items()}
        self._of = {owner: waiting for owner, waiting in kept.items() if waiting}
        self._count = len(self._again) + sum(map(len, self._of.values()))

    def of_owner(self, owner: str) -> int:
        """Return how many turns of this owner wait."""
        return len(self._of.get(owner, ()))

    def oldest_of(self, owner: str) -> Work | None:
        """Return the owner's work that has waited longest, None if the owner has none."""
        return self._of[owner][0].work if owner in self._of else None

    def greediest(self) -> str:
        """Return the owner with the most waiting work, "" if nothing waits."""
        return max(self._of, key=self.of_owner, default="")

    def _next_owner(self, now: float) -> str:
        pressing = [owner for owner in self._of if self._is_pressing(owner, now)]
        quiet = [owner for owner in self._of if owner not in pressing]
        if quiet and not (pressing and self._since_pressing >= PRESSING_SHARE - 1):
            self._since_pressing += bool(pressing)
            owners = quiet
        else:
            self._since_pressing = 0
            owners = pressing
        return min(owners, key=lambda owner: self._served.get(owner, 0))

    def _is_pressing(self, owner: str, now: float) -> bool:
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


def without_works(waiting: deque[Waiting], works: Collection[Work]) -> deque[Waiting]:
    return deque(one for one in waiting if one.work not in works)


CHATTER_SHARE: Final = 5
"""If chatter waits, one of so many starts is for it."""

MOST_GATHERED: Final = 3
"""How many times as long as after one line an NPC waits at most, if lines keep joining."""

OnError = Callable[[str, Failure], None]


class Place(NamedTuple):
    """The model for which a turn waits, and how many turns it may run.

    `where` identifies the model, `name` is its name for people. At most `most` turns run on it at
    the same time.
    """

    where: Hashable
    name: str
    most: int


NOWHERE: Final = Place("", "", 1000)
"""The place of work that needs no model, so that only the limit of the whole game applies."""


class Crowd(NamedTuple):
    """A model that runs as many turns as it may, and the keys that wait for it."""

    model: str
    running: int
    keys: tuple[str, ...]


class _Model:
    """The turns of one model: how many are running, and which keys may start next."""

    def __init__(self) -> None:
        self.name = ""
        self.most = 0
        self.running = 0
        # The scheduling keys (NPCs) whose next turn may start now, in the order of the turns. A key
        # is in `_people` if its next turn answers a person, else in `_chatter`, never in both.
        self._people: OrderedDict[str, None] = OrderedDict()
        self._chatter: OrderedDict[str, None] = OrderedDict()
        self._since_chatter = 0

    @property
    def is_full(self) -> bool:
        return self.running >= self.most

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the keys that could start if the model were free."""
        return (*self._people, *self._chatter)

    @property
    def has_keys(self) -> bool:
        return bool(self._people or self._chatter)

    def add(self, key: str, *, answers_person: bool) -> None:
        """Put the key at the end of those that may start, unless it is among them already."""
        if answers_person:
            self._chatter.pop(key, None)
            self._people.setdefault(key)
        else:
            self._chatter.setdefault(key)

    def discard(self, key: str) -> None:
        self._people.pop(key, None)
        self._chatter.pop(key, None)

    def next_key(self) -> str:
        is_chatters_turn = self._since_chatter >= CHATTER_SHARE - 1
        if self._chatter and (is_chatters_turn or not self._people):
            self._since_chatter = 0
            return self._chatter.popitem(last=False)[0]
        self._since_chatter += bool(self._chatter)
        return self._people.popitem(last=False)[0]


class _Queue:
    """The work that waits for one key: answers to people, and chatter."""

    def __init__(self) -> None:
        self.place = NOWHERE
        self.people = Shares()
        self.chatter: deque[Waiting] = deque()
        self.is_running = False
        self.rests_until = 0.0
        self.gathers_until = 0.0
        """The latest time to which joining lines may move the start of the next turn."""

    def __len__(self) -> int:
        return len(self.people) + len(self.chatter)

    def next(self, *, now: float) -> Waiting:
        return self.people.next(now=now) if self.people else self.chatter.popleft()


class Scheduler:
    """Starts turns of many keys (NPCs), in order for each key and fairly among the keys.

    `offer` itself starts nothing, so a line reaches all NPCs before one of them answers. Each call
    from the reactor starts only one turn, so that the server can do other things between two
    starts. A turn is a function, called `work` here.
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
        """Start with an empty queue.

        Args:
            speaker_limit: The most work of one owner that may wait for one key. None: the limit of
                the queue.
        """
        self._clock: Final = clock
        self._max_running: Final = max_running
        self._queue_limit: Final = queue_limit
        self._speaker_limit: Final = queue_limit if speaker_limit is None else speaker_limit
        self._cooldown_seconds: Final = cooldown_seconds
        self._on_error: Final = on_error
        self._lines: dict[str, _Queue] = {}
        self._models: dict[Hashable, _Model] = {}
        # The models that are not full and have a key that may start, in the order of their turns.
        self._open: OrderedDict[Hashable, None] = OrderedDict()
        # A heap of (end of the rest, key). An entry is stale if the key's queue has another end.
        self._resting: list[tuple[float, str]] = []
        self.running = 0
        """How many turns are running in the whole game."""
        self.waiting_in_all = 0
        """How many turns wait in the whole game."""
        self._is_stopped = False
        self._wake: DelayedCall | None = None

    @property
    def busy_keys(self) -> tuple[str, ...]:
        """Return the keys whose work waits or is running."""
        return tuple(key for key, line in self._lines.items() if len(line) or line.is_running)

    def rest_seconds(self, key: str) -> float:
        """Return how long this key must still rest, 0 if it need not."""
        line = self._lines.get(key)
        return 0.0 if line is None else max(0.0, line.rests_until - self._clock.seconds())

    def why_waits(self, key: str) -> str:
        """Return why the key's next turn has not started.

        "" if none waits, or if it starts at once.
        """
        line = self._lines.get(key)
        if line is None or not len(line):
            return ""
        if line.is_running:
            return "its previous turn is still running"
        if rests := self.rest_seconds(key):
            return f"it rests for another {rests:.1f} s"
        model = self._models.get(line.place.where)
        if model is not None and model.is_full:
            return f"{_turns(model.running)} for {model.name}, which is the limit"
        if self.running >= self._max_running:
            return f"{_turns(self.running)} in the whole game, which is the limit"
        return ""

    def crowds(self) -> tuple[Crowd, ...]:
        """Return the models that run as many turns as they may while keys wait for them."""
        return tuple(
            Crowd(model.name, model.running, model.keys)
            for model in self._models.values()
            if model.is_full and model.has_keys
        )

    def offer(
        self,
        key: str,
        work: Work,
        *,
        place: Place = NOWHERE,
        owner: str = "",
        chatter: bool = False,
        cooldown_seconds: float | None = None,
        gather_seconds: float = 0.0,
    ) -> bool:
        """Queue `work`. Return False if too much work of this key or owner waits already.

        Args:
            place: The model. An NPC's key waits for the model of its last offer.
            owner: The person who waits for the answer.
            chatter: True if no person waits for the answer. Chatter may fill half of the queue.
            cooldown_seconds: How long no other work of this key starts after this one; None for the
                game's setting.
            gather_seconds: How long a key without work waits for further lines of the owner, which
                `join` adds to this work.
        """
        line = self._lines.setdefault(key, _Queue())
        is_idle = not line.is_running and not len(line)
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
        if line.place != place:
            self._not_ready(key, line)
            line.place = place
        if is_idle and gather_seconds:
            line.gathers_until = self._clock.seconds() + MOST_GATHERED * gather_seconds
            self._gather(key, line, gather_seconds)
        self._make_ready(key, line)
        self._plan()
        return True

    def join(
        self,
        key: str,
        earlier: Work,
        work: Work,
        *,
        owner: str,
        cooldown_seconds: float | None = None,
        gather_seconds: float = 0.0,
    ) -> bool:
        """Replace the owner's earlier work in the queue by `work`, which includes it.

        If the key waits only for further lines, it waits `gather_seconds` again, up to a limit.
        Return False if the earlier work no longer waits, or was put back.
        """
        line = self._lines.get(key)
        if line is None or not line.people.exchange(
            earlier, Waiting(work, cooldown_seconds, owner)
        ):
            return False
        now = self._clock.seconds()
        if not line.is_running and now < line.rests_until <= line.gathers_until:
            self._gather(key, line, gather_seconds)
            self._plan()
        else:
            line.people.presses(owner, now=now)
        return True

    def _gather(self, key: str, line: _Queue, seconds: float) -> None:
        """Move the start of the key's next turn, but not to before the end of its rest."""
        until = min(self._clock.seconds() + seconds, line.gathers_until)
        if until > line.rests_until:
            self._rest(key, line, until=until)

    def room_for(self, key: str, *, owner: str) -> Work | None:
        """Return the work to drop so that one more work of `owner` can wait.

        None if none has to go.

        If the owner's share is full, it is the owner's oldest work. If the queue is full, it is the
        oldest work of the owner with the most waiting work, provided that they have at least two
        more than `owner`. Otherwise it is the oldest work of `owner`.
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
        """Queue `work` again, before all others of its kind, to start after the delay."""
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
        """Remove this work of a key, as far as it still waits.

        Return how many turns were removed.
        """
        line = self._lines.get(key)
        if line is None:
            return 0
        before = len(line)
        line.people.forget(works)
        line.chatter = without_works(line.chatter, works)
        gone = before - len(line)
        self.waiting_in_all -= gone
        self._not_ready(key, line)
        self._settle(key, line)
        return gone

    def waiting(self, key: str) -> int:
        """Return how many turns of this key wait."""
        return len(self._lines.get(key, ()))

    def in_flight(self, key: str) -> bool:
        """True if work of this key is running."""
        line = self._lines.get(key)
        return line is not None and line.is_running

    def stop(self) -> None:
        """Drop everything that waits, and start nothing any longer."""
        self._is_stopped = True
        self._lines.clear()
        self._models.clear()
        self._open.clear()
        self.waiting_in_all = 0
        if self._wake is not None and self._wake.active():
            self._wake.cancel()

    # Which NPCs may start a turn

    def _make_ready(self, key: str, line: _Queue) -> None:
        """If the key may start, put it at the end of those that may."""
        if line.is_running or not len(line) or line.rests_until > self._clock.seconds():
            return
        where, name, most = line.place
        model = self._models.setdefault(where, _Model())
        model.name, model.most = name, most
        model.add(key, answers_person=bool(line.people))
        self._settle_model(where)

    def _not_ready(self, key: str, line: _Queue) -> None:
        where = line.place.where
        if where in self._models:
            self._models[where].discard(key)
            self._settle_model(where)

    def _settle_model(self, where: Hashable) -> None:
        """Update whether a model can start a turn, and forget it if it has no keys and no turns."""
        model = self._models[where]
        if model.has_keys and not model.is_full:
            self._open.setdefault(where)
        else:
            self._open.pop(where, None)
            if not model.has_keys and not model.running:
                del self._models[where]

    def _rest(self, key: str, line: _Queue, *, until: float) -> None:
        line.rests_until = until
        self._not_ready(key, line)
        heappush(self._resting, (until, key))

    def _settle(self, key: str, line: _Queue) -> None:
        """If the key may start, put it among those that may. If it is idle, forget it."""
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

    # Starts work

    def _start_one(self) -> None:
        self._wake_rested()
        if self.running < self._max_running and self._open:
            self._start(self._open.popitem(last=False)[0])
        self._plan()

    def _start(self, where: Hashable) -> None:
        model = self._models[where]
        key = model.next_key()
        line = self._lines[key]
        waiting = line.next(now=self._clock.seconds())
        self.waiting_in_all -= 1
        self.running += 1
        model.running += 1
        self._settle_model(where)
        line.is_running = True
        rests = waiting.cooldown_seconds
        rests = self._cooldown_seconds if rests is None else rests
        self._rest(key, line, until=self._clock.seconds() + rests)
        done = maybeDeferred(waiting.work)
        done.addErrback(lambda failure: self._on_error(key, failure))
        done.addBoth(lambda _: self._ended(key, line, where))

    def _ended(self, key: str, line: _Queue, where: Hashable) -> None:
        self.running -= 1
        line.is_running = False
        line.people.ended()
        if not self._is_stopped:
            self._models[where].running -= 1
            self._settle_model(where)
            self._settle(key, line)
            self._plan()

    def _plan(self) -> None:
        """Schedule the next start, unless a running work has to end first."""
        if self._is_stopped or self.running >= self._max_running:
            return
        if self._open:
            self._wake_in(0.0)
        elif self.waiting_in_all and self._resting:
            self._wake_in(max(0.0, self._resting[0][0] - self._clock.seconds()))

    def _wake_in(self, seconds: float) -> None:
        """Look for turns to start after `seconds`, unless that is scheduled earlier already."""
        if self._wake is not None and self._wake.active():
            if self._wake.getTime() <= self._clock.seconds() + seconds:
                return
            self._wake.cancel()
        self._wake = self._clock.callLater(seconds, self._start_one)


def _turns(count: int) -> str:
    return "1 turn is running" if count == 1 else f"{count} turns are running"
