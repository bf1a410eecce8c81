"""Titles of pages, as MediaWiki has them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.knowledge.pages.page import MAX_BYTES, PageName, TitleError, page_name


@pytest.mark.parametrize(
    ("text", "namespace", "title"),
    [
        ("ferry", "Main", "Ferry"),
        ("  the_old   ferry ", "Main", "The old ferry"),
        ("Sources:ledger", "Sources", "Ledger"),
        ("sources : ledger", "Sources", "Ledger"),
        ("TALK: Sources:Ledger", "Talk", "Sources:Ledger"),
        ("Main:Ferry", "Main", "Ferry"),
        ("Notes: on tides", "Main", "Notes: on tides"),
        (
            "Instructions:Create/Source (Base Workflow)",
            "Instructions",
            "Create/Source (Base Workflow)",
        ),
        ("渡し船", "Main", "渡し船"),
        ("élan", "Main", "Élan"),
        ("Cafe\u0301", "Main", "Caf\u00e9"),
    ],
)
def test_a_text_names_a_page(text, namespace, title):
    assert page_name(text) == PageName(namespace=namespace, title=title)


def test_a_default_counts_where_the_text_names_no_namespace():
    assert page_name("Tone", default="Instructions").full == "Instructions:Tone"
    assert page_name("Main:Tone", default="Instructions").full == "Tone"


@pytest.mark.parametrize("text", ["", "  ", "_", "Sources:", "Talk: _"])
def test_an_empty_text_names_none(text):
    with pytest.raises(TitleError, match="is no title: write one"):
        page_name(text)


def test_a_page_of_the_encyclopedia_is_not_called_as_one_of_another_namespace():
    with pytest.raises(TitleError, match="names two namespaces"):
        page_name("Main:Sources:Ledger")


@pytest.mark.parametrize("sign", [*"#<>[]{}|", "\x00", "\x1b", "\x7f", "\u202e", "\u2066"])
def test_a_sign_that_no_title_may_have_is_named(sign):
    with pytest.raises(TitleError, match="which no title may have"):
        page_name(f"a{sign}b")


def test_a_title_is_no_longer_than_in_mediawiki():
    assert page_name("é" * 127).title == "É" + "é" * 126
    with pytest.raises(TitleError, match=f"longer than {MAX_BYTES} bytes"):
        page_name("é" * 128)
    with pytest.raises(TitleError, match=f"longer than {MAX_BYTES} bytes"):
        page_name("x" * 10**6)


def test_a_letter_that_grows_when_it_is_made_great_counts_as_it_is_then():
    with pytest.raises(TitleError, match="longer than"):
        page_name("ΐ" + "x" * 253)


def test_a_page_of_the_encyclopedia_has_its_title_alone():
    assert [str(page_name(text)) for text in ("ferry", "Sources:ledger")] == [
        "Ferry",
        "Sources:Ledger",
    ]


def test_upper_and_lower_case_are_one_where_a_title_is_looked_for():
    assert page_name("GROSSE STRASSE").folded == page_name("große Straße").folded


def test_every_page_has_a_talk_page_and_that_is_its_own():
    talk = page_name("Sources:Ledger").talk

    assert talk.full == "Talk:Sources:Ledger"
    assert talk.talk == talk


@given(st.text(max_size=40))
def test_any_text_is_a_title_or_an_error_in_words(text):
    try:
        name = page_name(text)
    except TitleError as error:
        assert str(error)
    else:
        assert page_name(f"{name.namespace}:{name.title}") == name
