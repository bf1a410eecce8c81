"""Games with long histories, and a model that writes replies and summaries."""

from twisted.internet.defer import Deferred, maybeDeferred

from evennia_ai.engine.history.compaction.planning import CompactionRules, CompactionSettings
from evennia_ai.engine.history.records import RecordKind
from evennia_ai.engine.memory.recalling import MemorySettings
from evennia_ai.services.llm.chat import ChatReply
from evennia_ai.store.history import record_rows
from evennia_ai.store.history.conversations import conversations_of
from evennia_ai.store.history.windows import windows

GOOD = "Anna and Oren spoke of the weather at length.\nAnna promised Oren 12 silver coins."
# The NPC learns nothing in idle time, because that would be another request to the model.
SMALL = {
    "context_tokens": 1400,
    "reply_tokens": 200,
    "memory": MemorySettings(after_messages=0),
}
FULL = 28
"""The number of lines that fills a history once and leaves room for some more."""
BEGUN = 21
"""The number of lines that are said once for all tests of a module. They do not fill a history."""


def rules(**given) -> CompactionSettings:
    """Return the compaction settings of a game that keeps few messages.

    `given` may contain `by` and `enabled`; everything else belongs to the rules.
    """
    own = {name: given.pop(name) for name in ("by", "enabled") if name in given}
    kept = {"keep_messages": 6, "summary_tokens": 150, "most_summary_tokens": 300, **given}
    return CompactionSettings(rules=CompactionRules(**kept), **own)


class Talker:
    """A model that answers players at length, and requests for summaries with given texts."""

    def __init__(self, *summaries) -> None:
        self._summaries = list(summaries)
        self.asked = []  # the requests for summaries
        self._replies = 0

    def __call__(self, request):
        if not is_for_summary(request):
            self._replies += 1
            return f"Reply {self._replies}. The fog lies on the water, and nobody rows today."
        self.asked.append(request)
        line = self._summaries[min(len(self.asked), len(self._summaries)) - 1]
        return line(request) if callable(line) else line


class Slow:
    """A model that answers players at once, and summaries when the test says so."""

    name, offline = "slow", False

    def __init__(self):
        self.asked = []
        self.spoke = []
        self.pending = None

    def complete(self, request, *, listener=None):
        answer = Deferred()
        if is_for_summary(request):
            self.asked.append(request)
            self.pending = answer
        else:
            self.spoke.append(request)
            text = "The fog lies on the water, and nobody rows today, nor will tomorrow."
            answer.callback(ChatReply(text=text, model="slow"))
        return answer

    def summarises(self, text):
        self.pending.callback(ChatReply(text=text, model="slow"))

    def close(self):
        """Do nothing, because the model holds no connection."""


class HeldThreads:
    """Threads for a `Compactor` that work when the test says so."""

    def __init__(self):
        self.held = []

    def __call__(self, work, *values):
        made = Deferred()
        self.held.append(lambda: maybeDeferred(work, *values).chainDeferred(made))
        return made

    def do(self, jobs):
        for _ in range(jobs):
            self.held.pop(0)()


def is_for_summary(request) -> bool:
    return "<transcript>" in request.messages[-1].content


def cut_off(text):
    return ChatReply(text=text, model="scripted", finish_reason="length")


def talks(stage, lines: int, *, start: int = 0) -> None:
    """Let Anna say so many lines to Oren, who answers each one at once."""
    for number in range(start, start + lines):
        stage.says(stage.anna, f"Oren, line {number}: was the weather grey on day {number}?")


def goes_on(stage, until: int) -> None:
    """Let Anna go on after the lines that were said once for all tests of a module."""
    talks(stage, until - BEGUN, start=BEGUN)


def room_of(stage):
    return next(one for one in conversations_of(stage.npc.ai.ref) if one.kind == "room")


def segment_of(stage) -> int:
    return windows(room_of(stage).id).end.segment


def history_of(stage) -> list[str]:
    return [message.content for message in windows(room_of(stage).id).history]


def of_kind(stage, kind: RecordKind):
    """Return the records of this kind in the room's conversation, oldest first."""
    return [r for r in record_rows.records_of(room_of(stage)) if r.kind is kind]


def results(stage) -> list[tuple[str, str]]:
    """Return (result, by) of each attempt to compact."""
    return [(r.meta["result"], r.meta["by"]) for r in of_kind(stage, RecordKind.USAGE)]
