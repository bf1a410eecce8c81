"""The setting of memory is read at start, and what is wrong with it is told."""

import pytest

from evennia_ai.errors import FormatError
from evennia_ai.memory.recalling import MemorySettings, RecallRules, read_memory


def test_without_anything_given_all_is_as_by_default() -> None:
    assert read_memory({}, where="X") == MemorySettings()


def test_single_ones_are_set() -> None:
    read = read_memory({"most": 3, "kept": 50, "enabled": False}, where="X")
    assert read == MemorySettings(enabled=False, kept=50, recall=RecallRules(most=3))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([], "X: must be a dictionary"),
        ({"mots": 3}, "X: there is no rule 'mots'; did you mean most?"),
        ({"most": True}, "X.most: must be a whole number from 0 to 100, not True"),
        ({"share_percent": 91}, "X.share_percent: must be a whole number from 0 to 90, not 91"),
        ({"kept": 0}, "X.kept: must be a whole number from 1 to 2000, not 0"),
        ({"enabled": 1}, "X.enabled: must be True or False, not 1"),
    ],
)
def test_a_wrong_one_is_told(given: object, told: str) -> None:
    with pytest.raises(FormatError) as raised:
        read_memory(given, where="X")
    assert told in str(raised.value)
