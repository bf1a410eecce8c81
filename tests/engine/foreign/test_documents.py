"""Foreign documents: refused YAML syntax, and files that never end."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign import documents
from evennia_ai.engine.foreign.documents import read_document, read_yaml
from tests.effort import little_work


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: &a [x]\nb: *a", "alias '*a' is not allowed: write it out"),
        ("a: 1" + ":5" * 20_000 + ".5", "too large"),
        ("a: 1" + ":5" * 20_000, "a number is too large"),
        ("a: " + "9" * 5000, "is not YAML: Exceeds the limit"),
        ("a: .nan", "a number is not finite"),
        ("a: !!python/object/apply:os.getcwd []", "could not determine a constructor"),
        ("a: !!binary AAAA", "a value of type bytes is not a JSON value"),
        ("? [a]\n: b", "found unhashable key"),
        ("1: b", "a member's name is not text"),
        ("a: 1\n---\na: 1", "found another document"),
        ("[" * 3000, "is nested too deeply"),
    ],
)
def test_yaml_outside_the_safe_subset_is_refused(text: str, problem: str) -> None:
    with pytest.raises(FormatError) as caught:
        read_yaml(text, kind="scenario", where="f.yaml")
    assert problem in caught.value.message


@pytest.mark.long
def test_duplicate_yaml_key_is_found_in_linear_time() -> None:
    text = "".join(f"a{n}: 1\n" for n in range(5000)) + "a4999: 2"
    with little_work(3):
        with pytest.raises(FormatError, match="key 'a4999' occurs twice in the block of line 1"):
            read_yaml(text, kind="scenario", where="f.yaml")


def test_reading_an_endless_device_as_a_document_stops_at_the_size_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(documents, "MAX_BYTES", 1000)
    with pytest.raises(FormatError, match="/dev/zero: the file is larger than 1000 bytes"):
        read_document(Path("/dev/zero"), kind="scenario")


_PIECES = st.sampled_from(
    [
        *"ab01.-:?,[]{}#&*!|>'\"%@ \n\t",
        *(": ", "- ", "\n  ", "\n- ", "? ", "a: ", "b: |-\n  ", "---\n", "...\n", "<<: ", "!!str "),
        *(
            "null",
            "true",
            "no",
            "0x1f",
            "1e3",
            "2026-11-30",
            "1:30",
            "[]",
            "{}",
            "\ufeff",
            "\u2028",
        ),
    ]
)


@given(st.lists(_PIECES, max_size=16).map("".join))
def test_libyaml_reads_only_what_the_strict_parser_reads_equally(text: str) -> None:
    found = documents._load_plain_yaml(text)
    if found is not documents._NOT_PLAIN:
        strict = yaml.load(text, Loader=documents._strict_loader())
        assert repr(found) == repr(strict)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1\nb:\n- x\n- []\n- {}\n", {"a": 1, "b": ["x", [], {}]}),
        ("a: |-\n  one\n\n  two\n", {"a": "one\n\ntwo"}),
        ("a: no\nb: true\nc: 2026-11-30\n", {"a": "no", "b": True, "c": "2026-11-30"}),
    ],
)
def test_plain_document_is_read_by_libyaml(text: str, value: object) -> None:
    assert documents._load_plain_yaml(text) == read_yaml(text, kind="x", where="x") == value


@pytest.mark.parametrize(
    "text",
    ["a: !!str x", "- &a x", "a: 1\na: 2", "[x]", "a: [", "- " * 70, "[" * 90_000, "\ud800", ""],
)
def test_other_document_is_left_to_the_strict_parser(text: str) -> None:
    assert documents._load_plain_yaml(text) is documents._NOT_PLAIN


@pytest.mark.parametrize(
    ("path", "line"),
    [((), 1), (("a",), 1), (("b", 1, "c"), 4), (("b", 7), 3), (("b", 1, "x"), 4), (("z",), 1)],
)
def test_line_of_a_value_is_found_by_its_path(path: tuple[str | int, ...], line: int) -> None:
    text = "a: 1\nb:\n- 2\n- c: 3\n"
    assert documents.line_in_yaml(text, path) == line


def test_text_of_several_lines_is_written_as_several_lines() -> None:
    values = {"a": "one\n  two\n", "b": " x\ny", "c": "\n", "d": "tab\there\n", "e": "x \ny"}
    written = documents.write_yaml(values)
    assert written.startswith("a: |\n  one\n    two\n")
    assert read_yaml(written, kind="x", where="x") == values
