"""Labels and descriptions in a card never reach a prompt."""

import pytest

from tests.formats.cards.builders import a_card, lore, prompt_of, shown, with_lore
from tests.formats.cards.carriers import an_asset

LABEL = "SEEN-BY-NOBODY"
ENTRY = {"keys": ["coin"], "constant": False}


def texts_of(card) -> str:
    return "\n".join(shown(prompt_of(card, "user: a coin")))


@pytest.mark.parametrize("field", ["name", "id", "comment"])
def test_label_fields_of_an_entry_are_never_in_a_prompt(field):
    text = texts_of(with_lore(lore("One coin is the toll.", **ENTRY, **{field: LABEL})))
    assert "One coin is the toll." in text
    assert LABEL not in text


@pytest.mark.parametrize("field", ["name", "description"])
def test_label_fields_of_a_book_are_never_in_a_prompt(field):
    book = {"extensions": {}, "entries": [lore("One coin is the toll.", **ENTRY)], field: LABEL}
    text = texts_of(a_card(character_book=book))
    assert "One coin is the toll." in text
    assert LABEL not in text


def test_names_and_addresses_of_assets_are_never_in_a_prompt():
    assets = [an_asset(f"https://nowhere.invalid/{LABEL}", name=LABEL)]
    assert LABEL not in texts_of(with_lore(assets=assets))


def test_sources_dates_and_extensions_are_never_in_a_prompt():
    card = with_lore(source=[LABEL], creation_date=1_700_000_000, extensions={"app": LABEL})
    text = texts_of(card)
    assert LABEL not in text
    assert "1700000000" not in text
