"""Shares: whose words an NPC answers next, where several speak to it.

Speakers share the turns of an NPC, a turn each: who was served longest ago is next. Who goes on
speaking while the NPC still owes them an answer presses, and for a while goes behind those who do
not; of so many turns one is of those who press, so that they never wait for ever either.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Collection
from typing import Final, NamedTuple

from twisted.internet.defer import Deferred

PRESSING_SECONDS: Final = 30.0
"""How long somebody counts as pressing after the last time they pressed."""

PRESSING_SHARE: Final = 4
"""Of so many turns one is of somebody who presses, where both wait."""

MOST_SERVED: Final = 256
"""Owners of whom it is remembered when they were served."""

Work = Callable[[], "Deferred[None] | None"]


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

    def forget(self, works: Collection[Work]) -> None:
        """Forget these works, as far as they wait."""
        self._again = without(self._again, works)
        kept = {owner: without(waiting, works) for owner, waiting in self._of.items()}
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


def without(waiting: deque[Waiting], works: Collection[Work]) -> deque[Waiting]:
    return deque(one for one in waiting if one.work not in works)
