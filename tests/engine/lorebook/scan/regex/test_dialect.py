"""Tests that regular expressions match like in JavaScript. The expected results are from V8."""

import pytest

from evennia_ai.engine.lorebook.scan.regex.pattern import Pattern, Refused, read_pattern

# Each row has a pattern, a text, and the span of the first match in code points.
FOUND = [
    # \d, \w and \b know only ASCII; \s is that of the standard
    (r"/\d/", "\u0663 3", (2, 3)),
    (r"/\w/i", "\u00e9\u017f\u212aa", (3, 4)),
    (r"/\bcaf\b/", "caf\u00e9", (0, 3)),
    (r"/\B/", "", (0, 0)),
    (r"/\Bart/", "smart art", (2, 5)),
    (r"/\s/", "a\u0085\x1c\ufeff", (3, 4)),
    (r"/\S/", "\u00a0\u3000x", (2, 3)),
    (r"/[\D]/", "12a", (2, 3)),
    (r"/\W/i", "as_\u017f", (3, 4)),
    # line breaks
    (r"/a.b/", "a\nb a\u2028b a\rb a\x85b", (12, 15)),
    (r"/a.b/s", "a\nb", (0, 3)),
    (r"/a$/", "a\n", None),
    (r"/^b/", "a\nb", None),
    (r"/^b$/m", "a\nb\u2029c", (2, 3)),
    (r"/^c/m", "a\u2028c", (2, 3)),
    (r"/a[^]b/", "a\nb", (0, 3)),
    (r"/[]/", "a", None),
    (r"/x*[]|b/", "ab", (1, 2)),
    # letter case
    (r"/k/i", "\u212aK", (1, 2)),
    (r"/k/iu", "\u212aK", (0, 1)),
    (r"/s/i", "\u017fS", (1, 2)),
    (r"/[^x]s/iu", "a\u017f", (0, 2)),
    (r"/i/i", "\u0130\u0131I", (2, 3)),
    (r"/\u00b5/i", "\u03bc", (0, 1)),
    (r"/\u03c3/i", "\u03c2", (0, 1)),
    (r"/\u00df/i", "\u1e9e", None),
    (r"/\u00df/iu", "\u1e9e", (0, 1)),
    (r"/[a-z]+/i", "ABC", (0, 3)),
    (r"/[^a-z]/i", "ABC1", (3, 4)),
    (r"/[\u00e0-\u00ef]/i", "\u00c9", (0, 1)),
    (r"/\w/iu", "\u017f", (0, 1)),
    (r"/\W/iu", "\u212a", None),
    (r"/(?i:dra)gon/", "DRAgon DRAGON", (0, 6)),
    # groups and backreferences
    (r"/(?<one>a)(b)\k<one>\2/", "abab", (0, 4)),
    (r"/(a)|b\1/", "cb", (1, 2)),
    (r"/\1(a)/", "a", (0, 1)),
    (r"/(a)\1/i", "aA", (0, 2)),
    (r"/(a\1)b/", "ab", (0, 2)),
    (r"/(?!(a))b\1/", "b", (0, 1)),
    (r"/\k<one>/", "k<one>", (0, 6)),
    (r"/(?:a|ab)c/", "abc", (0, 3)),
    (r"/(?=ab)a/", "aab", (1, 2)),
    (r"/(?<=a)b/", "bab", (2, 3)),
    (r"/(?<!a)b/", "abb", (2, 3)),
    (r"/(?=a)*b/", "b", (0, 1)),
    # escapes
    (r"/\x41\u0042\cJ\0/", "AB\n\0", (0, 4)),
    (r"/\u{1f600}/u", "a\U0001f600", (1, 2)),
    (r"/\u{3}/", "uuu", (0, 3)),
    (r"/\ud83d\ude00/u", "\U0001f600", (0, 1)),
    (r"/\x4/", "x4", (0, 2)),
    (r"/\c1/", "\\c1", (0, 3)),
    (r"/[\c1]/", "\x11", (0, 1)),
    (r"/[\b]/", "\b", (0, 1)),
    (r"/\101\8/", "A8", (0, 2)),
    (r"/\a\e\-\//", "ae-/", (0, 4)),
    (r"/\\\//", "a\\/", (1, 3)),
    (r"/\p{Lu}/", "p{Lu}", (0, 5)),
    (r"/\p{Lu}rake/u", "drake Drake", (6, 11)),
    (r"/\P{L}/u", "\u00e9a1", (2, 3)),
    (r"/\p{gc=Nd}\p{ASCII}/u", "\u0663a", (0, 2)),
    (r"/\p{Lu}/iu", "a", (0, 1)),
    (r"/[^\p{Lu}\s]/u", "A b", (2, 3)),
    # brackets and counts that mean themselves
    (r"/a{,2}/", "aa{,2}", (1, 6)),
    (r"/x{/", "x{", (0, 2)),
    (r"/]}/", "]}", (0, 2)),
    (r"/[\w-.]/", "-", (0, 1)),
    (r"/[a-]/", "-", (0, 1)),
    (r"/a{2,3}?/", "aaa", (0, 2)),
    (r"/a{02}/", "aa", (0, 2)),
    # without `u`, a character beyond U+FFFF is two units
    (r"/^.$/", "\U0001f600", None),
    (r"/^.$/u", "\U0001f600", (0, 1)),
    (r"/^..$/", "\U0001f600", (0, 1)),
    ("/[\U0001f600\U0001f601]/", "a\U0001f602", (1, 2)),
    ("/[\U0001f600\U0001f601]/u", "a\U0001f602\U0001f601", (2, 3)),
    ("/\U0001f600b/", "a\U0001f600b", (1, 3)),
    ("/[^a]b/", "a\U0001f600b", (1, 3)),
    # flags
    (r"/b/g", "ab", (1, 2)),
    (r"/b/y", "ab", None),
    (r"/a|b/dy", "ba", (0, 1)),
    (r"/[a-c]/v", "xc", (1, 2)),
]
BROKEN = [
    "/(/", "/)/", "/a**/", "/+/", "/{1}/", "/a{2,1}/", "/[b-a]/", "/(?<n>a)(?<n>b)/", "/(?<1>a)/",
    r"/(?<n>a)\k<m>/", r"/(?<n>a)\k/", "/(?z:a)/", "/(?P<n>a)/", "/(?#note)/", "/(?<=a)*/", "/^*/",
    r"/\1/u", r"/\a/u", "/\\\n/u", "/{/u", "/]/u", r"/\u{110000}/u", r"/\p{Nope}/u", r"/\p{lu}/u",
    r"/[\w-a]/u", "/(?=a)*/u", r"/\c/u", "/\\", "/a\\/", "/a/ii",
]  # fmt: skip


@pytest.mark.parametrize(("written", "text", "span"), FOUND)
def test_regex_key_matches_like_javascript(written, text, span):
    pattern = read_pattern(written)
    assert isinstance(pattern, Pattern), pattern
    assert pattern.search(text) == span


@pytest.mark.parametrize("written", BROKEN)
def test_regex_that_javascript_refuses_is_refused(written):
    refused = read_pattern(written)
    assert isinstance(refused, Refused), refused
    assert refused.is_broken
    assert refused.reason.startswith("is not a regular expression: ")
    assert "\n" not in refused.reason


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("/drag(on/", "a ( that is never closed at character 8"),
        ("/drag(?<1>on)/", "a group with an invalid name at character 8"),
        ("/drag{2}{3}/", "a { that repeats nothing at character 8"),
    ],
)
def test_regex_error_names_the_position_of_the_character(written, why):
    assert read_pattern(written) == Refused(
        reason=f"is not a regular expression: {why}", is_broken=True
    )


@pytest.mark.parametrize(
    ("written", "why"),
    [
        (r"/[\p{L}--[a-z]]/v", "set notation"),
        (r"/[a&&b]/v", "set notation"),
        (r"/[\q{abc}]/v", "flag v"),
        (r"/(?<=(a))\1/", "lookbehind"),
        (r"/(?:(a)|b)*\1/", "repetition may clear"),
        (r"/\p{Uppercase}/iu", "with the flag i"),
        ("/a{1001}/", "a repetition count above 1,000"),
        ("/(?:a{50}){50}/", "nested repetitions"),
        ("/" + "(" * 50 + "a" + ")" * 50 + "/", "more than 40 nested groups"),
        ("/" + "a" * 1001 + "/", "longer than 1,000"),
        ("/" + r"\p{Lu}" * 100 + "/iu", "ranges"),
    ],
)
def test_regex_error_says_that_a_feature_is_unsupported_when_javascript_knows_it(written, why):
    refused = read_pattern(written)
    assert isinstance(refused, Refused), refused
    assert why in refused.reason
    assert not refused.is_broken


def test_regex_syntax_error_is_reported_before_an_unsupported_feature():
    refused = read_pattern("/a{1001}(/")
    assert isinstance(refused, Refused)
    assert refused.is_broken


def test_unicode_script_in_a_regex_is_found_by_name():
    pattern = read_pattern(r"/\p{Script=Greek}\p{sc=Han}/u")
    assert isinstance(pattern, Pattern)
    assert pattern.search("a\u03b1\u6f22") == (1, 3)
