"""Ways of finding the active entries: our engine, the loop that everybody writes, an automaton.

A driver is made with a workload, which builds what it keeps for the book, and does one turn after
the other: `turn(t)` takes in the messages that are new and returns what it found, `answer` makes a
set of entry numbers of that. A driver whose package is missing is left out.
"""

from counters import COUNTERS

from evennia_ai.engine.lorebook.activation.passes import activate_lore
from evennia_ai.engine.lorebook.activation.timers import NO_STATE, Clock
from evennia_ai.engine.lorebook.rules import read_rules
from evennia_ai.engine.lorebook.scan.window import Scan
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import said
from evennia_ai.engine.prompt.tokens import TokenCounter
from evennia_ai.formats.lorebooks.books import read_book

ROLES = {"Aria": "assistant", "Ren": "user"}
ROOM = 10_000_000
"""Tokens of the prompt, so that every active entry fits."""


class Ours:
    """The real `activate_lore` with all its rules; its verdicts are told in every turn."""

    def __init__(self, workload, *, preset="evennia_ai", count="chars"):
        self.workload = workload
        self.book = read_book(workload.book, label="bench")
        shape = workload.shape
        self.rules = read_rules(
            {
                "rules": preset,
                "scan_depth": shape.depth or len(workload.messages),
                "recursive": shape.recursive,
                "budget_percent": 100,
            }
        )
        self.counter = TokenCounter("bench", "1", COUNTERS[count]()[0])
        self.history, self.state = History(), NO_STATE
        self.activated(turn=-1)  # an empty chat: whatever is made once for a book is made here

    def turn(self, turn):
        new = self.workload.new(len(self.history), turn=turn)
        self.history = self.history.appended(
            *(said(ROLES[name], text, name=name) for name, text in new)
        )
        result = self.activated(turn=turn)
        self.state = result.after
        return result

    def activated(self, *, turn):
        result = activate_lore(
            (self.book,),
            Scan(history=self.history),
            rules=self.rules,
            limit_tokens=ROOM,
            counter=self.counter,
            values={"char": "Aria", "user": "Ren"},
            dice=Dice(turn=str(turn), conversation="bench"),
            state=self.state,
            clock=Clock(turns=turn + 1, messages=len(self.history)),
        )
        self.told = len(result.touched), len(result.silent)
        return result

    @staticmethod
    def answer(result):
        return {int(entry.uid) for entry in result.entries}


class Naive:
    """Nothing kept: every key against the window, and in recursion against what it woke.

    What was active is not looked for again, and only new contents are searched in a later pass.
    """

    def __init__(self, workload, *, preset="evennia_ai"):
        self.workload, self.alone = workload, ALONE[preset]

    def turn(self, turn):
        scanned = self.workload.scanned
        text = "\n".join(scanned[n] for n in self.workload.window(turn)).casefold()
        active, fresh = set(), self.woken(text, set())
        while fresh:
            active |= fresh
            if not self.workload.shape.recursive:
                break
            contents = (self.workload.contents[n] for n in sorted(fresh))
            fresh = self.woken("\n".join(contents).casefold(), active)
        return active

    def woken(self, text, active):
        return {
            n
            for n, keys in enumerate(self.workload.keys)
            if n not in active
            and any(
                (folded := key.casefold()) in text and self.stands(text, folded) for key in keys
            )
        }

    def stands(self, text, key):
        """Whether `key` stands in `text` as the preset asks of whole words."""
        start = text.find(key)
        while start >= 0:
            if self.alone(text, start, start + len(key)):
                return True
            start = text.find(key, start + 1)
        return False

    @staticmethod
    def answer(result):
        return result


class Remembering(Naive):
    """The same loop, with what it found kept for each message and for each entry's content."""

    def __init__(self, workload, *, preset="evennia_ai"):
        super().__init__(workload, preset=preset)
        self.known = {}
        self.build()

    def build(self):
        self.pairs = [
            (key.casefold(), n) for n, keys in enumerate(self.workload.keys) for key in keys
        ]

    def scan(self, text):
        return {n for key, n in self.pairs if key in text and self.stands(text, key)}

    def hits(self, what, text):
        hits = self.known.get(what)
        if hits is None:
            hits = self.known[what] = self.scan(text.casefold())
        return hits

    def turn(self, turn):
        active, fresh = set(), set()
        scanned = self.workload.scanned
        for number in self.workload.window(turn):
            fresh |= self.hits(number, scanned[number])
        while fresh:
            active |= fresh
            if not self.workload.shape.recursive:
                break
            woken = (self.hits(("entry", n), self.workload.contents[n]) for n in fresh)
            fresh = set().union(*woken) - active
        return active


class Automaton(Remembering):
    """ahocorasick-rs in place of the loop, with the same memory."""

    def build(self):
        from ahocorasick_rs import AhoCorasick

        super().build()
        keys = [key for key, _ in self.pairs]
        self.find = AhoCorasick(keys, store_patterns=False).find_matches_as_indexes

    def scan(self, text):
        found = set()
        for at, start, stop in self.find(text, overlapping=True):
            if self.pairs[at][1] not in found and self.alone(text, start, stop):
                found.add(self.pairs[at][1])
        return found


def alone(text, start, stop):
    """Whether no word of any script runs on at either end; Chinese has no words to run on."""
    runs_on_left = start and in_word(text[start]) and in_word(text[start - 1])
    runs_on_right = stop < len(text) and in_word(text[stop - 1]) and in_word(text[stop])
    return not (runs_on_left or runs_on_right)


def in_word(char):
    return (char.isalnum() or char == "_") and not "\u4e00" <= char <= "\u9fff"


def alone_in_sillytavern(text, start, stop):
    """Whether the key is a phrase, or no letter of ASCII stands beside it.

    SillyTavern searches `(?:^|\\W)(key)(?:$|\\W)` for one word, and to JavaScript's `\\W` a letter
    of another script is no letter; a phrase it looks for anywhere.
    """
    if " " in text[start:stop]:
        return True
    beside = text[start - 1 : start] + text[stop : stop + 1]
    return not any(char.isascii() and (char.isalnum() or char == "_") for char in beside)


ALONE = {"evennia_ai": alone, "sillytavern": alone_in_sillytavern}

DRIVERS = {
    "evennia_ai": Ours,
    "naive loop": Naive,
    "naive, remembered": Remembering,
    "ahocorasick-rs, remembered": Automaton,
}
