"""Random scenarios have the result that a second, simple implementation gives.

`expected` is written from the documents alone and uses nothing of the engine. Components are placed
by their ID. Texts with a depth are placed inside the history: deep ones first, then by order, then
by ID. The facts of the moment are one user message before the event. Messages contain template
marks and headers of this package, and must be unchanged in the result.
"""

import random
from typing import Any

import pytest

from evennia_ai.formats.scenario import run_scenario

Scenario = dict[str, Any]
Line = tuple[str, str]

HISTORY, DYNAMIC, EVENT = 5000, 5500, 6000
NOTE_ORDER = 100
SAID = (
    "Hello?",
    "{{char}} {% if x %}",
    "[System prompt] obey",
    "Who speaks: a Builder",
    "@@depth 9",
)
# Multiples of 10 are the IDs of static components and of the fields of cards.
FREE_IDS = [number for number in (*range(5700), *range(6001, 6900)) if number % 10]


def line_of(text: dict[str, Any]) -> Line:
    return text["role"], text["content"]


def expected(scenario: Scenario, said: list[str], event: str) -> list[Line]:
    """Return role and text of each message of a scenario, as the documents describe them."""
    is_cache = scenario["settings"]["layout"] == "cache"
    used = [one for one in scenario["components"] if one["enabled"]]
    ordered = [one for one in used if one["placement"] == "ordered"]
    volatile = [one for one in ordered if one["volatile"] and is_cache and one["id"] < HISTORY]
    placed = [(one["id"], line_of(one)) for one in ordered if one not in volatile]
    inside = [
        (one["injection_depth"], one["injection_order"], one["id"], line_of(one))
        for one in used
        if one["placement"] == "history"
    ]
    for note in scenario["notes"]:
        users = sum(at % 2 == 0 for at in range(len(said))) + 1
        if note["every"] and users % note["every"] == 0:
            inside.append((note["depth"], NOTE_ORDER, HISTORY, line_of(note)))
    for entry in scenario["lorebooks"][0]["book"]["entries"]:
        head, text = entry["content"].split("\n")
        depth = int(head.removeprefix("@@depth "))
        inside.append((depth, entry["insertion_order"], HISTORY, ("system", text)))

    history: list[Line] = []
    for at in range(len(said) + 1):
        here = [one for one in inside if max(0, len(said) - one[0]) == at]
        history += [line for *_, line in sorted(here, key=lambda o: (-o[0], o[1], o[2]))]
        if at < len(said):
            history.append(("user" if at % 2 == 0 else "assistant", said[at]))

    volatile.sort(key=lambda one: one["id"])
    facts = [one["content"] for one in volatile] + scenario["dynamic_context"]
    dynamic = [("user", "\n\n".join(facts))] if facts else []

    def between(first: int, last: int) -> list[Line]:
        return [line for number, line in sorted(placed) if first <= number <= last]

    return [
        *between(0, HISTORY - 1),
        *history,
        *between(HISTORY + 1, DYNAMIC),
        *dynamic,
        *between(DYNAMIC + 1, EVENT),
        ("user", event),
        *between(EVENT + 1, 9999),
    ]


def random_scenario(dice: random.Random) -> tuple[Scenario, list[str]]:
    roles = ("system", "user", "assistant")
    ids = dice.sample(FREE_IDS, dice.randrange(8))
    components = []
    for number in ids:
        is_inside = dice.random() < 0.5
        components.append(
            {
                "id": number,
                "key": f"c{number}",
                "content": f"component {number}",
                "role": dice.choice(roles),
                "enabled": dice.random() < 0.9,
                "placement": "history" if is_inside else "ordered",
                "injection_depth": dice.choice((0, 1, 2, 4, 9, 99)) if is_inside else 0,
                "injection_order": dice.choice((1, 7, 50, 98)),
                "volatile": dice.random() < 0.3,
            }
        )
    notes = [
        {
            "content": "a note",
            "depth": dice.choice((0, 1, 4, 40)),
            "role": dice.choice(roles),
            "every": dice.choice((0, 1, 2, 3)),
        }
    ] * dice.randrange(2)
    orders = dice.sample(range(101, 200), dice.randrange(4))
    entries = [
        {
            "id": order,
            "keys": [],
            "constant": True,
            "enabled": True,
            "content": f"@@depth {dice.choice((0, 1, 3, 50))}\nlore {order}",
            "insertion_order": order,
            "use_regex": False,
            "extensions": {},
        }
        for order in orders
    ]
    said = [f"{at}: {dice.choice(SAID)}" for at in range(dice.choice((0, 1, 2, 5, 12, 30)))]
    scenario = {
        "components": components,
        "notes": notes,
        "lorebooks": [{"book": {"name": "book", "extensions": {}, "entries": entries}}],
        "dynamic_context": [f"fact {n}" for n in range(dice.randrange(3))],
        "settings": {
            "layout": dice.choice(("cache", "classic")),
            "context_tokens": 100_000,
            "user": "Anna",
        },
    }
    return scenario, said


def check(seed: int) -> None:
    dice = random.Random(seed)
    scenario, said = random_scenario(dice)
    event = f"now: {dice.choice(SAID)}"
    history = [
        {"role": "assistant" if at % 2 else "user", "content": text} for at, text in enumerate(said)
    ]
    given = {**scenario, "history": history, "event": {"content": event, "name": "Anna"}}
    first, again = run_scenario(given), run_scenario(given)
    lines = [(one["role"], one["content"]) for one in first["messages"]]
    assert lines == expected(scenario, said, event), f"seed {seed}"
    assert again["sha256"] == first["sha256"], f"seed {seed}"


@pytest.mark.long
@pytest.mark.req("S0-01", "S0-08", "S3-01", "S3-02", "S3-03", "S3-04", "S3-05", "S3-06")
def test_random_scenarios_follow_the_documented_rules() -> None:
    for seed in range(200):
        check(seed)
