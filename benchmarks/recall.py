"""Measure how many of the memories that answer a question an NPC recalls first.

    python -m benchmarks.recall [--half report] [--brief] [--check]
    python -m benchmarks.recall --cost

There are dialogues with a hundred memories each, in two halves with 180 questions each
(`recall_dialogues.py`). The weights were tuned on the half `tune`. The results are of the half
`report`, which has other plots. The evidence of a question are the memories that answer it. Each
question gives the share of its evidence among the first ten, or five, of all memories. Five ways to
score memories are compared:

    before               only the words of a memory, as they counted until 2026-11-23
    words                the same words, measured against the best candidate
    neighbours, scene    also the words of memories just before and after, and of the scene
    meaning, weighted    a weighted sum of the words and of the model's similarity
    all of it            words, neighbours, scene and meaning, asked in turn

First the memories are ordered by relevance only, as for the tool `recall`. Then they are ordered by
the whole score, as for a prompt. There recency and importance count as much, which do not depend on
the question. The model is that of the extra `embeddings`. If it is not installed, the ways that
need it are left out, and named. The same seed gives the same numbers on every machine.

`--check` runs only the ways that have a limit, and ends with status 1 if they find too little.
`--cost` measures the processor time of one prompt's recall instead.
"""

import argparse
import random
import statistics
import time
from dataclasses import dataclass, replace
from functools import cache

from benchmarks.recall_dialogues import HALVES, KINDS, dialogues
from evennia_ai.engine.memory.memories import Memory
from evennia_ai.engine.memory.recalling import RecallRules, score_memories
from evennia_ai.engine.memory.relevance import NO_NEARNESS
from evennia_ai.engine.memory.scenes import scene_of, words_said
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import said
from evennia_ai.services.llm.sentence_model import SentenceModelError, sentence_model

FIRST = (5, 10)
ALONE = {"neighbours_percent": 0, "scene_percent": 0, "second_percent": 0, "meaning_percent": 0}
MORE_RELEVANT = (200, 300)
"""The weights of relevance that are tried, where recency and importance have 100 each."""
LANGUAGES = ("en", "ru")
USUAL = RecallRules(languages=LANGUAGES)
BEFORE = RecallRules(**ALONE, against="itself", languages=LANGUAGES)
WORDS = RecallRules(**ALONE, languages=LANGUAGES)
FLOORS = {"these, asked in turn": 0.58, "all of it": 0.74}
"""The least share of the evidence among the first ten memories, in the half `report`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question as the engine gets it, with the memories that answer it."""

    kind: str
    memories: tuple[Memory, ...]
    hours: float
    said: frozenset[str]
    text: str
    evidence: frozenset[int]


def asked_in(half):
    """Return all questions of a half."""
    return [one for dialogue in dialogues(half) for one in _asked(dialogue)]


def _asked(dialogue):
    memories = tuple(_memory(dialogue, noted) for noted in dialogue.memories)
    for question in dialogue.questions:
        history = History([_message(dialogue, *line) for line in question.said])
        yield Asked(
            kind=question.kind,
            memories=memories,
            hours=dialogue.asked_at,
            said=words_said(history, None, messages=USUAL.scan_messages, languages=LANGUAGES),
            text=question.said[-1][1],
            evidence=question.evidence,
        )


def _memory(dialogue, noted):
    """Return a noted memory as the engine would store it, without its source lines."""
    session = dialogue.sessions[noted.session]
    lines = [_message(dialogue, *line) for line in session.lines]
    return Memory(
        id=noted.id,
        text=noted.text,
        importance=noted.importance,
        created_at=session.hours,
        recalled_at=session.hours,
        place_ref=session.place,
        scene=scene_of(noted.text, lines, there=[session.place], languages=LANGUAGES),
    )


def _message(dialogue, speaker, text):
    return said("assistant" if speaker == dialogue.npc else "user", text, name=speaker)


@cache
def vector(text):
    import numpy as np

    return np.frombuffer(sentence_model().vectors([text])[0], "<f4")


def nearness(asked):
    """Return the similarity of each memory's meaning to the question's meaning."""
    question = vector(asked.text)
    return {one.id: round(float(vector(one.text) @ question), 4) for one in asked.memories}


def by_score(rules, *, with_meaning=False, by="total"):
    """A function from a question to the ids of its memories, best first."""

    def order(asked):
        near = nearness(asked) if with_meaning else NO_NEARNESS
        scores = score_memories(
            asked.memories, hours=asked.hours, said=asked.said, rules=rules, near=near
        )
        pairs = zip(asked.memories, scores, strict=True)
        ranked = sorted(pairs, key=lambda pair: (-getattr(pair[1], by), pair[0].id))
        return [memory.id for memory, _ in ranked]

    return order


def found(asked, order):
    """Return the shares of the evidence found, by the number of memories and kind of question."""
    shares = {first: {kind: [] for kind in KINDS} for first in FIRST}
    for one in asked:
        ranked = order(one)
        for first in FIRST:
            hits = one.evidence.intersection(ranked[:first])
            shares[first][one.kind].append(len(hits) / len(one.evidence))
    return shares


def ways(*, has_model):
    """Return the available ways by name, each with its orders by relevance and by whole score."""
    scene = replace(USUAL, second_percent=0)
    rules = {
        "before": (BEFORE, False),
        "words": (WORDS, False),
        "neighbours": (replace(USUAL, scene_percent=0, second_percent=0), False),
        "scene": (replace(USUAL, neighbours_percent=0, second_percent=0), False),
        "neighbours, scene": (scene, False),
        "these, asked in turn": (USUAL, False),
        "meaning, weighted": (replace(WORDS, meaning_percent=USUAL.meaning_percent), True),
        "all but in turn": (scene, True),
        "all of it": (USUAL, True),
    }
    made = {}
    for name, (given, needs_model) in rules.items():
        if needs_model and not has_model:
            continue
        options = {"with_meaning": needs_model}
        made[name] = (by_score(given, **options, by="relevance"), by_score(given, **options))
    for percent in MORE_RELEVANT:  # This does not change any order by relevance.
        rules = replace(USUAL, relevance_percent=percent)
        made[f"so, relevance {percent} %"] = (None, by_score(rules, with_meaning=has_model))
    return made


def report(title, asked, orders):
    """Print a table.

    Return, for each order, the share of the evidence among the first ten memories.
    """
    print(f"\n{title:24} {'first 5':>8} {'first 10':>9}  " + "".join(f"{k:>11}" for k in KINDS))
    totals = {}
    for name, order in orders.items():
        shares = found(asked, order)
        five, ten = (
            statistics.mean(share for kind in shares[first].values() for share in kind)
            for first in FIRST
        )
        kinds = "".join(f"{statistics.mean(shares[10][kind]):11.2f}" for kind in KINDS)
        print(f"{name:24} {five:8.3f} {ten:9.3f}  {kinds}", flush=True)
        totals[name] = ten
    return totals


def cost(count, *, rounds=60):
    """Return the processor milliseconds of one recall among `count` memories: old and new way."""
    asked = asked_in("report")
    pool = [memory for one in asked[::30] for memory in one.memories]
    rng = random.Random(count)
    memories = [
        replace(rng.choice(pool), id=number, created_at=float(number // 5), place_ref="1")
        for number in range(count)
    ]
    times = {BEFORE: [], USUAL: []}
    for number in range(rounds):
        for rules in (BEFORE, USUAL) if number % 2 else (USUAL, BEFORE):
            start = time.process_time()
            score_memories(memories, hours=500.0, said=asked[number % len(asked)].said, rules=rules)
            times[rules].append(1000 * (time.process_time() - start))
    return statistics.median(times[BEFORE][2:]), statistics.median(times[USUAL][2:])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", choices=HALVES, default="report")
    parser.add_argument("--brief", action="store_true", help="leave out the sentence model")
    parser.add_argument(
        "--check", action="store_true", help="end with status 1 if too little is found"
    )
    parser.add_argument(
        "--cost", action="store_true", help="measure the time of one recall instead"
    )
    options = parser.parse_args()
    if options.cost:
        for count in (300, 5_000):
            before, now = cost(count)
            print(f"{count:,} memories: {before:.2f} ms before, {now:.2f} ms now")
        return
    asked = asked_in(options.half)
    orders = ways(has_model=not options.brief and _has_model())
    if options.check:
        orders = {name: pair for name, pair in orders.items() if name in FLOORS}
    print(f"half {options.half}: {len(asked)} questions, {len(asked[0].memories)} memories each")
    totals = report("by relevance", asked, {k: pair[0] for k, pair in orders.items() if pair[0]})
    if not options.check:
        report("by score", asked, {k: pair[1] for k, pair in orders.items()})
    low = [name for name, floor in FLOORS.items() if totals.get(name, 1.0) < floor]
    if options.check and low:
        raise SystemExit(f"too little evidence is recalled by: {', '.join(low)}")


def _has_model():
    try:
        sentence_model()
    except SentenceModelError as missing:
        print(f"left out, because there is no sentence model: {missing}")
        return False
    return True


if __name__ == "__main__":
    main()
