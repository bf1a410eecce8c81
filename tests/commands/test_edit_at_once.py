"""`edit` with "=" writes the text at once, shows what changed, and keeps everything else."""

import pytest

from evennia_ai.commands.setup.lore.changes import content_of
from evennia_ai.commands.setup.lore.named import entry_named
from evennia_ai.engine.knowledge.pages.page import page_name
from evennia_ai.npc.views.parse_cache import parsed_card
from evennia_ai.store.authored import cards, notes
from evennia_ai.store.authored.components import registry
from evennia_ai.store.knowledge import pages

MADE = (
    "component/create mood = 1200, user: Calm.",
    "note oren = He is tired.",
    "note/depth oren = 2",
    "lore/create harbour/the ferry = ferry: At dusk.",
    "lore/order harbour/the ferry = 7",
    "card/create Mira = A healer.",
    "card/edit Mira/tags = herbs",
    "kb/create harbour",
    "kb/edit harbour/The Ferry = At dusk.",
    "kb/lock harbour/The Ferry = view:perm(Builder)",
)


def component_text(stage):
    found = registry().get("mood")
    assert found.role == "user"
    return found.content


def note_text(stage):
    (found,) = notes.notes_for(stage.npc.ai.ref)
    assert found.depth == 2
    return found.content


def entry_text(stage):
    found = entry_named(stage.builder, "harbour/the ferry")
    assert (found.entry.keys, found.entry.order) == (("ferry",), 7)
    return content_of(found)


def card_text(stage):
    found = parsed_card(cards.get_card("Mira"))
    assert list(found.tags) == ["herbs"]
    return found.description


def page_text(stage):
    found = pages.page_or_none("harbour", page_name("The Ferry"))
    assert (found.locks, [one.full for one in found.links]) == ("view:perm(Builder)", ["Oren"])
    return found.body


EDITED = {
    "component/edit mood": component_text,
    "note/edit oren": note_text,
    "lore/edit harbour/the ferry": entry_text,
    "card/edit Mira/description": card_text,
    "kb/edit harbour/The Ferry": page_text,
}
WRITTEN = "At noon, says [[Oren]]."


@pytest.fixture(scope="module")
def _made(beforehand):
    return beforehand(lambda stage: stage.builds(*MADE))


@pytest.mark.parametrize(("typed", "text_of"), EDITED.items())
def test_edit_with_a_text_writes_it_and_shows_the_difference(stage, _made, typed, text_of):
    told = stage.builds(f"{typed} = {WRITTEN}")
    assert f"+ {WRITTEN}" in told
    assert text_of(stage) == WRITTEN
    assert stage.builder.ndb._eveditor is None


@pytest.mark.parametrize("typed", [one for one in EDITED if "card" not in one])
def test_edit_with_an_empty_text_names_the_switch_that_takes_it_away(stage, _made, typed):
    told = stage.builds(f"{typed} =")
    assert "There is no text after '='. Nothing was changed. Type this instead: " in told
