"""Reverting components, notes, books, cards and pages: changes are shown, then a question asked."""

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.prompt.components import GAME
from evennia_ai.store.authored import cards, components, lorebooks, notes
from tests.commands.knowledge_bases import make_base, page, write
from tests.commands.stage import component, on_screen, one_line

MADE = (
    "component/create mood = 1200, system: The air is heavy.",
    "component/edit mood",
    ":DD",
    "It is hot. The air is heavy.",
    ":wq",
    "note oren = The ferry is late.",
    "note oren = The ferry is lost.",
    "lore/create harbour/the ferry = ferry: It sails at dusk.",
    "lore/keys harbour/the ferry = boat",
    "card/create Mira = Mira sells herbs.",
    "card/edit Mira/personality = gruff",
)
WHAT = {
    "component/revert mood": ("- It is hot.", "mood"),
    "note/revert oren": ("- The ferry is lost.", "note Oren"),
    "lore/revert harbour": ("- boat", "lorebook harbour"),
    "card/revert mira": ("- gruff", "card Mira"),
    "kb/revert port/Oren": ("- Oren is gone.", "port/Oren"),
}


@pytest.fixture(scope="module")
def made(beforehand):
    """Create one thing of each kind with two revisions."""

    def make(stage):
        stage.builds(*MADE)
        make_base("port")
        write("Oren", "Oren is gone.", base="port", was="1")

    return beforehand(make)


def now(stage):
    """Return the present texts of all of them."""
    return (
        component("mood").content,
        notes.notes_for(stage.npc.ai.ref),
        lorebooks.get_book("harbour").source,
        cards.get_card("Mira").source,
        page("Oren", base="port").body,
    )


@pytest.mark.parametrize("typed", WHAT)
def test_revert_shows_changes_before_the_question(stage, made, typed):
    line, what = WHAT[typed]
    before = now(stage)
    told = stage.builds(f"{typed} = 1").splitlines()
    assert told[0] == f"What going back to revision 1 of {what} would change:"
    assert line in told[1:-1]
    assert told[-1] == f"Make {what} what it was at revision 1? yes/[no]"
    assert now(stage) == before


@pytest.mark.req("S3-21")
@pytest.mark.parametrize("answer", ["no", "", "n", "look", "yesterday"])
@pytest.mark.parametrize("typed", WHAT)
def test_revert_changes_nothing_without_yes(stage, made, typed, answer):
    before = now(stage)
    told = stage.builds(f"{typed} = 1", answer).splitlines()
    assert told[-1] == f"Nothing was changed: {WHAT[typed][1]} stays as it is."
    assert now(stage) == before


@pytest.mark.parametrize("typed", WHAT)
def test_revert_after_yes_goes_back_and_twice_changes_nothing(stage, made, typed):
    before = now(stage)
    told = stage.builds(f"{typed} = 1", "yes").splitlines()
    assert "what it was at revision 1" in told[-1]
    assert now(stage) != before
    after = now(stage)
    again = one_line(stage.builds(f"{typed} = 1"))
    assert again == f"Nothing was changed: {WHAT[typed][1]} is the same as at revision 1."
    assert now(stage) == after


def _component():
    components.update("mood", by=trusted("Tam"), scope=GAME, content="New words.")


def _book():
    lorebooks.save_book("harbour", '{"entries": []}', by=trusted("Tam"))


def _card():
    cards.CARDS.grant("Mira", frozenset(), by=trusted("Tam"))
    cards.CARDS.revoke("Mira", frozenset({"fields"}), by=trusted("Tam"))


def _page():
    write("Oren", "Oren is back.", base="port", was="2")


@pytest.mark.req("S3-21")
@pytest.mark.parametrize(
    ("typed", "change"),
    [
        ("component/revert mood", _component),
        ("lore/revert harbour", _book),
        ("card/revert mira", _card),
        ("kb/revert port/Oren", _page),
    ],
)
def test_revert_is_refused_if_changed_during_the_question(stage, made, typed, change):
    stage.builds(f"{typed} = 1")
    change()
    meanwhile = now(stage)
    assert "was changed by Tam while you" in one_line(stage.builds("yes"))
    assert now(stage) == meanwhile


def test_revert_of_a_note_is_refused_if_changed_during_the_question(stage, made):
    stage.builds("note/revert oren = 1")
    notes.set_note(stage.npc.ai.ref, by=trusted("Tam"), content="New words.")
    assert "was changed by Tam while you" in one_line(stage.builds("yes"))
    assert notes.notes_for(stage.npc.ai.ref)[0].content == "New words."


def test_revert_of_a_long_change_keeps_the_question_visible(stage, made):
    lines = [f"Line {number}." for number in range(100)]
    stage.builds("component/edit mood", ":DD", *lines, ":wq")
    told = stage.builds("component/revert mood = 1").splitlines()
    assert told[-1].endswith("yes/[no]")
    assert told[-2].startswith("and ") and "component/revisions" in told[-2]
    assert len(told) < 65


def test_revert_shows_markup_literally(stage, made):
    hostile = "|lclook|ltpress|le |rred $pron(you) {{x}}"
    components.update("mood", by=trusted("Tam"), content=hostile)
    sent = stage.sent(stage.builder, "component/revert mood = 1")
    assert "|lc" not in sent.replace("||lc", "")
    assert "$pron(you) {{x}}" in on_screen(sent)
