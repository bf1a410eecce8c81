"""What was parsed is kept, but only so much of it."""

from dataclasses import dataclass

import pytest

from evennia_ai.errors import FormatError
from evennia_ai.minds.parse_cache import Parsed


@dataclass(frozen=True)
class Version:
    source: str
    revision: int = 1


@pytest.fixture
def asked():
    return []


@pytest.fixture
def parsed(asked):
    def parse(version):
        asked.append(version)
        if not version.source:
            raise FormatError("card", "card: empty")
        return [version.source]

    return Parsed(parse, most=3, most_characters=10)


def test_a_text_is_parsed_once_and_gives_the_same_object(parsed, asked):
    assert parsed(Version("abc")) is parsed(Version("abc"))
    assert len(asked) == 1


def test_versions_of_one_text_are_kept_only_while_their_texts_have_room(parsed, asked):
    for revision in range(5):
        parsed(Version("abcd", revision))
    parsed(Version("abcd", 4))
    parsed(Version("abcd", 3))
    assert len(asked) == 5
    parsed(Version("abcd", 2))
    assert len(asked) == 6


def test_of_short_texts_so_many_are_kept_and_what_is_used_stays(parsed, asked):
    for name in "abc":
        parsed(Version(name))
    parsed(Version("a"))
    parsed(Version("d"))
    parsed(Version("a"))
    assert [version.source for version in asked] == ["a", "b", "c", "d"]


def test_a_text_that_is_longer_than_the_room_is_kept_until_the_next_one(parsed, asked):
    parsed(Version("a" * 100))
    parsed(Version("a" * 100))
    parsed(Version("b"))
    parsed(Version("b"))
    assert len(asked) == 2


def test_what_cannot_be_parsed_is_an_error_each_time(parsed, asked):
    for _ in range(2):
        with pytest.raises(FormatError):
            parsed(Version(""))
    assert len(asked) == 2
