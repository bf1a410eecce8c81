"""Activation over several turns: each turn starts with the timers that the previous one left."""

from collections.abc import Iterable, Mapping
from typing import Any

from evennia_ai.engine.lorebook.activation.activation import Activation
from evennia_ai.engine.lorebook.activation.passes import activate_lore
from evennia_ai.engine.lorebook.activation.timers import NO_STATE, Clock, LoreState
from evennia_ai.engine.lorebook.book import Lorebook
from evennia_ai.engine.lorebook.rules import ActivationRules
from evennia_ai.engine.lorebook.scan.window import Scan
from evennia_ai.engine.prompt.conditions import Facts
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
    """Run the activation of these books in one turn."""
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
    """Run one turn for each text. Each turn scans only its text and uses the previous timers."""
    results: list[Activation] = []
    for turns, text in enumerate(said, start=1):
        clock = Clock(turns=turns, messages=2 * turns - 1, seconds=60.0 * (turns - 1))
        scan = a_scan(f"user: {text}")
        results.append(a_turn(*books, scan=scan, state=state, clock=clock, **more))
        state = results[-1].after
    return results
