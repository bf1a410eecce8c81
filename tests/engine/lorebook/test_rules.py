"""Tests of `settings.lore` in a scenario."""

import pytest

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.lorebook.activation.lore_budget import budget_of
from evennia_ai.engine.lorebook.rules import EVENNIA_AI, SILLYTAVERN, ActivationRules, read_rules


def test_activation_rules_are_the_defaults_without_settings():
    assert read_rules({}) == ActivationRules()


def test_activation_rules_take_the_given_settings():
    rules = read_rules({"scan_depth": 2, "overflow": "stop", "budget_tokens": 7, "dry_run": True})
    assert rules == ActivationRules(scan_depth=2, overflow="stop", budget_tokens=7, dry_run=True)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"scan_dept": 2}, "settings.lore: unknown setting scan_dept; known are rules, scan_depth"),
        ({"greeting_index": 1}, "settings.lore: unknown setting greeting_index"),
        ({"scan_depth": -1}, "settings.lore.scan_depth: must be a whole number, 0 or more, not -1"),
        ({"scan_depth": True}, "settings.lore.scan_depth: must be a whole number"),
        ({"scan_depth": "4"}, "settings.lore.scan_depth: must be a whole number"),
        ({"include_names": 1}, "settings.lore.include_names: must be true or false, not 1"),
        ({"budget_percent": 101}, "settings.lore.budget_percent: must be a number from 0 to 100"),
        ({"budget_tokens": 1.5}, "settings.lore.budget_tokens: must be a whole number"),
        ({"overflow": "cut"}, "settings.lore.overflow: must be one of skip, stop, not 'cut'"),
        ({"dice": 1}, "settings.lore.dice: must be a number in [0, 1), or null, not 1"),
        ([], "settings.lore: must be an object"),
    ],
)
def test_invalid_lore_setting_is_named_in_the_error(data, message):
    with pytest.raises(FormatError) as caught:
        read_rules(data)
    assert caught.value.message.startswith(message)
    assert "\n" not in caught.value.message


def test_written_lore_settings_override_the_preset():
    rules = read_rules({"rules": "sillytavern", "scan_depth": 9})
    assert rules.flags is SILLYTAVERN
    assert (rules.scan_depth, rules.overflow, rules.recursive) == (9, "stop", False)
    assert read_rules({}).flags is EVENNIA_AI


def test_sillytavern_lore_budget_is_rounded_and_at_least_1():
    rules = ActivationRules(rules="sillytavern", budget_percent=25)
    assert [budget_of(rules, limit) for limit in (10, 9, 1, 0)] == [3, 2, 1, 1]


def test_lore_budget_is_a_share_of_the_token_limit_under_a_cap():
    assert budget_of(ActivationRules(budget_percent=25), 1000) == 250
    assert budget_of(ActivationRules(budget_percent=25, budget_tokens=100), 1000) == 100
    assert budget_of(ActivationRules(budget_percent=25), 0) == 0
