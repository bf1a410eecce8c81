"""Tests of leaks: protected content is found in another text."""

import codecs
import time

import pytest

from evennia_ai.engine.knowledge.restricted.leaks import find_leak, protect_texts

VAULT = (
    "The vault under the harbour opens only when the tide stands at its lowest mark.\n"
    "Turn the wheel forty-seven times, then 1189 steps north. The watchword is Mandragora."
)
SECRET = protect_texts([VAULT], titles=["The Drowned Vault", "Ferry"], terms=["Mandragora"])

EIGHT = "the harbour opens only when the tide stands"


@pytest.mark.parametrize(
    "text",
    [
        EIGHT,
        EIGHT.upper(),
        "He said: the harbour -- opens, only (when) the tide... stands!",
        "the\nharbour\topens only when  the tide stands",
        "the har\u00adbour opens on\u200bly when the tide stands",
        "th\u0435 h\u0430rb\u043eur \u043ep\u0435ns only when the tide stands",
        "t\u0301he ha\u0308rbour opens only when the tide stands",
        "\uff54\uff48\uff45 harbour opens only when the tide stands",
    ],
)
def test_eight_protected_words_in_a_row_leak_in_any_spelling(text):
    assert find_leak(text, SECRET) == "words"


@pytest.mark.parametrize(
    "text",
    [
        "theharbouropensonlywhenthetidestandsatitslowestmark",
        "t h e h a r b o u r o p e n s o n l y w h e n t h e t i d e s t a n d s a t i t s l o w",
        "the-harb our-op ens-on lywhen-th etide-stan dsat-its lowest-m ark",
        "kram tsewol sti ta sdnats edit eht nehw ylno snepo ruobrah eht rednu tluav eht",
    ],
)
def test_joined_split_and_reversed_protected_words_leak(text):
    assert find_leak(text, SECRET) in ("words", "letters")


def test_protected_words_with_shifted_letters_leak():
    moved = codecs.encode(VAULT, "rot13")
    assert find_leak(f"Read: {moved}", SECRET) in ("words", "letters")


@pytest.mark.parametrize("text", ["The watchword is Mandragora!", "it is: the watchword is m."])
def test_whole_short_protected_sentence_leaks(text):
    assert find_leak(text, protect_texts(["The watchword is Mandragora."])) == (
        "words" if "Mandragora" in text else ""
    )


@pytest.mark.parametrize(
    "text",
    [
        "47",
        "forty-seven",
        "Forty Seven times",
        "four seven turns",
        "4-7",
        "f o r t y  s e v e n",
        "f-o-r-t-y-s-e-v-e-n",
        "foursevenoneoneeightnine",
        "some 1,189 paces",
        "1 1 8 9",
        "one one eight nine",
        "eleven eighty-nine",
        "one thousand one hundred and eighty-nine",
        "\u0661\u0661\u0668\u0669",
        "\u2781\u2781\u2787\u2788 or \uff11\uff11\uff18\uff19",
        "order00118900",
    ],
)
def test_protected_number_leaks_in_digits_and_words(text):
    assert find_leak(text, SECRET) == "number"


@pytest.mark.parametrize(
    "text", ["the drowned vault", "THE  DROWNED\u2014VAULT", "thedrownedvault"]
)
def test_protected_page_title_leaks(text):
    assert find_leak(text, SECRET) == "title"


def test_leak_check_allows_a_title_that_consists_of_public_words():
    told = protect_texts([VAULT], titles=["Ferry"], public="The ferry and its crew")
    assert find_leak("Take the ferry.", SECRET) == "title"
    assert find_leak("Take the ferry.", told) == ""


@pytest.mark.parametrize(
    "text",
    [
        "Mandragora",
        "M.a.n.d.r.a.g.o.r.a",
        "say MANDRAGORAS",
        "man dragora",
        "arogardnam",
        "Znaqentben",
        "P d q g u d j r u d",
        "\U0001d4dc\U0001d4ea\U0001d4f7\U0001d4ed\U0001d4fb\U0001d4ea\U0001d4f0\U0001d4f8\U0001d4fb\U0001d4ea",
        "\U0001f1f2\U0001f1e6\U0001f1f3\U0001f1e9\U0001f1f7\U0001f1e6\U0001f1ec\U0001f1f4\U0001f1f7\U0001f1e6",
    ],
)
def test_protected_term_leaks_in_letters_of_any_alphabet(text):
    assert find_leak(text, SECRET) == "term"


def test_long_run_of_unreadable_characters_counts_as_a_leak():
    assert find_leak("b7Yq" * 12, SECRET) == "opaque"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Come back when the water is low; whoever hurries there drowns.",
        "The tide matters more than the wheel. I would wait, and bring a lamp.",
        "There are three who keep watch.",
        "The harbour opens only when I say so.",
    ],
)
def test_leak_check_allows_a_paraphrase_of_a_protected_passage(text):
    assert find_leak(text, SECRET) == ""


def test_no_leak_without_protected_content():
    assert find_leak(VAULT, protect_texts([])) == ""


def test_protected_text_without_blanks_is_compared_by_character():
    secret = protect_texts(["\u79d8\u5bc6\u306e\u5408\u8a00\u8449\u306f\u6708\u5149\u3067\u3059"])
    assert find_leak("\u5408\u8a00\u8449\u306f\u6708\u5149\u3067", secret) == ""
    assert find_leak("\u79d8\u5bc6\u306e\u5408\u8a00\u8449\u306f\u6708\u5149", secret) == "words"


@pytest.mark.long
def test_leak_check_takes_linear_time():
    def seconds(size: int) -> float:
        text = "lorem ipsum " * size
        began = time.process_time()
        find_leak(text + " 1 2 three", protect_texts([text], titles=["x y"] * 50))
        return time.process_time() - began

    seconds(100)
    assert seconds(8_000) < 40 * max(seconds(1_000), 0.005)
