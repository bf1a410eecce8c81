"""Tests of the settings of the lorekeeper: accepted fields and errors."""

from typing import Any

import pytest

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.knowledge.settings import LorekeeperSettings, read_lorekeeper_settings


def test_lorekeeper_settings_are_the_defaults_when_empty() -> None:
    read = read_lorekeeper_settings({"base": "harbour"}, where="S")
    assert read == LorekeeperSettings(base="harbour")


def test_lorekeeper_settings_take_every_field() -> None:
    given = {
        "enabled": False,
        "base": "harbour",
        "package_placement": "split",
        "budget_tokens": 8000,
        "reply_tokens": 900,
    }
    assert read_lorekeeper_settings(given, where="S") == LorekeeperSettings(**given)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([], "S: must be a dictionary"),
        ({"bases": "x"}, "S: there is no rule 'bases'; did you mean base?"),
        ({"enabled": "yes"}, "S.enabled: must be True or False, not 'yes'"),
        ({"base": 3}, "S.base: must be the key of a knowledge base, as text, not 3"),
        (
            {"package_placement": "append"},
            'S.package_placement: must be "prepend" or "split", not \'append\'',
        ),
        (
            {"budget_tokens": 10},
            "S.budget_tokens: must be a whole number from 600 to 1000000, not 10",
        ),
        (
            {"reply_tokens": True},
            "S.reply_tokens: must be a whole number from 1 to 1000000, not True",
        ),
    ],
)
def test_lorekeeper_settings_error_names_the_field(given: Any, told: str) -> None:
    with pytest.raises(FormatError) as caught:
        read_lorekeeper_settings(given, where="S")
    assert told in str(caught.value)
