"""Test that a key that a server sends back is masked in every form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.services.net.secrets import MASK, PIECE, KeyMask, SecretText
from tests.services.net.keys import FORMS, KEYS, LONG_KEY, pieces_of


@pytest.mark.parametrize(
    ("form", "key"),
    [
        (form, key)
        for form in FORMS
        for key in KEYS
        # Otherwise half of the key is shorter than a part that is masked.
        if form != "in halves" or len(key) >= 2 * PIECE + 4
    ],
)
def test_key_is_masked_in_every_form(form, key):
    written = FORMS[form](key)
    masked = KeyMask(key).mask_text(f"Listen: {written} is what you want.")
    assert MASK in masked
    assert masked.startswith("Listen: ")
    assert masked.endswith(" is what you want.")
    assert pieces_of(masked, written) == []


@pytest.mark.parametrize("form", FORMS)
def test_stream_fed_letter_by_letter_is_masked_alike(form):
    mask = KeyMask(LONG_KEY)
    text = f"Ask: {FORMS[form](LONG_KEY)}, or {FORMS[form](LONG_KEY)}; aye."
    stream = mask.stream()
    assert "".join(map(stream.feed, text)) + stream.finish() == mask.mask_text(text)


@given(
    parts=st.lists(
        st.one_of(
            st.sampled_from([LONG_KEY, LONG_KEY[::-1], LONG_KEY[:15], LONG_KEY[9:40]]),
            st.text(max_size=8),
            st.text(alphabet="sk-projQa9 .,", min_size=60, max_size=120),
        ),
        max_size=6,
    ),
    cuts=st.lists(st.integers(0, 600), max_size=8),
)
def test_stream_is_masked_like_the_whole_text_wherever_it_is_cut(parts, cuts):
    mask, text = KeyMask(LONG_KEY), "".join(parts)
    stream, places = mask.stream(), [0, *sorted(cuts), len(text)]
    heard = [stream.feed(text[a:b]) for a, b in zip(places, [*places[1:], len(text)], strict=True)]
    said = "".join(heard) + stream.finish()
    assert said == mask.mask_text(text)
    assert pieces_of(said, LONG_KEY) == []


@given(text=st.text(alphabet="sk-projQa9 .,", max_size=60))
def test_text_without_a_part_of_the_key_is_unchanged(text):
    if not pieces_of(text, LONG_KEY) and not pieces_of(text, LONG_KEY[::-1]):
        assert KeyMask(LONG_KEY).mask_text(text) == text


def test_text_that_cannot_be_the_key_is_released_at_once():
    stream = KeyMask(LONG_KEY).stream()
    assert stream.feed("The ferry is late. Wait!").startswith("The ferry is late. ")


@pytest.mark.parametrize("word", ["", "none", "x", "anything", "lm-studio", "not-needed"])
def test_placeholder_word_instead_of_a_key_is_not_masked(word):
    said = f"I need not {word}, not anything, none at all."
    assert KeyMask(word).mask_text(said) == said


def test_servers_explanation_has_no_key_of_any_length():
    assert SecretText("hush").mask_in("bad key hush") == "bad key ***"
