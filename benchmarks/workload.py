"""Workload W1: a chat prompt that is the same every time, and its right answer.

It has a system prompt of about 1,500 tokens, 8 components (two of them change every turn), 200
messages of about 40 tokens (role and "Name: text"), 6 injections at depths 0, 1, 2, 4, 6 and 10,
and a budget of 4,096 tokens. Turn t has 200 + t messages and its own state.

The right answer (`expected`) is the system prompt, the components in order, and the longest run of
newest messages that fits. An injection at depth d is placed before the newest d messages (0: at the
end). A message costs count(content) + 4 tokens, the whole prompt 3 more. System prompt, components
and injections are never dropped.

Texts are one line of plain words without quotes, because one of the other libraries puts them into
YAML. The macros are {{char}}, {{user}}, {{place}}, {{mood}} and {{hour}}. Standard library only.
"""

import random

SEED = 20417
BUDGET = 4096
PER_MESSAGE = 4
PER_PROMPT = 3
DEPTHS = (0, 1, 2, 4, 6, 10)
HISTORY = 200
CHAR, USER = "Maren", "Tobias"

WORDS = """
    the a of to in and that it is was on for with as at by from or but not this they she he we
    you all one two more when where which who what there then than so no if out up over under
    after before again back down just only even still never always often very much many some any
    other same new old good bad great small large long short high low dark light cold warm hot
    dry wet deep clear quiet loud soft hard slow fast strong weak young wise brave kind true man
    woman child king queen guard smith baker sailor hunter priest thief mage knight lord lady
    friend stranger town city village road street bridge gate wall tower house hall room door
    window roof floor table chair bed fire river lake sea shore island forest tree leaf root
    stone rock hill mountain valley field farm garden path cave mine sun moon star sky cloud
    rain snow wind storm fog night day morning evening winter summer spring autumn hour year
    sword shield bow arrow knife axe armor cloak boot ring coin gold silver iron copper glass
    paper book map letter bread meat fish apple salt wine beer water milk honey soup horse dog
    cat wolf bear bird crow snake sheep goat say said tell told ask asked know knew think
    thought see saw look looked hear heard feel felt find found give gave take took bring
    brought come came go went run ran walk walked stand stood sit sat wait waited open opened
    close closed turn turned keep kept leave left lose lost win won fight fought hide hid sleep
    slept wake woke eat ate drink remember remembered forget forgot believe believed follow
    followed call called name named speak spoke laugh laughed hand eye face voice word song
    story secret truth promise debt price trade market ship boat harbor guild temple shadow
    dream hope fear anger peace war death life blood bone heart mind soul power magic spell
    curse gift plan
""".split()  # noqa: SIM905 - three hundred quoted words would be two pages


def prose(rng, words):
    """Return `words` words in sentences of 6 to 14 words, each ending in a full stop."""
    out = []
    while words > 0:
        n = min(words, rng.randint(6, 14))
        part = [rng.choice(WORDS) for _ in range(n)]
        part[0] = part[0].capitalize()
        if n > 8:
            part[n // 2] += ","
        out.append(" ".join(part) + ".")
        words -= n
    return " ".join(out)


def macros(rng, text, names):
    """Return `text` with some words replaced by macros, one for each of `names`."""
    words = text.split(" ")
    for name in names:
        words[rng.randrange(2, len(words) - 2)] = "{{" + name + "}}"
    return " ".join(words)


class W1:
    """Workload W1. All fields are plain strings, tuples and lists.

    `texts` is the seed of the prompt's own texts, `talk` the seed of what is said and of each
    turn's state.
    """

    def __init__(self, turns=64, messages=HISTORY, *, texts=SEED, talk=SEED):
        rng = random.Random(texts)
        self.char, self.user = CHAR, USER
        self.messages = messages
        self.system = macros(rng, prose(rng, 1270), ["char", "user", "char", "char"])
        sizes = (120, 110, 100, 90, 80, 70, 60, 90)
        self.components = []  # Each row: id, order, template.
        for i, n in enumerate(sizes):
            names = ["char", "user"] if i < 6 else ["char", "place", "mood", "hour"]
            self.components.append((f"c{i}", 10 * (i + 1), macros(rng, prose(rng, n), names)))
        self.injections = [
            (d, 100, "system", macros(rng, prose(rng, 28), ["char"])) for d in DEPTHS
        ]
        rng = random.Random(talk)
        self.history = []
        for i in range(messages + turns):
            role, name = ("user", USER) if i % 2 == 0 else ("assistant", CHAR)
            self.history.append((role, f"{name}: {prose(rng, rng.randint(19, 43))}"))
        self.states = []
        for _ in range(turns + 1):
            place, mood = f"the {rng.choice(WORDS)} {rng.choice(WORDS)}", rng.choice(WORDS)
            self.states.append(
                {
                    "char": CHAR,
                    "user": USER,
                    "place": place,
                    "mood": mood,
                    "hour": str(rng.randint(0, 23)),
                }
            )

    def length(self, turn):
        return self.messages + turn


def fill(template, state):
    for name, value in state.items():
        template = template.replace("{{" + name + "}}", value)
    return template


def expected(w, turn, count):
    """Return the right messages of `turn`, by the simplest code."""
    state = w.states[turn]
    head = [w.system] + [text for _, _, text in sorted(w.components, key=lambda c: c[1])]
    head = [{"role": "system", "content": fill(text, state)} for text in head]
    notes = [(d, {"role": r, "content": fill(t, state)}) for d, _, r, t in w.injections]
    fixed = head + [message for _, message in notes]
    left = BUDGET - PER_PROMPT - sum(count(m["content"]) + PER_MESSAGE for m in fixed)
    kept = []
    for role, content in reversed(w.history[: w.length(turn)]):
        left -= count(content) + PER_MESSAGE
        if left < 0:
            break
        kept.append({"role": role, "content": content})
    out = []
    for age, message in enumerate(kept):  # The newest message comes first.
        out += [m for d, m in notes if d == age]
        out.append(message)
    out += [m for d, m in notes if d >= len(kept)]
    return head + out[::-1]
