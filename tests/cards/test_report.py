"""The import report: what it says of benign and of hostile cards, within its width and its time."""

import json
import time

import pytest

from evennia_ai.cards.card import Card
from evennia_ai.cards.loading import CardImport, load_card
from evennia_ai.cards.report import import_report, report_lines, report_object
from evennia_ai.prompt.columns import WIDTH, columns, visible
from evennia_ai.prompt.grants import ALL_GRANTS
from tests.cards.builders import a_card, card_data, lore, with_lore


def report_of(card: Card, **options):
    return import_report(CardImport(card=card, carrier="json"), **options)


def test_a_text_is_told_where_it_stands_and_where_a_grant_would_put_it() -> None:
    [part] = report_of(a_card()).parts
    assert (part.field, part.key, part.id) == ("description", "char_description", 1020)
    assert part.place == "top of the history, as a user's"
    assert (part.grant, part.granted) == ("fields", "ID 1020, system")


def test_with_its_grant_a_text_lacks_nothing() -> None:
    [part] = report_of(a_card(), grants=ALL_GRANTS).parts
    assert (part.place, part.grant, part.granted) == ("ID 1020, system", None, "")


def test_a_system_prompt_without_its_grant_is_left_out() -> None:
    report = report_of(a_card(description="", system_prompt="Be kind."))
    [part] = report.parts
    assert (part.place, part.grant) == ("", "system_prompt")
    assert report.prompt_tokens == 0


def test_progress_ends_with_all_there_is() -> None:
    told: list[tuple[str, int, int]] = []
    content = json.dumps(card_data(character_book={"entries": [lore("Lit.")] * 3})).encode()
    found = load_card(content, progress=lambda *step: told.append(step))
    import_report(found, progress=lambda *step: told.append(step))
    last = {what: (done, total) for what, done, total in told}
    assert last == {
        "card file": (1, 1),
        "assets": (1, 1),
        "lore entries counted": (3, 3),
        "lore entries looked at": (3, 3),
    }


def test_a_book_of_ten_thousand_entries_is_reported_in_under_two_seconds() -> None:
    entries = [lore(f"Lamp {n} is lit. " * 10, keys=[f"lamp {n}"]) for n in range(10_000)]
    card = with_lore(*entries)
    start = time.process_time()
    report = report_of(card, limit_tokens=7680)
    assert time.process_time() - start < 2
    assert report.book is not None
    assert report.book.entries == 10_000


@pytest.mark.parametrize("hostile", ["\x1b[2J", "\u202e", "字" * 400, "a\nb" * 200, "|rred|n"])
def test_whatever_a_card_holds_its_lines_are_safe_and_narrow(hostile: str) -> None:
    card = with_lore(
        *[lore(hostile, name=hostile, id=hostile) for _ in range(30)],
        name="Marta" + hostile,
        nickname=hostile,
        creator=hostile,
        tags=[hostile] * 30,
        creator_notes=hostile,
        first_mes=hostile,
        alternate_greetings=[hostile] * 30,
        extensions={hostile: 1, "depth_prompt": {"prompt": hostile, "depth": 99999}},
    )
    report = report_of(card, limit_tokens=100)
    for line in report_lines(report):
        assert columns(line) <= WIDTH
        assert visible(line) == line
    json.dumps(report_object(report), allow_nan=False)


@pytest.mark.parametrize("book", [{"entries": 3}, {"entries": {"a": 1}}, {}, {"entries": None}])
def test_a_book_that_cannot_be_read_is_told_of(book: object) -> None:
    report = report_of(a_card(character_book=book))
    assert report.book is None
    assert "book" in " ".join([*report.ignored, *report.notices])
