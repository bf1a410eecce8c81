"""Measure the memory of a conversation's window, for `benchmarks/history.py --memory`.

The conversation has 1,000 messages of 100 to 400 characters. All are in memory, because each
prompt is large enough for all. Three windows are measured:

    read   as a process reads it from the database
    shown  after one turn has composed, hashed, committed and adapted a prompt with all messages
    lived  after this process has seen the conversation grow turn by turn, with a lorebook scanning
           the four newest messages, and memories that are compared with them

Each object that only the window reaches is counted once, with its `sys.getsizeof`. Nothing is
timed.
"""

import enum
import gc
import random
import sys
import types
from collections import Counter

MESSAGES = 1_000
SEED = 20417
LIMIT_TOKENS = 400_000
ENTRIES = 40
# Objects that the whole process shares. They do not belong to one window.
_SHARED = (
    *(type, enum.Enum, types.ModuleType, types.FunctionType, types.BuiltinFunctionType),
    types.MethodType,
)


def measured():
    """Return the bytes per message of the three windows, by the names of the objects' types."""
    from evennia_ai.store.core.snapshots import forget_everything
    from evennia_ai.store.history.windows import windows

    lived = Chat("21")
    for heard, reply in zip(lived.lines[::2], lived.lines[1::2], strict=True):
        lived.turn(heard, reply)
    found = {"lived": reached(windows(lived.where.id), without=lived.given)}
    forget_everything()
    found["read"] = reached(windows(lived.where.id), without=lived.given)
    lived.turn(*lived.lines[:2])
    found["shown"] = reached(windows(lived.where.id), without=lived.given)
    count = len(windows(lived.where.id).history)
    return count, {what: found[what] for what in ("read", "shown", "lived")}


def report():
    """Print the table: bytes per message, and which types take most of them."""
    count, found = measured()
    print(f"{count} messages held; bytes per message, by kind of object")
    for what, sizes in found.items():
        most = ", ".join(f"{kind} {size / count:.0f}" for kind, size in sizes.most_common(8))
        print(f"{what:6} {sum(sizes.values()) / count:6.0f}   {most}")


class Chat:
    """A conversation with everything that a turn needs.

    `given` is what does not belong to its window.
    """

    def __init__(self, npc_ref):
        from evennia_ai.engine.inputs import ComposeRules
        from evennia_ai.engine.memory.memories import Memory
        from evennia_ai.engine.prompt.budget import BudgetRules
        from evennia_ai.engine.prompt.components import PromptComponent
        from evennia_ai.engine.prompt.expansion import ComponentSet
        from evennia_ai.formats.lorebooks.books import read_book
        from evennia_ai.store.history.conversations import get_or_open_conversation

        rng = random.Random(SEED)
        self.where = get_or_open_conversation(npc_ref, kind="private", partner_ref="7")
        self.lines = list(said(rng, MESSAGES))
        rules = PromptComponent(id=0, key="system_prompt", content=prose(rng, 2_000))
        self.components = ComponentSet([rules])
        self.rules = ComposeRules(budget=BudgetRules(limit_tokens=LIMIT_TOKENS))
        entries = [
            {"keys": [prose(rng, 9), prose(rng, 12)], "content": prose(rng, 200)}
            for _ in range(ENTRIES)
        ]
        self.book = read_book({"scan_depth": 4, "extensions": {}, "entries": entries}, label="own")
        self.memories = tuple(Memory(id=n, text=prose(rng, 120)) for n in range(1, 20))
        self.given = (self.components, self.rules, self.book, self.memories)

    def turn(self, line, reply):
        """Play one turn: hear something, compose, commit and adapt a prompt, and answer."""
        from evennia_ai.engine.compose import compose
        from evennia_ai.engine.history.turn.sending import make_draft
        from evennia_ai.engine.inputs import Inputs
        from evennia_ai.engine.prompt.messages import event_message
        from evennia_ai.services.llm.chat import sent_sha256
        from evennia_ai.services.llm.roles import OPEN, adapt_messages, chat_messages
        from evennia_ai.store.history import conversations, turns
        from evennia_ai.store.history.windows import windows

        window = windows(self.where.id)
        (heard,) = conversations.append_records(self.where, [line])
        inputs = Inputs(
            components=self.components,
            rules=self.rules,
            history=window.history,
            event=event_message(heard.body, name=heard.name, record=heard.id),
            books=(self.book,),
            memories=self.memories,
            cut=window.cut,
            anchors=window.anchors,
        )
        prompt = compose(inputs)
        sha256 = sent_sha256(adapt_messages(chat_messages(prompt.messages), profile=OPEN))
        draft = make_draft(prompt, event=heard, sent_sha256=sha256)
        begun = turns.begin_turn(self.where, draft=draft, event=heard)
        sent = adapt_messages(chat_messages(begun.messages), profile=OPEN)
        turns.finish_turn(begun.turn, [reply])
        return sent


def said(rng, count):
    """Return what Tobias says and what the NPC answers, alternately."""
    from evennia_ai.engine.history.records import NewRecord, RecordKind, reply_record

    for number in range(count):
        body = prose(rng, rng.randint(100, 400))
        if number % 2:
            yield reply_record(body)
        else:
            yield NewRecord(kind=RecordKind.USER, role="user", name="Tobias", body=body)


def prose(rng, characters):
    """Return words of the workload with so many characters together."""
    from benchmarks.workload import WORDS

    words = []
    while sum(map(len, words)) + len(words) <= characters:
        words.append(rng.choice(WORDS))
    return " ".join(words)[:characters].strip()


def reached(root, *, without=()):
    """Return the bytes of all objects that `root` reaches and `without` does not, by type."""
    seen = set()
    for one in without:
        _walk(one, seen)
    return _walk(root, seen)


def _walk(root, seen):
    """Return the bytes of all reachable objects that were not counted yet, by type."""
    sizes, waiting = Counter(), [root]
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, _SHARED):
            continue
        seen.add(id(one))
        sizes[type(one).__name__] += sys.getsizeof(one)
        waiting += gc.get_referents(one)
    return sizes
