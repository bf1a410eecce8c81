"""Shares: whose words an NPC answers next, if several people speak to it.

Speakers take turns: next comes the one who was answered longest ago. A speaker who says more before
the NPC has answered counts as pressing. For a while, pressing speakers come after the others. One
of every few turns is still for them, so they never wait for ever.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Collection
from typing import Final, NamedTuple

from twisted.internet.defer import Deferred

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
        """Queue work before everything else that waits."""
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
