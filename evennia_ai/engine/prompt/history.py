"""The history of a conversation: an immutable view of an append-only list of messages.

All views of a conversation share one list. Appending copies nothing, so the time of a turn depends
only on its new messages. Running sums of tokens are stored with the list, for each counter, from
the oldest message that was ever needed.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate

from evennia_ai.engine.foreign.fields import plain_form
from evennia_ai.engine.prompt.memo import Memo
from evennia_ai.engine.prompt.messages import DepthCounts, Message
from evennia_ai.engine.prompt.tokens import TokenCounter


@dataclass(frozen=True, slots=True, kw_only=True)
class _Window:
    """The serialised form of a history: its messages, and the number of messages before them."""

    messages: tuple[Message, ...] = ()
    earlier: int = 0
    earlier_users: int = 0
    earlier_replies: int = 0
    segment: int = 0


class History:
    """The messages of one conversation, oldest first.

    Indexes are absolute: they count from the first message of the conversation. `earlier` is the
    number of messages before the first one in this history, and so also its index. A recorded
    index stays valid when older messages are dropped. A history is not safe to use from several
    threads at once.
    """

    __slots__ = ("_log", "earlier", "earlier_replies", "earlier_users", "segment", "stop")

    def __init__(
        self,
        messages: Iterable[Message] = (),
        *,
        earlier: int = 0,
        earlier_users: int = 0,
        earlier_replies: int = 0,
        segment: int = 0,
    ) -> None:
        """Create a history.

        Args:
            messages: The messages, oldest first.
            earlier: The number of messages before the first one.
            earlier_users: How many of the earlier messages were of role user.
            earlier_replies: How many of the earlier messages were replies.
            segment: The number of this part of the conversation. A compaction begins a new segment,
                whose indexes cannot be compared with those of the segment before.
        """
        self._log = _Log(messages, earlier)
        self.earlier = earlier
        self.earlier_users = earlier_users
        self.earlier_replies = earlier_replies
        self.segment = segment
        self.stop = earlier + len(self._log.messages)

    __get_pydantic_core_schema__ = plain_form(
        lambda: _Window,
        written=lambda history: _Window(messages=tuple(history), **_left_behind(history)),
        made=lambda window: History(window.messages, **_left_behind(window)),
    )

    def appended(self, *messages: Message) -> "History":
        """Return a history with `messages` added at its end. This history does not change."""
        view = object.__new__(History)
        log = self._log
        # another history already extended the shared list, so copy it
        if len(log.messages) != len(self):
            log = _Log(self, self.earlier)
        log.append(messages)
        view._log, view.earlier, view.earlier_users = log, self.earlier, self.earlier_users
        view.earlier_replies, view.segment = self.earlier_replies, self.segment
        view.stop = self.stop + len(messages)
        return view

    def __len__(self) -> int:
        return self.stop - self.earlier

    def __iter__(self) -> Iterator[Message]:
        return iter(self._log.messages[: len(self)])

    def __getitem__(self, index: int) -> Message:
        """Return the message at an absolute index."""
        if not self.earlier <= index < self.stop:
            raise IndexError(index)
        return self._log.messages[index - self.earlier]

    @property
    def memo(self) -> Memo:
        """Cached results for this conversation that stay valid when messages are appended."""
        return self._log.memo

    @property
    def is_plain(self) -> bool:
        """True if the conversation has no bookkeeping records and no tool calls."""
        return self._log.is_plain

    @property
    def has_staying(self) -> bool:
        """True if the conversation has texts that one prompt sent and the history keeps."""
        return bool(self._log.staying)

    def newest_from(self, count: int) -> int:
        """Return the index of the oldest of the newest `count` messages that were said."""
        if self._log.is_plain or not self._log.bookkeeping:
            return max(self.earlier, self.stop - count)
        return self._counted_slot(count, self.earlier)

    @property
    def user_messages(self) -> int:
        """The number of messages of role user in the conversation, including dropped ones."""
        return self.earlier_users + bisect_left(self._log.users, self.stop)

    @property
    def replies(self) -> int:
        """The number of the NPC's replies in the conversation, including dropped ones."""
        return self.earlier_replies + bisect_left(self._log.replies, self.stop)

    def users_from(self, first: int) -> int:
        """Return how many messages from this absolute index on have the role user."""
        users = self._log.users
        return bisect_left(users, self.stop) - bisect_left(users, first)

    def newest_staying(self, of: str, *, first: int) -> int | None:
        """Return the absolute index of the newest persistent text of one kind, or None.

        Args:
            of: The kind of the text, as in `Message.of`.
            first: The absolute index from which on messages are searched.
        """
        found = self._log.staying.get(of)
        if not found:
            return None
        at = bisect_left(found, self.stop)
        return found[at - 1] if at and found[at - 1] >= first else None

    def newest_user(self) -> Message | None:
        """Return the newest message of role user; None if there is none."""
        users = self._log.users
        at = bisect_left(users, self.stop)
        return self[users[at - 1]] if at else None

    def between(self, first: int, stop: int) -> list[Message]:
        """Return the messages with absolute indexes from `first` up to, but without, `stop`."""
        return self._log.messages[first - self.earlier : min(stop, self.stop) - self.earlier]

    def fitting(self, room_tokens: int, *, counter: TokenCounter, floor: int) -> tuple[int, int]:
        """Return the index of the oldest message that fits, and the tokens of it and all newer
        ones.

        Args:
            room_tokens: The room for the newest messages.
            counter: The counter for tokens.
            floor: The smallest index that may be returned. If not even the newest message fits, the
                result is `stop`.
        """
        sums = self._log.sums(counter)
        sums.reach_back(room_tokens, self._log, stop=self.stop)
        first = max(floor, sums.first_within(room_tokens, stop=self.stop))
        return first, sums.between(first, self.stop)

    def tokens_from(self, first: int, *, counter: TokenCounter) -> int:
        """Return the tokens of all messages from this absolute index on."""
        sums = self._log.sums(counter)
        sums.reach_to(first, self._log)
        return sums.between(first, self.stop)

    def slot(self, depth: int, *, first: int, counts: DepthCounts = "messages") -> int:
        """Return the absolute index of the message before which a text of this depth is injected.

        A depth counts conversation messages from the newest, without bookkeeping records. Depth 0
        is the slot after the newest message. A depth beyond the kept history gives the slot at its
        top. A slot between a tool call and its result moves before the call.

        Args:
            depth: The injection depth.
            first: The absolute index at which the kept history starts.
            counts: "speech" also skips messages about arrivals and departures.
        """
        if depth <= 0:
            return self.stop
        log = self._log
        slot = max(first, self.stop - depth)
        if log.is_plain and counts == "messages":
            return slot
        if log.bookkeeping or counts == "speech":
            slot = self._counted_slot(depth, first, counts)
        while first < slot < self.stop and log.messages[slot - self.earlier].role == "tool":
            slot -= 1
        return slot

    def slot_from_oldest(self, depth: int, *, first: int) -> int:
        """Return the absolute index for a depth that is counted from the oldest kept message.

        The text is placed before the message with this index. Source: Card V3, `@@reverse_depth`.
        """
        return self.slot(max(self.counted(first) - depth, 0), first=first)

    def counted(self, first: int, counts: DepthCounts = "messages") -> int:
        """Count the messages from this absolute index on, as injection depths count them."""
        passed_over = [self._log.bookkeeping]
        if counts == "speech":
            passed_over.append(self._log.movement)
        inside = sum(bisect_left(one, self.stop) - bisect_left(one, first) for one in passed_over)
        return self.stop - first - inside

    def after_orphan_results(self, first: int) -> int:
        """Return the first index from `first` on whose message is not a tool result.

        The call of a tool result at `first` is an older message, which the prompt does not contain.
        """
        if self._log.is_plain:
            return first
        while first < self.stop and self[first].role == "tool":
            first += 1
        return first

    def _counted_slot(self, depth: int, first: int, counts: DepthCounts = "messages") -> int:
        """Return the index of the oldest of the newest `depth` counted messages, or `first`."""
        if self.counted(first, counts) < depth:
            return first
        low, high = first, self.stop
        while low < high:
            middle = (low + high + 1) // 2
            if self.counted(middle, counts) >= depth:
                low = middle
            else:
                high = middle - 1
        return low


def _left_behind(history: "History | _Window") -> dict[str, int]:
    names = ("earlier", "earlier_users", "earlier_replies", "segment")
    return {name: getattr(history, name) for name in names}


class _Log:
    """The list of messages that all histories of one conversation share. It only grows."""

    __slots__ = (
        "_sums",
        "bookkeeping",
        "earlier",
        "is_plain",
        "memo",
        "messages",
        "movement",
        "replies",
        "staying",
        "users",
    )

    def __init__(self, messages: Iterable[Message], earlier: int) -> None:
        self.messages: list[Message] = []
        self.memo = Memo()
        self.earlier = earlier
        self.is_plain = True  # becomes False with the first bookkeeping record or tool call
        # The next five lists hold indexes of messages in the whole history, in ascending order.
        self.bookkeeping: list[int] = []  # messages that do not count as depth, such as facts
        self.movement: list[int] = []  # messages about arrivals and departures
        self.users: list[int] = []  # messages of role user
        self.replies: list[int] = []  # replies of the NPC
        self.staying: dict[str, list[int]] = {}  # persistent texts, by kind
        self._sums: dict[TokenCounter, _Sums] = {}
        self.append(messages)

    def append(self, messages: Iterable[Message]) -> None:
        """Add messages at the end of the shared list."""
        new = tuple(messages)
        # Opening a conversation appends hundreds of messages. So one loop sorts them into all
        # lists.
        for index, message in enumerate(new, start=self.earlier + len(self.messages)):
            if message.is_movement and message.counted:
                self.movement.append(index)
            if not message.counted:
                self.bookkeeping.append(index)
                self.is_plain = False
                if message.stays:
                    self.staying.setdefault(message.of, []).append(index)
            elif message.role == "user":
                self.users.append(index)
            elif message.is_reply:
                self.replies.append(index)
            else:
                self.is_plain = False
        self.messages += new

    def sums(self, counter: TokenCounter) -> "_Sums":
        """Return the sums of tokens for this counter, up to the newest message."""
        sums = self._sums.get(counter)
        if sums is None:
            sums = self._sums[counter] = _Sums(counter, self.earlier + len(self.messages))
        if sums.oldest + len(sums.totals) - 1 < self.earlier + len(self.messages):
            sums.extend(self)
        return sums


class _Sums:
    """Sums of tokens: `totals[k]` is the sum of the first k messages from the index `oldest` on."""

    __slots__ = ("counter", "oldest", "totals")

    def __init__(self, counter: TokenCounter, end: int) -> None:
        self.counter = counter
        self.oldest = end
        self.totals = [0]

    def extend(self, log: _Log) -> None:
        """Add the tokens of the messages that were appended since the last call."""
        counted = self.oldest + len(self.totals) - 1
        for message in log.messages[counted - log.earlier :]:
            self.totals.append(self.totals[-1] + message.tokens(self.counter))

    def reach_back(self, room: int, log: _Log, *, stop: int) -> None:
        """Count older messages until the messages up to `stop` fill the room, or none is left."""
        older: list[int] = []
        if stop < self.oldest:
            self.reach_to(stop, log)
        spent = self.totals[stop - self.oldest]
        at = self.oldest
        while at > log.earlier and spent <= room:
            at -= 1
            older.append(log.messages[at - log.earlier].tokens(self.counter))
            spent += older[-1]
        if older:
            self._prepend(older)

    def reach_to(self, first: int, log: _Log) -> None:
        """Count the tokens of all older messages down to the absolute index `first`."""
        at = max(first, log.earlier)
        if at >= self.oldest:
            return
        older = [
            log.messages[i - log.earlier].tokens(self.counter)
            for i in range(self.oldest - 1, at - 1, -1)
        ]
        self._prepend(older)

    def first_within(self, room: int, *, stop: int) -> int:
        """Return the index of the oldest message for which the messages up to `stop` fit."""
        end = stop - self.oldest
        return self.oldest + bisect_left(self.totals, self.totals[end] - room, 0, end)

    def between(self, first: int, stop: int) -> int:
        """Return the tokens of the messages from `first` up to, but without, `stop`."""
        return self.totals[stop - self.oldest] - self.totals[first - self.oldest]

    def _prepend(self, older: list[int]) -> None:
        """Put the tokens of older messages before the sums. The newest of them comes first."""
        shift = sum(older)
        fresh = list(accumulate(reversed(older), initial=0))
        self.totals = fresh + [total + shift for total in self.totals[1:]]
        self.oldest -= len(older)
