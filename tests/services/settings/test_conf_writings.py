"""Test the settings for how much NPCs may write."""

import pytest
from django.core import checks

from evennia_ai.services.settings.conf import conf
from evennia_ai.services.settings.kinds import WritingLimits


@pytest.fixture(autouse=True)
def _read_anew():
    conf.cache_clear()
    yield
    conf.cache_clear()


def found() -> list[checks.CheckMessage]:
    return [m for m in checks.run_checks() if (m.id or "").startswith("evennia_ai.")]


def test_limits_of_writings_have_defaults():
    assert conf().writings == WritingLimits(characters=2000, most=20, a_day=5)


def test_limits_of_writings_can_be_set(settings_of_ai):
    settings_of_ai(WRITINGS={"most": 0, "characters": 8000})
    assert conf().writings == WritingLimits(characters=8000, most=0, a_day=5)
    assert found() == []


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ([], "must be a dictionary"),
        ({"pages": 3}, "there is no rule 'pages'"),
        ({"characters": 8001}, "WRITINGS.characters: must be a whole number from 1 to 8000"),
        ({"most": -1}, "WRITINGS.most: must be a whole number from 0"),
        ({"a_day": True}, "WRITINGS.a_day: must be a whole number from 0"),
    ],
)
def test_impossible_limits_of_writings_stop_the_start(settings_of_ai, value, told):
    settings_of_ai(WRITINGS=value)
    (message,) = found()
    assert message.id == "evennia_ai.E070"
    assert told in f"{message.msg} {message.hint}"
