"""Turns: activation with what a turn brings and what the turn before it left."""

from collections.abc import Iterable, Mapping
from typing import Any

from evennia_ai.engine.lorebook.activation.activation import Activation
from evennia_ai.engine.lorebook.activation.passes import activate_lore
from evennia_ai.engine.lorebook.activation.timers import NO_STATE, Clock, LoreState
from evennia_ai.engine.lorebook.book import Lorebook
from evennia_ai.engine.lorebook.conditions import Facts
from evennia_ai.engine.lorebook.rules import ActivationRules
from evennia_ai.engine.lorebook.scan.window import Scan
from evennia_ai.engine.prompt.dice import Dice
from tests.engine.lorebook.builders import DICE, WORDS, a_scan

NO_FACTS: Facts = {}


def a_turn(
    *books: Lorebook,
    scan: Scan,
    rules: ActivationRules | None = None,
    limit_tokens: int = 10_000,
    values: Mapping[str, str] | None = None,
    dice: Dice = DICE,
    state: LoreState = NO_STATE,
    clock: Clock | None = None,
    facts: Facts = NO_FACTS,
) -> Activation:
    """What the books give in one turn."""
    return activate_lore(
        books,
        scan,
        rules=rules or ActivationRules(),
        limit_tokens=limit_tokens,
        counter=WORDS,
        values=values or {},
        dice=dice,
        state=state,
        clock=clock or Clock(),
        facts=facts,
    )


def over_turns(
    *books: Lorebook, said: Iterable[str], state: LoreState = NO_STATE, **more: Any
) -> list[Activation]:
    """One turn for each text, which is all that is scanned in it; the state is carried on."""
    results: list[Activation] = []
    for turns, text in enumerate(said, start=1):
        clock = Clock(turns=turns, messages=2 * turns - 1, seconds=60.0 * (turns - 1))
        scan = a_scan(f"user: {text}")
        results.append(a_turn(*books, scan=scan, state=state, clock=clock, **more))
        state = results[-1].after
    return results
