"""Keys that are regular expressions: which texts are some, what they find, what they refuse."""

import pytest

from evennia_ai.lorebook.patterns import Pattern, Refused, is_delimited, read_pattern


def found(written: str, text: str):
    """The span of the pattern's first match, None where there is none."""
    pattern = read_pattern(written, trusted=False)
    assert isinstance(pattern, Pattern), pattern
    return pattern.search(text, text.lower())


@pytest.mark.parametrize(
    ("written", "answer"),
    [
        ("/dragon/", True),
        ("/dragon/gi", True),
        ("/a\\/b/", True),
        ("/ /", True),
        ("/line\nline/s", True),
        ("/[/", True),  # its form is right; what is inside is read later
        ("/ember/ash/i", False),
        ("/[/]/", False),  # a slash in a class wants a backslash too
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
def test_a_pattern_between_slashes_is_known_by_its_form(written, answer):
    assert is_delimited(written) is answer


def test_a_bare_pattern_is_the_whole_text_without_flags():
    assert found("dra.on", "The dragon") == (4, 10)
    assert found("dra.on", "The DRAGON") is None
    assert found("^/a/x$", "/a/x") == (0, 4)


@pytest.mark.parametrize("written", ["/[/", "/(/", "/a)/", "/*/", "/a/gg", "/a/uv", "", "(?<n>"])
def test_what_javascript_refuses_is_broken(written):
    refused = read_pattern(written, trusted=True)
    assert isinstance(refused, Refused)
    assert refused.is_broken
    assert refused.reason.startswith("is no regular expression: ")
