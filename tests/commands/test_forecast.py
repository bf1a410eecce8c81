"""`ai/forecast`: what edits change about the cost of an NPC's turns."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import override_settings
from twisted.internet.defer import maybeDeferred

from evennia_ai.commands import kept_cases
from evennia_ai.commands.ai import forecast
from tests.commands.stage import one_line

PRICED = {"default": {"price": {"input": 1000, "output": 1000}}}


@pytest.fixture
def priced(stage: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Let Oren answer twice, by a model that costs a thousandth of a dollar a token."""
    monkeypatch.setattr(kept_cases, "in_steps", lambda steps: maybeDeferred(list, steps))
    with override_settings(EVENNIA_AI_PROFILES=PRICED), stage.model("Aye.", "At dusk."):
        for line in ("Oren, are you there?", "Oren, when does the ferry run?"):
            stage.player.at_say(line)
            stage.waited()
        yield stage


def told(stage: Any, typed: str) -> str:
    return " ".join(stage.builds(typed).split())


def test_forecast_without_edits_says_that_a_turn_costs_as_much_as_before(priced: Any) -> None:
    line = told(priced, "ai/forecast oren")
    assert line.startswith("Oren, with the texts of today: A turn costs as much as before ($")
    assert line.endswith("tokens over the last 2 turns).")


def test_forecast_after_an_edit_says_how_much_more_a_turn_costs(priced: Any) -> None:
    rule = "Speak as briefly as you can, and never of the weather."
    priced.builds(f"component/create brief = {rule}")
    line = told(priced, "ai/forecast oren")
    assert line.startswith("Oren, with the texts of today: A turn costs $0.0")
    assert " more ($" in line


def test_forecast_of_an_edit_that_was_not_made_changes_nothing(priced: Any) -> None:
    priced.builds("note oren = She has a cold, and coughs at every other word.")
    with priced.model("Aye."):
        priced.player.at_say("Oren, are you well?")
        priced.waited()
    line = told(priced, "ai/forecast oren = note:note.off=yes")
    assert line.startswith("Oren, with this edit: A turn costs $")
    assert " less ($" in line
    assert "2 more cannot be compared" in line
    assert "She has a cold" in priced.builds("note oren")


def test_forecast_ends_with_the_turns_that_it_has_when_the_time_is_over(
    priced: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forecast, "MOST_SECONDS", 0.0)
    assert "over the last turn)" in told(priced, "ai/forecast oren")


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("ai/forecast", "Usage: ai/forecast <npc> [= <edit>, ...]"),
        ("ai/forecast oren", "Oren had no turn yet, so there is nothing to compare."),
    ],
)
def test_forecast_needs_an_npc_with_a_turn(stage: Any, typed: str, answer: str) -> None:
    assert answer in one_line(stage.builds(typed))


def test_forecast_refuses_a_line_that_is_no_edit(priced: Any) -> None:
    answer = one_line(priced.builds("ai/forecast oren = shorter please"))
    assert "'shorter please' is not an edit" in answer
