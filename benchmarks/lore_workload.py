"""Make books and chats for the lore benchmark from a seed, with the entries that must activate.

There are two kinds of book:

plain   A SillyTavern world file. An entry has 2 to 4 keys (one in five has two words, three in ten
        have a capital) and about 60 tokens of content. In a recursive book, the chat activates 70 %
        of the active entries, these activate another 20 %, and those the last 10 %. In a flat book
        the chat activates all. Every four consecutive messages of the chat contain all keys that
        activate entries. So the same entries are active at every scan depth and in every turn, and
        only the places of the keys change.
mixed   A V3 lorebook. An entry has 3 keys: Latin words, phrases of two words, Cyrillic words, or 2
        to 4 Chinese characters. One word in eighty of the chat is a key of some entry. So each turn
        has its own set of active entries, a few dozen in 50 messages, however large the book is.

A key counts if it is a whole word in one message, in any case. Chinese keys count anywhere.
Standard library only.
"""

import random
from collections import Counter
from dataclasses import dataclass
from itertools import chain

SEED = 730_114
SPEAKERS = ("Aria", "Ren")
STRETCH = 4
"""This many consecutive messages contain every word that activates an entry."""

_ONSETS = "b br c ch d dr f g gr h k l m n p r s sh st t th tr v w".split()  # noqa: SIM905
_NUCLEI = "a e i o u ai ea ou".split()  # noqa: SIM905
_CODAS = ("", "", "l", "n", "r", "s", "m", "nd", "rk", "st")
_CYRILLIC = ("бвгджзклмнпрстфхцчш", "аеиоуыюя", ("", "н", "р", "к"))
_WAKING = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The shape of a workload.

    A `depth` of 0 scans the whole chat. `active` is 0 for mixed books. `strays` are keys in each
    message that activate one additional entry each; equally many come and go in every turn.
    """

    entries: int
    active: int = 0
    messages: int = 50
    depth: int = 50
    recursive: bool = False
    strays: int = 0

    @property
    def mixed(self) -> bool:
        return not self.active

    @property
    def steps(self) -> tuple[int, int, int]:
        """How many entries the chat activates, these entries activate, and those activate."""
        if not self.recursive:
            return self.active, 0, 0
        second, third = max(1, self.active * 2 // 10), max(1, self.active // 10)
        return self.active - second - third, second, third

    def __str__(self) -> str:
        kind = "mixed" if self.mixed else f"{self.active} active"
        depth = self.depth or "all"
        how = ", recursive" if self.recursive else ""
        how += f", {self.strays} random keys a message" if self.strays else ""
        return f"{self.entries} entries, {kind}, {self.messages} messages, depth {depth}{how}"


class Workload:
    """A book, a chat of `shape.messages` messages, and one more message for each of `turns`."""

    def __init__(self, shape: Shape, *, turns: int) -> None:
        self.shape, self.turns = shape, turns
        rng = random.Random(f"{SEED} {shape.entries} {shape.active} {shape.recursive}")
        made = _mixed(rng, shape, turns) if shape.mixed else _plain(rng, shape, turns)
        self.keys, self.contents, texts, self.book = made
        self.messages = [(SPEAKERS[n % 2], text) for n, text in enumerate(texts)]
        self.scanned = [f"{name}: {text}" for name, text in self.messages]

    def new(self, count: int, *, turn: int) -> list[tuple[str, str]]:
        """Return the messages that exist at `turn`, without the first `count`."""
        return self.messages[count : self.shape.messages + turn]

    def window(self, turn: int) -> range:
        """Return the numbers of the messages within the scan depth, oldest first."""
        stop = self.shape.messages + turn
        return range(max(0, stop - self.shape.depth) if self.shape.depth else 0, stop)


def _plain(rng, shape, turns):
    taken = set()
    filler = _vocabulary(rng, 900, 2, taken)
    waking = [_vocabulary(rng, _WAKING, 3, taken) for _ in shape.steps]
    cold = _vocabulary(rng, max(2000, shape.entries * 6 // 5), 3, taken)
    steps = list(chain.from_iterable([step] * count for step, count in enumerate(shape.steps)))
    steps += [None] * (shape.entries - shape.active)
    rng.shuffle(steps)
    words_of = [waking[0], *(waking[n][: shape.steps[n]] for n in (1, 2))]
    inside = _dealt_out(steps, words_of)
    contents = [
        _prose(rng, filler, rng.randint(21, 26), inside.get(n, ())) for n in range(shape.entries)
    ]
    keys = [_keys(rng, cold, words_of[step] if step is not None else ()) for step in steps]
    share = _WAKING // STRETCH
    texts = []
    strays = random.Random(f"{SEED} strays {shape.entries}")
    owned = Counter(key.casefold() for own in keys for key in own)
    words = [key for own in keys for key in own if " " not in key]
    of_one = [key for key in words if owned[key.casefold()] == 1]
    for n in range(shape.messages + turns):
        at = n % STRETCH * share
        woken = [strays.choice(of_one) for _ in range(shape.strays)]
        inside_it = [*waking[0][at : at + share], *woken]
        texts.append(_prose(rng, filler, rng.randint(35, 65), inside_it))
    entries = {
        str(n): _world_entry(n, *both) for n, both in enumerate(zip(keys, contents, strict=True))
    }
    return keys, contents, texts, {"entries": entries}


def _dealt_out(steps, words_of):
    """Return the words that each entry's content must have to activate the next step."""
    inside = {}
    for step in (0, 1):
        feeders = [n for n, own in enumerate(steps) if own == step]
        for n, word in enumerate(words_of[step + 1] if feeders else ()):
            inside.setdefault(feeders[n % len(feeders)], []).append(word)
    return inside


def _keys(rng, cold, waking):
    keys = [
        " ".join(rng.sample(cold, 2)) if rng.random() < 0.2 else rng.choice(cold)
        for _ in range(rng.randint(2, 4) - bool(waking))
    ]
    if waking:
        keys.insert(rng.randint(0, len(keys)), rng.choice(waking))
    return [key.capitalize() for key in keys] if rng.random() < 0.3 else keys


def _world_entry(uid, keys, content):
    return {
        "uid": uid,
        "key": keys,
        "keysecondary": [],
        "comment": "",
        "content": content,
        "constant": False,
        "selective": True,
        "selectiveLogic": 0,
        "order": 100 + uid % 900,
        "position": uid % 2,
        "disable": False,
        "excludeRecursion": False,
        "preventRecursion": False,
        "delayUntilRecursion": 0,
        "probability": 100,
        "useProbability": True,
        "depth": 4,
        "group": "",
        "groupOverride": False,
        "groupWeight": 100,
        "scanDepth": None,
        "caseSensitive": None,
        "matchWholeWords": None,
        "useGroupScoring": None,
        "role": 0,
        "sticky": None,
        "cooldown": None,
        "delay": None,
    }


def _mixed(rng, shape, turns):
    taken = set()
    filler = [_latin(rng, rng.choice((1, 1, 2, 2, 3))) for _ in range(1500)]
    other = [_cyrillic(rng, rng.randint(1, 4)) for _ in range(300)]
    keys = [[_new(rng, _mixed_key, taken) for _ in range(3)] for _ in range(shape.entries)]
    flat = list(chain.from_iterable(keys))
    contents = [_prose(rng, filler, rng.randint(21, 26), ()) for _ in keys]
    count = shape.messages + turns
    texts = [_mixed_text(rng, flat, filler, other) for _ in range(count)]
    entries = [
        {
            "keys": own,
            "content": content,
            "extensions": {},
            "enabled": True,
            "insertion_order": 100,
            "use_regex": False,
        }
        for own, content in zip(keys, contents, strict=True)
    ]
    book = {"spec": "lorebook_v3", "data": {"name": "mixed", "extensions": {}, "entries": entries}}
    return keys, contents, texts, book


def _mixed_key(rng):
    kind = rng.random()
    if kind < 0.1:
        key = _cyrillic(rng, rng.randint(2, 4))
    elif kind < 0.2:
        key = _chinese(rng, rng.randint(2, 4))
    elif kind < 0.35:
        key = f"{_latin(rng, rng.randint(2, 3))} {_latin(rng, 2)}"
    else:
        key = _latin(rng, rng.randint(2, 3))
    return key.capitalize() if rng.random() < 0.3 else key


def _mixed_text(rng, keys, filler, other):
    words = []
    for _ in range(rng.randint(15, 35)):
        kind = rng.random()
        if kind < 0.0125:
            word = rng.choice(keys)
        elif kind < 0.1:
            word = rng.choice(other)
        elif kind < 0.12:
            word = _chinese(rng, rng.randint(3, 9)) + "，"
        else:
            word = rng.choice(filler)
        words.append(word + (rng.choice(".,!?'\"") if rng.random() < 0.12 else ""))
    return " ".join(words)


def _vocabulary(rng, count, syllables, taken):
    return [_new(rng, lambda dice: _latin(dice, syllables), taken) for _ in range(count)]


def _new(rng, make, taken):
    """Return a word that was not used before."""
    while (word := make(rng)).casefold() in taken or len(word) < 2:
        pass
    taken.add(word.casefold())
    return word


def _latin(rng, syllables):
    return "".join(
        rng.choice(_ONSETS) + rng.choice(_NUCLEI) + rng.choice(_CODAS) for _ in range(syllables)
    )


def _cyrillic(rng, syllables):
    consonants, vowels, codas = _CYRILLIC
    word = "".join(rng.choice(consonants) + rng.choice(vowels) for _ in range(syllables))
    return word + rng.choice(codas)


def _chinese(rng, length):
    return "".join(chr(rng.randint(0x4E00, 0x6FFF)) for _ in range(length))


def _prose(rng, vocabulary, words, inside):
    """Return sentences of `words` words, with each word of `inside` somewhere in them."""
    parts = [rng.choice(vocabulary) for _ in range(words)]
    for word in inside:
        parts.insert(rng.randrange(1, len(parts)), word)
    ends = set(range(7, len(parts), 8)) | {len(parts) - 1}
    return " ".join(
        (part.capitalize() if at % 8 == 0 else part) + ("." if at in ends else "")
        for at, part in enumerate(parts)
    )
