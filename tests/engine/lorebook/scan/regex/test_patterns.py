"""Tests of keys that are regular expressions: their form, their required text, their limits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.lorebook.scan.regex.pattern import (
    MOST_SEARCHED,
    STEP_LIMITS,
    TEXT_STEPS,
    Pattern,
    Refused,
    StepsExceededError,
    has_slashes,
    read_pattern,
    search_patterns,
)
from tests.effort import little_work


def a_pattern(written: str) -> Pattern:
    pattern = read_pattern(written)
    assert isinstance(pattern, Pattern), pattern
    return pattern


def found(pattern: Pattern, text: str):
    """Return the span of the first match; None if there is none."""
    return search_patterns(text, [pattern]).places.get(pattern)


@pytest.mark.parametrize(
    ("written", "answer"),
    [
        ("/dragon/", True),
        ("/dragon/gi", True),
        ("/a\\/b/", True),
        ("/ /", True),
        ("/line\nline/s", True),
        ("/[/", True),  # only the form is checked here, not the body
        ("/ember/ash/i", False),
        ("/[/]/", False),  # a slash in a class must be escaped, too
        ("//", False),
        ("///", False),
        ("/", False),
        ("", False),
        ("dragon", False),
        ("/dragon", False),
        ("/dragon/x", False),
        (" /dragon/", False),
        ("/dragon/\n", False),
    ],
)
def test_regex_key_is_recognised_by_its_slashes(written, answer):
    assert has_slashes(written) is answer


def test_regex_key_without_slashes_is_the_whole_text_without_flags():
    assert found(a_pattern("dra.on"), "The dragon") == (4, 10)
    assert found(a_pattern("dra.on"), "The DRAGON") is None
    assert found(a_pattern("^/a/x$"), "/a/x") == (0, 4)


def test_empty_regex_key_is_refused():
    refused = read_pattern("")
    assert refused == Refused(reason="is not a regular expression: it is empty", is_broken=True)


@pytest.mark.parametrize(
    ("written", "literal"),
    [
        ("/Dragon/", "dragon"),
        ("/\\bdragons?\\b/i", "dragon"),
        ("/[Dd]ra(go)n/", "dragon"),
        ("/(?:wyrm|drake)/", ""),
        ("/olden (?:wyrm|drake) king/", "olden "),
        ("/(?:smoke)+ and fire/", " and fire"),
        ("/(?=.*keeper)the/", "keeper"),
        ("/(?!keeper)the/", "the"),
        ("/ca?t/", "c"),
        ("/./", ""),
        ("/mist/i", "mist"),
        ("/mask/iu", "ma"),  # with `u`, an s also matches the long s
        ("/kern/iu", "kern"),  # the small letter of the Kelvin sign is k
        ("/οδοσ/i", "οδο"),  # the small sigma depends on the next letter
        ("/Œuvre/i", "œuvre"),
        ("/a😀b/", "a"),
    ],
)
def test_required_literal_of_a_regex_is_in_every_match(written, literal):
    assert a_pattern(written).literal == literal


def test_text_without_the_required_literal_of_a_regex_is_not_searched():
    pattern = a_pattern("/(x+x+)+yz/")
    assert pattern.literal == "yz"
    assert found(pattern, "x" * 5000) is None
    assert pattern.problem == ""


def test_regex_given_up_in_one_text_still_works_in_the_next():
    pattern = a_pattern("/(?:x+x+)+[yz]/")
    for _ in range(3):
        with pytest.raises(StepsExceededError):
            pattern.search("x" * 5000)
        assert found(pattern, "xxy") == (0, 3)
    assert pattern.problem == ""


def test_regex_searches_only_the_beginning_of_a_very_long_text():
    pattern = a_pattern("/keeper/")
    assert found(pattern, " " * (MOST_SEARCHED - 6) + "keeper") is not None
    assert found(pattern, " " * (MOST_SEARCHED - 5) + "keeper") is None


HOSTILE = [
    "/(a+)+$/",
    "/(?:a|aa)+$/",
    "/(.*)*x/",
    "/(\\w|\\w\\w)*$/",
    "/(x+x+)+y/",
    "/" + "(" * 35 + "a" + ")*" * 35 + "$/",
    "/" + "(" * 5000 + "/",
    "/" + "(?:" * 40 + "a" + "){2}" * 40 + "/",
    "/a{1000}b/",
    "/a{99999999999999999999}/",
    "/(?:(?:a{1000}){1000}){1000}/",
    "/(?:(?:(?:){1000}){1000}){1000}/",
    "/^(([a-z])+.)+[A-Z]([a-z])+$/",
    "/(?=(a+))a*b\\1/",
    "/(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)*b/",
    "/" + "a?" * 300 + "a" * 300 + "b/",
    "/\\w+\\s+\\w+\\s+\\w+\\s+x/",
    "/" + "[\\0-\\uffff]" * 80 + "/i",
    "/" + "\\p{L}" * 190 + "/iu",
    "/" + "a" * 1_000_000 + "/",
    "/(?<" + "n" * 900 + ">a)/",
    # Patterns that walk over many characters in one step.
    "/(?:(?=a*)a)*b/",
    "/(?:(?=(?:a?){300})a)*b/",
    "/(?:(?=a{0,1000})a)*b/",
    "/[^a]{1000}b/",
    "/.{1000}b/",
    "/(?:.{0,900})*b/",
    "/(?:(?=.*q)|a)*b/",
    "/(?:(?!.*q)a)*b/",
    "/(?:(?<=a{0,250}b)|a)*c/",
    "/(a*)(?:x|\\1b)/",
    "/(a+)+\\1\\1\\1b/",
    "/(?:(?=(a*))\\1)*b/",
    "/(?:a|\\p{Ll})*\\p{Lu}b/u",
    "/(?:" + "()\\1" * 200 + "a)*b/",
    "/" + "\\k<" * 300 + "/",
]
TEXTS = [
    "a" * 40,
    "a" * 10_000,
    "a" * 1_000_000,
    "ax" * 5000,
    " " * 20_000,
    "a😀\n=b\0\ud800" * 9000,
]


@pytest.mark.parametrize("written", HOSTILE, ids=lambda written: written[:20])
def test_hostile_regex_key_takes_bounded_time(written):
    # Each text is searched with at most 174,592 steps, and a step takes at most a microsecond.
    with little_work(len(TEXTS) * sum(STEP_LIMITS) / 1_000_000):
        pattern = read_pattern(written)
        if isinstance(pattern, Pattern):
            pattern.literal = ""
            for text in TEXTS:
                assert search_patterns(text, [pattern]).steps <= TEXT_STEPS


LETTERS = "abkKsſ1_ -^$.|()[]{}*+?,:=!<>\\/\n\r\0İΣς😀\ud800"
SEQUENCES = "(?: (?= (?! (?<= (?<n> \\d \\W \\b \\1 \\k<n> \\u0061 \\p{L} [^ {2,3} +?"
SIGNS = st.sampled_from([*LETTERS, *SEQUENCES.split(" ")])
WRITTEN = st.lists(SIGNS, max_size=14).map("".join)
TEXT = st.text(alphabet="abkKsSſ1_ -\n\r\0İıΣςß😀\ud800\u2028", max_size=12)


@given(body=WRITTEN, flags=st.text(alphabet="gimsuy", max_size=2), text=TEXT)
def test_any_regex_and_text_are_searched_without_an_exception(body, flags, text):
    for written in (body, f"/{body}/{flags}"):
        has_slashes(written)
        pattern = read_pattern(written)
        if isinstance(pattern, Pattern):
            span = found(pattern, text)
            assert span is None or 0 <= span[0] <= span[1] <= len(text)
        else:
            assert "\n" not in pattern.reason


@given(body=WRITTEN, flags=st.sampled_from(["", "i", "u", "iu"]), text=TEXT)
def test_required_literal_of_a_regex_never_hides_a_match(body, flags, text):
    pattern = read_pattern(f"/{body}/{flags}")
    if isinstance(pattern, Pattern):
        with_literal = found(pattern, text)
        pattern.literal = ""
        assert found(pattern, text) == with_literal
