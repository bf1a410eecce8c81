"""Tests that the leak check recognises each disguise, and that ordinary texts are no leak.

Issue 14, Medium 9.
"""

from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from evennia_ai.engine.knowledge.pages.files import read_folder
from evennia_ai.engine.knowledge.restricted.leaks import find_all_leaks, find_leak, protect_texts
from evennia_ai.engine.knowledge.restricted.readings import MOST_READINGS, decode_readings
from tests.engine.knowledge.restricted.disguises import DISGUISES, PASSES, PIECES
from tests.properties import up_to

PASSAGES = (
    "The smugglers land their brandy under the chapel when the new moon hides the harbour",
    "Whoever wants the key asks old Brida for the blue lantern behind the counter",
    "The keeper of the bell buried his brother beneath the third stair of the lighthouse",
    "A sack of salt hides every letter that the harbour master never sent to the queen",
)
TITLES = ("The Drowned Vault", "Mandragora")
WATCHWORD = "Mandragora"
SECRET = protect_texts(PASSAGES, titles=TITLES, terms=["Mandragora", "quicksilver"])

ORDINARY = (
    "Aye, the ferry crosses twice a day, when the water stands still.",
    "I would wait for slack water, and I would take a lamp; nobody sees you in the dark.",
    "Ask the keeper of the lighthouse. He never sleeps, and he likes company.",
    "Be friendly to them, and come after dark. They trust nobody who hurries.",
    "You want salt? There is a sack behind the counter, at two coppers.",
    "The harbour is quiet tonight. The chapel bell rang, and the moon is up.",
    "I never sent that letter, whatever the harbour master says of me!",
    "Well, well... a well-dressed stranger with too many questions!!! Soooo sorry :-)",
    "It costs 2 coppers, or 4 with a dog; the last boat goes at 19:30 on the 5th.",
    "No, no, no. See? I do not see why I should tell you, and neither does Brida.",
    "http://localhost:4001/webclient is no place I know; what is a 'webclient'?",
    "Evil star, live rats: say it backwards, noon or not, madam.",
    "Ich verstehe dich nicht, mon ami; ¿qué quieres? Пойдём домой.",
    "(She turns the key, 1st left then right, and the door is open at last.)",
    "The queen's brother? Buried at sea, they say. Every stair in that tower creaks.",
    "*wipes the counter* Lantern oil is dear; the blue one is not for sale.",
    "Bananas, coffee, kiln-dried wood, balloons, committee, bookkeeper: I know doubled letters.",
    "Mind ARE, TOLL, NET, TEN, SIX and the words WON, EVEN and DRAW.",
)


@pytest.mark.req("S0-40")
@pytest.mark.parametrize("name", DISGUISES)
def test_protected_passage_is_found_in_each_disguise(name):
    found = [find_leak(DISGUISES[name](passage), SECRET) for passage in PASSAGES]
    assert "" not in found


@pytest.mark.parametrize("name", DISGUISES)
def test_disguised_protected_passage_is_found_inside_an_answer(name):
    told = f"I will tell you. {DISGUISES[name](PASSAGES[0])} That is all I know of it, friend."
    assert find_leak(told, SECRET)


@pytest.mark.parametrize("title", TITLES)
@pytest.mark.parametrize(
    "name", ["words reversed one by one", "reversed", "in small capitals", "in flags", "in rot13",
             "each letter doubled", "in leetspeak", "in base64", "letters with dots", "in Braille"],
)  # fmt: skip
def test_protected_title_is_found_in_disguise(name, title):
    told = f"Ask for {DISGUISES[name](title)} and you will see."
    assert find_leak(told, protect_texts([], titles=TITLES)) in ("title", "opaque")


@pytest.mark.parametrize(
    "told",
    [
        "ecnepenin a kcas",
        "ɴɪɴᴇᴘᴇɴᴄᴇ",
        "avarcrapr",
        "ninepence, you see, a, well, sack",
        "n-i-n-e p-e-n-c-e a sack",
        "bmluZXBlbmNlIGEgc2Fjaw==",
        "6e696e6570656e6365",
    ],
)
def test_protected_price_is_found_in_disguise(told):
    assert find_leak(told, protect_texts(["They pay ninepence a sack."])) == "number"


@pytest.mark.parametrize(
    "told",
    [
        "Men are never doing right alone, good old reader: always.",
        "m1a2n3d4r5a6g7o8r9a",
        "Mxaxnxdxrxaxgxoxrxax",
    ],
)
def test_protected_term_is_found_in_an_acrostic_and_between_letters(told):
    assert find_leak(told, protect_texts([], terms=[WATCHWORD])) == "term"


@pytest.mark.parametrize("line", ORDINARY)
def test_leak_check_allows_ordinary_sentences(line):
    assert find_leak(line, SECRET) == ""


def test_leak_check_allows_several_ordinary_texts_together():
    for place, line in enumerate(ORDINARY):
        assert find_leak(line, SECRET, before="\n".join(ORDINARY[:place])) == ""


def test_ordinary_texts_leak_no_demo_page():
    folder = Path(__file__).parents[4] / "world" / "demo" / "knowledge"
    bases = {one.name: read_folder(one) for one in folder.iterdir() if one.is_dir()}
    assert len(bases) > 1
    told = protect_texts([page.body for base in bases.values() for page in base.pages])
    for line in ORDINARY:
        assert find_leak(line, told) in ("", "number")


@pytest.mark.req("S0-40")
@pytest.mark.parametrize("name", PIECES)
def test_secret_spread_over_several_answers_is_found(name):
    answers = PIECES[name](PASSAGES[0])
    assert len(answers) > 2
    found = [
        find_leak(one, SECRET, before="\n".join(answers[:place]))
        for place, one in enumerate(answers)
    ]
    assert any(found)


def test_leak_in_an_earlier_answer_does_not_count_for_the_next_answer():
    assert find_leak("Wait for the tide.", SECRET, before=PASSAGES[0]) == ""
    assert find_leak(PASSAGES[0], SECRET, before=PASSAGES[0]) == "words"


@pytest.mark.parametrize("name", PASSES)
def test_leak_check_misses_the_disguises_documented_as_missed(name):
    assert find_leak(PASSES[name](PASSAGES[0]), SECRET) == ""


WORDS = st.sampled_from(sorted({word for passage in PASSAGES for word in passage.split()}))
OTHERS = st.sampled_from(["river", "stone", "apple", "candle", "winter", "mirror", "garden"])


@settings(deadline=None, max_examples=up_to(150))
@given(
    words=st.lists(WORDS, min_size=16, max_size=24, unique=True),
    name=st.sampled_from(sorted(DISGUISES)),
)
def test_any_protected_passage_is_found_in_any_disguise(words, name):
    assume(sum(len(word) > 4 for word in words) > 5)
    text = " ".join(words)
    assert find_leak(DISGUISES[name](text), protect_texts([text]))


@settings(deadline=None, max_examples=up_to(150))
@given(words=st.lists(OTHERS, max_size=40))
def test_leak_check_allows_a_text_without_protected_words(words):
    assert find_leak(" ".join(words), SECRET) == ""


@settings(deadline=None, max_examples=up_to(100))
@given(text=st.text(max_size=200))
def test_leak_check_finds_nothing_in_any_text_when_no_secret_is_protected(text):
    assert [find for find in find_all_leaks(text, protect_texts([])) if find[0] != "opaque"] == []


@pytest.mark.parametrize(
    "text",
    ["A1b=" * 5000, "41 " * 5000, "a4 " * 5000, "01000001 " * 2000, "aa" * 9000, "\ufdfa" * 3000],
)
def test_hostile_texts_are_decoded_to_few_short_readings(text):
    told = list(decode_readings(text))
    assert len(told) <= MOST_READINGS
    assert sum(map(len, told)) <= 18 * MOST_READINGS * len(text)
