"""A line that is typed wrong changes nothing and is answered with the line that was meant."""

import pytest

from evennia_ai.commands.cmdset import AICmdSet
from evennia_ai.commands.corrections import MEANT_BY
from evennia_ai.commands.setup.note import CmdNote
from evennia_ai.store.authored import cards, lorebooks, notes, presets
from evennia_ai.store.authored.components import registry
from evennia_ai.store.knowledge import knowledge_bases

MEANT = {
    # Words of other programs for a switch.
    "component/new smell = Tar.": "component/create smell = Tar.",
    "component/enable mood": "component/on mood",
    "component/delete mood": "component/remove mood",
    "component/history mood": "component/revisions mood",
    "component/undo mood = 1": "component/revert mood = 1",
    "component/show mood": "component mood",
    "component/text mood = It rains.": "component/edit mood = It rains.",
    "note/add oren = He has a cold.": "note/edit oren = He has a cold.",
    "note/clear oren": "note/remove oren",
    "note/set oren = He has a cold.": "note/edit oren = He has a cold.",
    "note/disable oren": "note/off oren",
    "lore/attach harbour = game": "lore/assign harbour = game",
    "lore/unlink harbour = game": "lore/unassign harbour = game",
    "lore/list": "lore",
    "card/set Mira/tags = herbs": "card/edit Mira/tags = herbs",
    "card/give Mira = oren": "card/assign Mira = oren",
    "card/view Mira": "card Mira",
    "kb/bind harbour = oren": "kb/assign harbour = oren",
    "kb/refuse 1": "kb/reject 1",
    "kb/show harbour": "kb harbour",
    "persona/clear": "persona/remove",
    "ai/enable oren": "ai/on oren",
    # Misspelt switches.
    "ai/contxt oren": "ai/context oren",
    "lore/asign harbour = game": "lore/assign harbour = game",
    "card/spwan Mira": "card/spawn Mira",
    # A switch of one other command.
    "ai/preview oren": "component/preview oren",
    "note/spawn Mira": "card/spawn Mira",
    # A switch without its slash.
    "ai context oren": "ai/context oren",
    "lore assign harbour = game": "lore/assign harbour = game",
    "card new Mira = A healer.": "card/create Mira = A healer.",
    # A forgotten "=".
    "ai/why oren mood": "ai/why oren = mood",
    "component/depth mood 2": "component/depth mood = 2",
    "note oren He has a cold.": "note oren = He has a cold.",
    "lore/assign harbour npc:oren": "lore/assign harbour = npc:oren",
    "lore/set harbour/the ferry sticky 3": "lore/set harbour/the ferry = sticky 3",
    "kb/set harbour/summary All of it.": "kb/set harbour/summary = All of it.",
    "card/assign Mira oren": "card/assign Mira = oren",
    # A superfluous "=".
    "component mood = It rains.": "component/edit mood = It rains.",
    "component/off mood = yes": "component/off mood",
    "lore harbour/the ferry = At noon.": "lore/edit harbour/the ferry = At noon.",
    "kb harbour/The Ferry = At noon.": "kb/edit harbour/The Ferry = At noon.",
    "ai/reset oren = yes": "ai/reset oren",
    "card Mira = oren": "card/assign Mira = oren",
    "persona A tall woman.": "persona = A tall woman.",
    # The place left of "=", the thing right of it.
    "card/assign oren = Mira": "card/assign Mira = oren",
    "lore/assign oren = harbour": "lore/assign harbour = oren",
    "kb/assign oren = harbour": "kb/assign harbour = oren",
}
UNSURE = {
    "ai/revert": (
        "There is no ai/revert. Nothing was changed. Say what you mean: card/revert,"
        " component/revert, kb/revert, lore/revert, note/revert, preset/revert, regex/revert."
    ),
    "component/re mood": (
        "/re could be several switches: /required, /remove, /revisions, /revert. Nothing was"
        " changed."
    ),
    "component/xyzzy": "There is no component/xyzzy. Nothing was changed. 'help component' lists",
    "component/": "There is no component/. Nothing was changed. 'help component' lists",
    "note/xyzzy oren": "It has /depth, /order,",
}
UNCORRECTED = ("ai nobody here", "lore/assign nowhere npc:oren", "card nobody at all")


def everything():
    return (
        [component.revision for component in registry()],
        [(name, cards.get_card(name).revision) for name in cards.CARDS.list_keys()],
        cards.CARDS.names_ever(),
        [
            (name, lorebooks.get_book(name).revision, lorebooks.LOREBOOKS.assigned_to(name))
            for name in lorebooks.LOREBOOKS.list_keys()
        ],
        [
            (base.key, knowledge_bases.assigned_to(base.key))
            for base in knowledge_bases.list_bases()
        ],
        presets.assignments(),
    )


@pytest.fixture(scope="module")
def _written(beforehand):
    """Write one thing of each kind."""

    def make(stage):
        stage.builds(
            "component/create mood = 1200: Calm.",
            "card/create Mira = A healer.",
            "note oren = He is tired.",
            "lore/create harbour/the ferry = ferry: At dusk.",
            "kb/create harbour",
            "kb/edit harbour/The Ferry = At dusk.",
        )

    return beforehand(make)


@pytest.fixture
def evening(stage, _written):
    return stage


@pytest.mark.parametrize(("typed", "meant"), MEANT.items())
def test_wrong_line_is_answered_with_the_line_that_was_meant(evening, typed, meant):
    before, note = everything(), notes.notes_for(evening.npc.ai.ref)
    told = evening.builds(typed).strip()
    assert told.endswith(f" Type this instead: {meant}")
    assert "\n" not in told
    assert (everything(), notes.notes_for(evening.npc.ai.ref)) == (before, note)


@pytest.mark.parametrize(("typed", "told"), UNSURE.items())
def test_wrong_line_with_several_meanings_names_them(evening, typed, told):
    before = everything()
    assert told in evening.builds(typed)
    assert everything() == before


@pytest.mark.parametrize("typed", UNCORRECTED)
def test_line_without_a_known_name_gets_no_correction(evening, typed):
    assert "Type this instead" not in evening.builds(typed)


def test_correction_names_nothing_that_a_lock_hides(evening):
    evening.builds("lore/lock harbour = view:perm(Admin);edit:perm(Admin)", "yes")
    assert "harbour = npc:oren" not in evening.builds("lore/assign harbour npc:oren")
    assert "first, then the place" not in evening.builds("lore/assign oren = harbour")


def test_each_word_of_the_table_means_a_switch_of_some_command():
    known = {verb for command in AICmdSet().commands for verb in command.verbs}
    assert {verb for verbs in MEANT_BY.values() for verb in verbs} <= known


def test_long_line_without_an_equals_sign_causes_few_searches(evening, monkeypatch):
    searched = []
    monkeypatch.setattr(
        CmdNote, "names_something", lambda command, text: bool(searched.append(text))
    )
    evening.builds(f"note/edit mira {'word ' * 200}")
    assert 0 < len(searched) < 12
