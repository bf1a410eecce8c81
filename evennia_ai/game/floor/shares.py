"""Shares: what waits for one NPC, fairly by whom it is for.

Each owner (the speaker whose words wait) has a share of the places and of the turns. Owners take
turns, a turn each: who was served longest ago is next. Who goes on speaking while the NPC still
owes them an answer presses, and for a while goes behind those who do not; of so many turns one is
of those who press, so that they never wait for ever either.
"""

from collections import OrderedDict, deque
from collections.abc import Collection, Iterator
from typing import Final, Generic, Protocol, TypeVar

PRESSING_SECONDS: Final = 30.0
"""How long somebody counts as pressing after the last time they pressed."""

PRESSING_SHARE: Final = 4
"""Of so many turns one is of somebody who presses, where both wait."""

MOST_SERVED: Final = 256
"""Owners of whom it is remembered when they were served."""


class Owned(Protocol):
    """What waits, and for whom; "" is nobody in particular."""

    @property
    def owner(self) -> str: ...

    @property
    def work(self) -> object: ...


OwnedT = TypeVar("OwnedT", bound=Owned)


class Shares(Generic[OwnedT]):
    """What waits for one NPC, by owner; each owner's is in order."""

    def __init__(self) -> None:
        self._of: dict[str, deque[OwnedT]] = {}
        self._again: deque[OwnedT] = deque()
        self._count = 0
        self._now_serving: str | None = None
        # The owners that were served, the latest last; and until when somebody presses.
        self._served: OrderedDict[str, int] = OrderedDict()
        self._turns = 0
        self._pressing_until: dict[str, float] = {}
        self._since_pressing = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[OwnedT]:
        yield from self._again
        for waiting in self._of.values():
            yield from waiting

    def add(self, one: OwnedT, *, now: float) -> None:
        """Let it wait behind what its owner has waiting already."""
        owner = one.owner
        if owner and (owner in self._of or owner == self._now_serving):
            self._pressing_until[owner] = now + PRESSING_SECONDS
        self._of.setdefault(owner, deque()).append(one)
        self._count += 1

    def put_back(self, one: OwnedT) -> None:
        """Let it wait before everything else."""
        self._again.appendleft(one)
        self._count += 1

    def next(self, *, now: float) -> OwnedT:
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

    def without(self, works: Collection[object]) -> int:
        """Forget these works, as far as they wait; how many that were."""
        before = self._count
        self._again = deque(one for one in self._again if one.work not in works)
        kept = {
            owner: deque(one for one in waiting if one.work not in works)
            for owner, waiting in self._of.items()
        }
        self._of = {owner: waiting for owner, waiting in kept.items() if waiting}
        self._count = len(self._again) + sum(map(len, self._of.values()))
        return before - self._count

    def of_owner(self, owner: str) -> int:
        """How much of one owner waits."""
        return len(self._of.get(owner, ()))

    def oldest_of(self, owner: str) -> OwnedT | None:
        """What of one owner waits longest, None where nothing does."""
        waiting = self._of.get(owner)
        return waiting[0] if waiting else None

    def greediest(self) -> str:
        """The owner of whom most waits, "" where nothing of anybody does."""
        return max(self._of, key=self.of_owner, default="")

    def _next_owner(self, now: float) -> str:
        pressing = [owner for owner in self._of if self._presses(owner, now)]
        quiet = [owner for owner in self._of if owner not in pressing]
        is_pressings_turn = self._since_pressing >= PRESSING_SHARE - 1
        if quiet and not (pressing and is_pressings_turn):
            self._since_pressing += bool(pressing)
            return self._longest_unserved(quiet)
        self._since_pressing = 0
        return self._longest_unserved(pressing)

    def _longest_unserved(self, owners: Collection[str]) -> str:
        return min(owners, key=lambda owner: self._served.get(owner, 0))

    def _presses(self, owner: str, now: float) -> bool:
        until = self._pressing_until.get(owner)
        if until is not None and until <= now:
            del self._pressing_until[owner]
            until = None
        return until is not None or (bool(owner) and self.of_owner(owner) > 1)

    def _serve(self, owner: str) -> None:
        self._now_serving = owner
        self._turns += 1
        self._served[owner] = self._turns
        self._served.move_to_end(owner)
        if len(self._served) > MOST_SERVED:
            forgotten, _ = self._served.popitem(last=False)
            self._pressing_until.pop(forgotten, None)
