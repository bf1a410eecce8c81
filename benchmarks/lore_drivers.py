"""Drivers that find the active entries: our engine, the simplest loop, and an automaton.

A driver is made with a workload and prepares what it keeps for the book. Then it handles one turn
after the other: `turn(t)` reads the new messages and returns what it found, and `answer` converts
that into a set of entry numbers. A driver whose package is missing is left out.
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
"""The tokens of the prompt, so many that every active entry fits."""


class Ours:
    """The driver of evennia_ai: `activate_lore` with all its rules.

    Its verdicts are read in every turn.
    """

    def __init__(self, workload, *, preset="evennia_ai", count="chars", book=None):
        self.workload = workload
        self.book = book or read_book(workload.book, label="bench")
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
        # An empty chat, so that everything that is made once per book is made here.
        self.activated(turn=-1)

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
    """A driver that keeps nothing: it searches the window for every key.

    With recursion, it then searches the contents of the entries that became active.

    Active entries are not searched for again, and later passes search only new contents.
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
        """True if `text` contains `key`, with the preset's rule about whole words."""
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
    """A driver with the same loop that caches the results of each message and content."""

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
    """A driver with an automaton (ahocorasick-rs) instead of the loop, and the same cache."""

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
    """True if the characters next to the match belong to no word.

    Chinese has no spaces between words, so its matches always count.
    """
    runs_on_left = start and in_word(text[start]) and in_word(text[start - 1])
    runs_on_right = stop < len(text) and in_word(text[stop - 1]) and in_word(text[stop])
    return not (runs_on_left or runs_on_right)


def in_word(char):
    return (char.isalnum() or char == "_") and not "\u4e00" <= char <= "\u9fff"


def alone_in_sillytavern(text, start, stop):
    """True if the key is a phrase, or if no ASCII letter is next to the match.

    SillyTavern searches `(?:^|\\W)(key)(?:$|\\W)` for one word, and for JavaScript's `\\W` a letter
    of another script is not a letter. It searches for a phrase anywhere.
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
