"""Leaks: what of a protected text is found again in another one."""

import codecs
import time

import pytest

from evennia_ai.engine.knowledge.restricted.leaks import leak, protected

VAULT = (
    "The vault under the harbour opens only when the tide stands at its lowest mark.\n"
    "Turn the wheel forty-seven times, then 1189 steps north. The watchword is Mandragora."
)
SECRET = protected([VAULT], titles=["The Drowned Vault", "Ferry"], terms=["Mandragora"])

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
def test_eight_words_in_a_row_are_found_however_they_are_written(text):
    assert leak(text, SECRET) == "words"


@pytest.mark.parametrize(
    "text",
    [
        "theharbouropensonlywhenthetidestandsatitslowestmark",
        "t h e h a r b o u r o p e n s o n l y w h e n t h e t i d e s t a n d s a t i t s l o w",
        "the-harb our-op ens-on lywhen-th etide-stan dsat-its lowest-m ark",
        "kram tsewol sti ta sdnats edit eht nehw ylno snepo ruobrah eht rednu tluav eht",
    ],
)
def test_words_that_are_joined_split_or_turned_round_are_found(text):
    assert leak(text, SECRET) in ("words", "letters")


def test_words_whose_letters_are_moved_along_the_alphabet_are_found():
    moved = codecs.encode(VAULT, "rot13")
    assert leak(f"Read: {moved}", SECRET) in ("words", "letters")


@pytest.mark.parametrize("text", ["The watchword is Mandragora!", "it is: the watchword is m."])
def test_a_whole_short_sentence_is_found_and_no_other_one(text):
    assert leak(text, protected(["The watchword is Mandragora."])) == (
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
def test_a_number_is_found_in_digits_and_in_words(text):
    assert leak(text, SECRET) == "number"


@pytest.mark.parametrize(
    "text", ["the drowned vault", "THE  DROWNED\u2014VAULT", "thedrownedvault"]
)
def test_a_title_of_a_page_is_found(text):
    assert leak(text, SECRET) == "title"


def test_a_title_that_is_told_anyway_is_no_leak():
    told = protected([VAULT], titles=["Ferry"], told="The ferry and its crew")
    assert leak("Take the ferry.", SECRET) == "title"
    assert leak("Take the ferry.", told) == ""


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
def test_a_term_is_found_in_whatever_letters(text):
    assert leak(text, SECRET) == "term"


def test_a_long_piece_that_nobody_can_read_is_a_leak():
    assert leak("b7Yq" * 12, SECRET) == "opaque"


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
def test_what_says_it_in_other_words_is_no_leak(text):
    assert leak(text, SECRET) == ""


def test_nothing_protected_means_no_leak():
    assert leak(VAULT, protected([])) == ""


def test_text_without_blanks_between_its_words_is_compared_sign_by_sign():
    secret = protected(["\u79d8\u5bc6\u306e\u5408\u8a00\u8449\u306f\u6708\u5149\u3067\u3059"])
    assert leak("\u5408\u8a00\u8449\u306f\u6708\u5149\u3067", secret) == ""
    assert leak("\u79d8\u5bc6\u306e\u5408\u8a00\u8449\u306f\u6708\u5149", secret) == "words"


def test_it_takes_time_in_proportion_to_the_length():
    def seconds(size: int) -> float:
        text = "lorem ipsum " * size
        began = time.process_time()
        leak(text + " 1 2 three", protected([text], titles=["x y"] * 50))
        return time.process_time() - began

    seconds(100)
    assert seconds(8_000) < 40 * max(seconds(1_000), 0.005)
