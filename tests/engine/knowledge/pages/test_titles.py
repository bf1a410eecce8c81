"""Tests that titles of pages follow the rules of MediaWiki."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.knowledge.pages.page import MAX_TITLE_BYTES, PageName, TitleError, page_name


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
def test_page_name_is_parsed(text, namespace, title):
    assert page_name(text) == PageName(namespace=namespace, title=title)


def test_page_name_takes_the_default_namespace():
    assert page_name("Tone", default="Instructions").full == "Instructions:Tone"
    assert page_name("Main:Tone", default="Instructions").full == "Tone"


@pytest.mark.parametrize("text", ["", "  ", "_", "Sources:", "Talk: _"])
def test_page_name_fails_for_an_empty_text(text):
    with pytest.raises(TitleError, match="is not a title: write one"):
        page_name(text)


def test_page_name_fails_with_two_namespaces():
    with pytest.raises(TitleError, match="begins with two namespaces"):
        page_name("Main:Sources:Ledger")


@pytest.mark.parametrize("sign", [*"#<>[]{}|", "\x00", "\x1b", "\x7f", "\u202e", "\u2066"])
def test_page_name_error_names_the_forbidden_character(sign):
    with pytest.raises(TitleError, match="which no title may have"):
        page_name(f"a{sign}b")


def test_page_name_fails_when_longer_than_in_mediawiki():
    assert page_name("é" * 127).title == "É" + "é" * 126
    with pytest.raises(TitleError, match=f"longer than {MAX_TITLE_BYTES} bytes"):
        page_name("é" * 128)
    with pytest.raises(TitleError, match=f"longer than {MAX_TITLE_BYTES} bytes"):
        page_name("x" * 10**6)


def test_title_length_is_counted_after_capitalising():
    with pytest.raises(TitleError, match="longer than"):
        page_name("ΐ" + "x" * 253)


def test_full_name_is_only_the_title_in_the_encyclopedia():
    assert [str(page_name(text)) for text in ("ferry", "Sources:ledger")] == [
        "Ferry",
        "Sources:Ledger",
    ]


def test_folded_title_ignores_case():
    assert page_name("GROSSE STRASSE").folded == page_name("große Straße").folded


def test_talk_page_of_a_talk_page_is_itself():
    talk = page_name("Sources:Ledger").talk

    assert talk.full == "Talk:Sources:Ledger"
    assert talk.talk == talk


@given(st.text(max_size=40))
def test_any_text_is_a_title_or_a_title_error(text):
    try:
        name = page_name(text)
    except TitleError as error:
        assert str(error)
    else:
        assert page_name(f"{name.namespace}:{name.title}") == name
