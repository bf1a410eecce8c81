"""Tests that a number in any form is recognised in any other form."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from evennia_ai.engine.knowledge.meta_prompt import safe_hint
from evennia_ai.engine.knowledge.restricted.leaks import find_leak, protect_texts

SMALL = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen"),
    *("eighteen", "nineteen"),
)
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}
ROMAN = (
    *((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L")),
    *((40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")),
)


def in_words(number: int) -> str:
    if number < 20:
        return SMALL[number]
    if number < 100:
        tens, ones = divmod(number, 10)
        return TENS[tens - 2] + (f"-{SMALL[ones]}" if ones else "")
    if number < 1000:
        hundreds, rest = divmod(number, 100)
        return f"{SMALL[hundreds]} hundred" + (f" and {in_words(rest)}" if rest else "")
    thousands, rest = divmod(number, 1000)
    return f"{in_words(thousands)} thousand" + (f" {in_words(rest)}" if rest else "")


def as_ordinal(number: int) -> str:
    *before, last = in_words(number).replace("-", " ").split()
    ordinal = f"{last[:-1]}ieth" if last.endswith("y") else ORDINALS.get(last, f"{last}th")
    return " ".join([*before, ordinal])


def in_roman(number: int) -> str:
    letters = ""
    for value, sign in ROMAN:
        times, number = divmod(number, value)
        letters += sign * times
    return letters


def glued(number: int) -> str:
    return in_words(number).replace(" and ", " ").replace("-", "").replace(" ", "")


FORMS = {
    "digits": str,
    "words": in_words,
    "an ordinal in words": as_ordinal,
    "an ordinal": lambda number: f"{number}th",
    "Roman": in_roman,
    "small Roman": lambda number: in_roman(number).lower(),
    "a glued ordinal": lambda number: as_ordinal(number).replace(" and ", "").replace(" ", ""),
    "digits and a unit": lambda number: f"{number}kg",
    "pence": lambda number: f"{number}d",
    "a word of money": lambda number: f"{glued(number)}pence",
    "a word of times": lambda number: f"{glued(number)}fold",
    "torn digits": lambda number: " ".join(str(number)),
    "torn words": lambda number: " ".join(glued(number)),
    "wide digits": lambda number: "".join(chr(ord(one) + 0xFEE0) for one in str(number)),
}
SELDOM = {40, 51, 54}
"""Numbers whose Roman numerals are also words or sizes: XL, LI, LIV."""
FORM = st.sampled_from(sorted(FORMS))


@pytest.mark.req("S0-40", "S0-46")
@given(number=st.integers(1, 3999), written=FORM, told=FORM)
def test_protected_number_in_any_form_leaks_in_any_other_form(number, written, told):
    secret = protect_texts([f"It was behind barrel {FORMS[written](number)}."])
    assert find_leak(f"I would look at the barrel {FORMS[told](number)}, friend.", secret)


@pytest.mark.req("S0-40", "S0-46")
@given(number=st.integers(3, 99), written=FORM, told=FORM)
def test_unambiguous_number_leaks_next_to_any_words(number, written, told):
    assume("Roman" not in written + told or (len(in_roman(number)) > 1 and number not in SELDOM))
    secret = protect_texts([f"The duty is {FORMS[written](number)} of them."])
    assert find_leak(f"They say {FORMS[told](number)}.", secret)


@given(numbers=st.lists(st.integers(2, 9), min_size=2, max_size=2, unique=True), forms=FORM)
def test_leak_check_allows_a_number_that_no_secret_contains(numbers, forms):
    protects, says = numbers
    secret = protect_texts([f"It was behind barrel {protects}."])
    assert find_leak(f"I would look at the barrel {FORMS[forms](says)}, friend.", secret) == ""


@pytest.mark.req("S0-24")
@given(number=st.integers(2, 3999), form=FORM.filter(lambda form: not form.startswith("torn")))
def test_hint_loses_numbers_in_any_form(number, form):
    page = f"It was behind barrel {number}."
    told = safe_hint(f"Ask for the barrel {FORMS[form](number)}.", texts=[page])
    assert find_leak(told, protect_texts([page])) == ""
    assert told.startswith("Ask for the barrel")


SECRET = protect_texts(
    [
        (
            "Behind the third barrel is a door; the duty is ninepence a sack. It comes out at the"
            " fourteenth of the steps. Chapter XXI has 1 map, and 5 men, 50 sacks, 100 oars, 1009"
            " nets know it. No one knows the first of them, and I said so once."
        )
    ]
)


@pytest.mark.req("S0-46")
@pytest.mark.parametrize(
    "text",
    [
        *("The duty is 9 pence", "the 14th step", "barrel 3", "step XIV", "XIV", "a ninth of it"),
        *("It is 9d.", "ninepenny salt", "threefold", "xxi", "chapter 21", "the twenty-first"),
        *("one map", "the first map", "five men", "the V men", "map I", "fifty", "a hundred"),
    ],
)
def test_number_in_a_protected_page_leaks(text):
    assert find_leak(text, SECRET) == "number"


@pytest.mark.req("S0-46")
@pytest.mark.parametrize(
    "text",
    [
        *("One should wait, and I would.", "No one would say.", "First of all, be patient."),
        *("Wait a second.", "At once, if I may.", "Mix it well.", "The men vie for it."),
        *("A mild list of dim lamps", "It is written in C, and D. Vale said so.", "I did."),
        *("Vitamin C", "often tense, and alone", "the canine stone", "cm by cm"),
    ],
)
def test_leak_check_allows_an_ambiguous_number_word_without_its_noun(text):
    assert find_leak(text, SECRET) == ""
