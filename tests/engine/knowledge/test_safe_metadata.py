"""Tests of safe metadata: the facts of a restricted base that a model may see."""

from dataclasses import fields, replace

import pytest

from evennia_ai.engine.knowledge.meta_prompt import SafeMetadata, safe_hint, safe_metadata
from evennia_ai.engine.knowledge.pages.page import BaseInfo
from evennia_ai.engine.knowledge.restricted.leaks import find_leak, protect_texts

INFO = BaseInfo(
    key="vault",
    name="The harbour vault",
    summary="The watchword is Mandragora and the wheel turns 47 times.",
    topics=("watchword", "wheel"),
    hint="How the vault is kept safe, whom it lets in.",
    keywords=("vault", "keeper"),
    restricted=True,
)


@pytest.mark.req("S0-21")
def test_safe_metadata_has_only_four_fields():
    assert {one.name for one in fields(SafeMetadata)} == {"name", "id", "hint", "keywords"}
    assert safe_metadata(INFO) == SafeMetadata(
        name="The harbour vault",
        id="vault",
        hint="How the vault is kept safe, whom it lets in.",
        keywords=("vault", "keeper"),
    )


@pytest.mark.req("S0-21")
def test_safe_metadata_of_a_knowledge_base_is_shortened_to_its_limits():
    long = replace(INFO, name="n" * 500, hint="h" * 500, keywords=("k" * 99, *"abcdefg"))
    block = safe_metadata(long)
    assert len(block.name) == 120
    assert len(block.hint) == 200
    assert [len(one) for one in block.keywords] == [48, 1, 1, 1, 1]


@pytest.mark.req("S0-22")
def test_hint_is_left_out_when_it_repeats_a_page():
    page = "The vault under the harbour opens only when the tide stands at its lowest mark."
    block = safe_metadata(replace(INFO, hint=f"Know: {page}"), texts=[page])
    assert block.hint == ""
    assert find_leak(safe_metadata(INFO, texts=[page]).hint, protect_texts([page])) == ""


@pytest.mark.req("S0-22")
@pytest.mark.parametrize(
    ("page", "hint"),
    [
        pytest.param(
            "The vault under the harbour opens only when the tide stands at its lowest mark.",
            "T-h-e v-a-u-l-t u-n-d-e-r t-h-e h-a-r-b-o-u-r o-p-e-n-s o-n-l-y w-h-e-n t-h-e t-i-d-e",
            id="letter by letter",
        ),
        pytest.param(
            "Ask the 3 guards at 7 o'clock for a cup of 20 beans and bread.",
            "Ask the 3 guards at 7 o'clock for a cup of 20 beans",
            id="with numbers that are taken out",
        ),
    ],
)
def test_hint_is_left_out_when_it_repeats_a_page_in_another_form(page, hint):
    assert safe_hint(hint) != ""
    assert safe_hint(hint, texts=[page]) == ""


@pytest.mark.req("S0-23")
def test_safe_metadata_of_a_knowledge_base_without_hint_is_its_name_and_id():
    block = safe_metadata(replace(INFO, hint="", keywords=()))
    assert block == SafeMetadata(name="The harbour vault", id="vault")


@pytest.mark.req("S0-24")
@pytest.mark.parametrize(
    ("hint", "told"),
    [
        ("The 1702 bell, cast on 3 May.", "The bell, cast on."),
        ("Due at 17:30 or on 2024-05-01", "Due at or on"),
        ("Forty-seven turns, twelve keys", "turns, keys"),
        ("\uff14\uff17 turns of the wheel", "turns of the wheel"),
        ("On Tuesday, in March, you may march", "On, in, you may march"),
        ("## The lower gate\nWho keeps it", "Who keeps it"),
        ("== Keys ==\nWho has them", "Who has them"),
        ("Ask for the Drowned  Vault and the keeper", "Ask for and the keeper"),
        ("the drowned vault", ""),
        ("target: 95% (Q3)", "target"),
        ("The duty is ninepence, or 9d, a sack", "The duty is, or a sack"),
        ("Step XIV, the fourteenth, the 14th", "Step, the, the"),
        ("Barrel I, and I know the first mate", "Barrel, and I know the first mate"),
        ("A sixfold oath, sworn twice by hundreds", "A oath, sworn by"),
        ("Ask on the step, == Why == fog.", "Ask on the step, fog."),
        ("Ask for fog ## Why it comes\nand rain", "Ask for fog and rain"),
        ("Ask, <h2>Why fog</h2> or rain", "Ask, or rain"),
        ("Why fog\n-------\nWho knows", "Who knows"),
        ("Come on the second Tuesday or the last of May", "Come on the or the"),
        ("Tuesday's bell and Sundays", "bell and"),
    ],
)
def test_hint_loses_numbers_dates_headings_and_titles(hint, told):
    assert safe_hint(hint, titles=["Drowned Vault", "The Drowned Vault"]) == told


@pytest.mark.req("S0-24")
def test_hint_loses_headings_of_pages():
    page = "== The tar barrel ==\nText.\n## Lamp signals\nText.\n= Keys =\n"
    hint = "Of the tar barrel, lamp signals and keys"
    assert safe_hint(hint, texts=[page]) == "Of, and keys"


@pytest.mark.req("S0-24")
def test_hint_loses_an_ambiguous_number_when_a_page_counts_the_same_thing():
    hint = "One sack in the first boat"
    assert safe_hint(hint) == hint
    assert safe_hint(hint, texts=["The duty of 1 sack"]) == "sack in the first boat"


@pytest.mark.req("S0-24")
@pytest.mark.parametrize(
    "number", ["9th", "ninepence", "XIV", "barrel I", "twelfth", "9d", "sixfold"]
)
def test_keyword_is_left_out_when_it_is_a_number_in_any_form(number):
    told = safe_metadata(replace(INFO, keywords=(f"door {number}", "first mate"))).keywords
    assert told == ("first mate",)


@pytest.mark.req("S0-24")
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("Vault 13 of 9 May", "Vault of"),
        ("The forty keys", "The keys"),
        ("Ledger, 1702", "Ledger"),
        ("1702", "vault"),
        ("The first mate's chest", "The first mate's chest"),
    ],
)
def test_safe_name_has_no_numbers_and_dates(name, told):
    assert safe_metadata(replace(INFO, name=name)).name == told


@pytest.mark.req("S0-24")
@pytest.mark.parametrize("keyword", ["May", "second Tuesday", "in March", "ferry 9"])
def test_keyword_is_left_out_with_a_date(keyword):
    assert safe_metadata(replace(INFO, keywords=(keyword, "may", "gate"))).keywords == (
        "may",
        "gate",
    )


@pytest.mark.req("S0-24")
@pytest.mark.req("S0-24")
def test_keyword_loses_its_heading():
    keywords = ("== Why ==", "## The plan", "\uff1d\uff1d Why \uff1d\uff1d", "gate == Why ==")
    assert safe_metadata(replace(INFO, keywords=keywords)).keywords == ("gate",)


def test_keyword_is_left_out_with_a_number():
    assert safe_metadata(replace(INFO, keywords=("1702", "forty keys", "gate"))).keywords == (
        "gate",
    )


@pytest.mark.parametrize(
    "name",
    ["{{char}} vault", "<b>vault</b>", "[vault](x)", "`vault` 100%", "va\x00u\u202elt\nnow"],
)
def test_safe_name_has_no_markup(name):
    told = safe_metadata(replace(INFO, name=name)).name
    assert not set(told) & set("{}[]<>`%\n\x00\u202e")


def test_safe_name_is_the_id_when_nothing_is_left():
    assert safe_metadata(replace(INFO, name="{}")).name == "vault"


def test_safe_metadata_never_has_summary_and_topics():
    told = repr(safe_metadata(INFO)).casefold()
    assert "mandragora" not in told
    assert "wheel" not in told
