"""Make long dialogues, with questions about them, from a seed and the plots in `dialogues/`.

A dialogue is what one NPC experienced: ten sessions, days of game time apart. In them, seven people
tell ten plots step by step (each step is a beat). Between the beats are greetings and small talk
with the same names and many of the same words. One thing was noted of each beat, and of small talk
too; this is a memory. There are questions about six of the plots. The beats that answer a question
are its evidence. Each half has its own plots, so weights that are tuned on one half have seen
nothing of the other. There are five kinds of question:

    name        names the person or the thing that it is about
    pronoun     names its person only in the message before
    date        asks for a time, or for what happened at a time
    two_step    describes its person by what another memory says
    paraphrase  shares no specific word with what was noted
"""

import random
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Literal

import yaml

Half = Literal["tune", "report"]
HALVES = ("tune", "report")
KINDS = ("name", "pronoun", "date", "two_step", "paraphrase")
DIALOGUES = 6
"""How many dialogues each half has."""
SESSIONS = 10
PEOPLE = 7
ASKED_PLOTS = 6
SMALL_MATTERS = 60
GOES_ON = 0.4
"""The probability that a plot continues in the same session. Otherwise it continues days later."""
APART_HOURS = (40, 110)
FOLDER = Path(__file__).parent / "dialogues"


class Person:
    """A person, as plots name them: `{A}`, `{A.he}`, `{A.his}`, `{A.him}`, `{A.He}`."""

    def __init__(self, name, *, she=False):
        self.name = name
        self.he, self.his, self.him = ("she", "her", "her") if she else ("he", "his", "him")
        self.He = self.he.capitalize()

    def __str__(self):
        return self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """One memory: what was noted, and the lines of the session from which it was noted."""

    id: int
    text: str
    importance: int
    session: int
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One session: its time and place, the people there, and what they said."""

    hours: float
    place: str
    people: tuple[str, ...]
    lines: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question, what was said just before it, and the memories that answer it."""

    kind: str
    said: tuple[tuple[str, str], ...]
    evidence: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialogue:
    npc: str
    sessions: tuple[Session, ...]
    memories: tuple[Noted, ...]
    questions: tuple[Question, ...]
    asked_at: float


def dialogues(half):
    """Return the dialogues of a half. They are always the same."""
    plots = _read(f"plots_to_{half}.yaml")
    return [_Teller(half, number, plots).dialogue() for number in range(DIALOGUES)]


def _read(name):
    return yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))


class _Teller:
    """A generator of one dialogue."""

    def __init__(self, half, number, plots):
        self.rng = random.Random(f"{half} {number}")
        self.talk = _read("talk.yaml")
        self.npc = self.talk["npcs"][number + DIALOGUES * HALVES.index(half)]
        people = self.rng.sample(self.talk["people"], PEOPLE)
        self.people = [Person(one["name"], she=one.get("she", False)) for one in people]
        self.lines = [[] for _ in range(SESSIONS)]
        self.there = [set() for _ in range(SESSIONS)]
        self.notes = []
        asked = {(number * 5 + place) % len(plots) for place in range(ASKED_PLOTS)}
        self.plots = [(plot, self._slots(plot), i in asked) for i, plot in enumerate(plots)]

    def dialogue(self):
        for session, units in enumerate(self._schedule()):
            self._say(self.rng.choice(self.talk["greetings"]), session, self._two())
            for lines, note, slots in units:
                first = len(self.lines[session])
                self._say(lines, session, slots)
                self.notes.append((session, first, len(self.lines[session]), note))
            self._say(self.rng.choice(self.talk["partings"]), session, self._two())
        memories = tuple(
            Noted(id=i, session=session, first=first, last=last, **self._noted(*note))
            for i, (session, first, last, note) in enumerate(self.notes, start=1)
        )
        places = {note[0]: i for i, (*_, note) in enumerate(self.notes, start=1)}
        sessions = self._sessions()
        return Dialogue(
            npc=self.npc,
            sessions=sessions,
            memories=memories,
            questions=tuple(self._questions(places)),
            asked_at=sessions[-1].hours + self.rng.uniform(20, 60),
        )

    def _slots(self, plot):
        """Return the people and things that a plot is about in this dialogue."""
        cast = dict(zip("ABC", self.rng.sample(self.people, 3), strict=True))
        day, other = self.rng.sample(self.talk["days"], 2)
        picks = {name: self.rng.choice(some) for name, some in plot["picks"].items()}
        return {"npc": self.npc, "day": day, "other": other, **cast, **picks}

    def _two(self):
        one, other = self.rng.sample(self.people, 2)
        day = self.rng.choice(self.talk["days"])
        return {"npc": self.npc, "X": one, "Y": other, "day": day}

    def _schedule(self):
        """Return what is told in each session, in order: beats of plots among small talk."""
        plots = [[] for _ in range(SESSIONS)]
        for index, (plot, slots, _) in enumerate(self.plots):
            at = self.rng.randrange(SESSIONS - len(plot["beats"]) + 1)
            for place, (name, beat) in enumerate(plot["beats"].items()):
                left = len(plot["beats"]) - place
                if place and self.rng.random() > GOES_ON:
                    at = self.rng.randint(at + 1, SESSIONS - left) if at < SESSIONS - left else at
                plots[at].append((beat["said"], ((index, name), beat, slots), slots))
        small = [[] for _ in range(SESSIONS)]
        for number in range(SMALL_MATTERS):
            matter, slots = self.rng.choice(self.talk["small"]), self._two()
            note = (("small", number), {"memory": [matter["memory"]]}, slots)
            small[number % SESSIONS].append((matter["said"], note, slots))
        for beats, matters in zip(plots, small, strict=True):
            mixed = [one for pair in zip_longest(beats, matters) for one in pair if one is not None]
            yield mixed if self.rng.random() < 1 / 2 else [*matters[:2], *beats, *matters[2:]]

    def _say(self, lines, session, slots):
        for line in lines:
            who, _, text = line.format(**slots).partition(": ")
            speaker = self.npc if who == "N" else str(slots.get(who, who))
            self.lines[session].append((speaker, text))
            self.there[session].add(speaker)

    def _noted(self, _, beat, slots):
        text = self.rng.choice(beat["memory"]).format(**slots)
        return {"text": text[0].upper() + text[1:], "importance": self.rng.randint(2, 8)}

    def _sessions(self):
        hours, made = 0.0, []
        for lines, there in zip(self.lines, self.there, strict=True):
            hours += self.rng.uniform(*APART_HOURS)
            made.append(
                Session(
                    hours=round(hours, 3),
                    place=self.rng.choice(self.talk["places"]),
                    people=tuple(sorted(there - {self.npc})),
                    lines=tuple(lines),
                )
            )
        return tuple(made)

    def _questions(self, places):
        for index, (plot, slots, is_asked) in enumerate(self.plots):
            if not is_asked:
                continue
            for kind in KINDS:
                given = plot["questions"][kind]
                said = [*given.get("before", []), self.rng.choice(given["ask"])]
                asker = str(self.rng.choice(self.people))
                lines = [text.format(**slots) for text in said]
                yield Question(
                    kind=kind,
                    said=tuple(_turn_about(asker, self.npc, lines)),
                    evidence=frozenset(places[index, name] for name in given["needs"]),
                )


def _turn_about(asker, npc, lines):
    """Return the lines as said alternately; the person who asks says the last one."""
    for place, line in enumerate(lines):
        yield (asker if (len(lines) - place) % 2 else npc), line
