"""Foreign documents: refused YAML syntax, and files that never end."""

from pathlib import Path

import pytest

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
