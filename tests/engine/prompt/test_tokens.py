"""Token counters: they accept any text, and their estimates are close to exact counts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.prompt.messages import said
from evennia_ai.engine.prompt.tokens import (
    ESTIMATE,
    LONG_TEXT,
    TokenCounter,
    estimate_tokens,
    ratio_counter,
)

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()))


@given(ANY_TEXT)
def test_token_counting_never_raises_and_is_never_negative(text: str) -> None:
    assert ESTIMATE.count(text) >= 0
    assert ratio_counter(3.35).count(text) >= 0


@pytest.mark.parametrize("text", ["<|endoftext|>", "<|im_start|>system", "\ud800", "\x00\x1b[31m"])
def test_special_tokens_and_invalid_unicode_are_counted_as_text(text: str) -> None:
    assert ESTIMATE.of_message(text, name=text) > ESTIMATE.per_message


def test_empty_text_has_no_tokens() -> None:
    assert estimate_tokens("") == 0


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("The ferry crosses at dawn, if the fog lets it.", 9, 15),
        ("渡し船は夜明けに出ます。", 8, 16),
        ("Паром уходит на рассвете.", 5, 12),
    ],
)
def test_token_estimate_is_near_the_exact_count(text: str, low: int, high: int) -> None:
    assert low <= estimate_tokens(text) <= high


def test_ratio_counter_counts_utf_8_bytes_rounded_up() -> None:
    assert [ratio_counter(2).count(text) for text in ("", "a", "ab", "abc", "🙂")] == [
        *(0, 1, 1, 2, 2)
    ]
    assert ratio_counter(3.35).name == "bytes/3.35"


def test_message_tokens_include_text_name_and_overhead() -> None:
    counter = ratio_counter(1)
    assert said("user", "four").tokens(counter) == 8
    assert said("user", "four", name="Anna").tokens(counter) == 8 + 4 + 1


def test_token_counters_with_different_names_cache_separately() -> None:
    message = said("user", "12345678")
    assert message.tokens(ratio_counter(1)) == 12
    assert message.tokens(ratio_counter(2)) == 8


@pytest.mark.req("S2-15")
def test_tokens_of_a_repeated_text_are_counted_once_unless_long() -> None:
    counted: list[int] = []

    def count(text: str) -> int:
        counted.append(len(text))
        return len(text)

    counter = TokenCounter("counted", "1", count)
    counted.clear()
    for text in ("short", "l" * (LONG_TEXT + 1)):
        assert counter.recall(text) == counter.recall(text) == len(text)
    assert counted == [5, LONG_TEXT + 1, LONG_TEXT + 1]
