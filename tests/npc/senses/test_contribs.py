"""NPCs with contribs of Evennia: clothing, rooms with states, garbled languages."""

import pytest
from evennia.contrib.game_systems.clothing import ClothedCharacter, ContribClothing
from evennia.contrib.grid.extended_room import ExtendedRoom
from evennia.contrib.rpg.rpsystem.rplanguage import add_language, obfuscate_language
from evennia.contrib.rpg.rpsystem.rpsystem import ContribRPCharacter
from evennia.utils.create import create_object

from evennia_ai.engine.actors import THE_GAME
from evennia_ai.engine.prompt.messages import ToolCall
from evennia_ai.npc.npc_settings import change_settings
from evennia_ai.services.llm.chat import ChatReply
from evennia_ai.typeclasses import AIMixin


class ClothedNPC(AIMixin, ClothedCharacter):
    """An NPC with the clothing contrib."""


class Elf(AIMixin, ContribRPCharacter):
    """An NPC for which the game garbles languages that it does not understand."""

    def process_language(self, text, speaker, language, **kwargs):
        if language and not self.understands(language):
            return obfuscate_language(text, level=1.0, language=language)
        return super().process_language(text, speaker, language, **kwargs)


def looks(stage, npc, at):
    """Let an NPC use the tool `look` and return what it sees."""
    change_settings(npc, tools=("look",), by=THE_GAME)
    call = ToolCall(id="x", name="look", arguments=f'{{"at": "{at}"}}' if at else "{}")
    stage.talks_with(ChatReply(text="", model="m", tool_calls=(call,)), "I see.")
    stage.says(stage.anna, f"{npc.key}, look.")
    return stage.model.requests[-1].messages[-1].content


def test_npc_with_the_clothing_contrib_sees_the_clothes_of_others(stage):
    clo = create_object(ClothedNPC, key="Clo", location=stage.room, nohome=True)
    dressed = create_object(ClothedCharacter, key="Dora", location=stage.room, nohome=True)
    hat = create_object(ContribClothing, key="red hat", location=dressed, nohome=True)
    hat.db.clothing_type, hat.db.worn = "hat", True
    assert "red hat" in looks(stage, clo, "Dora")


@pytest.mark.parametrize(("state", "burns"), [("burning", True), ("", False)])
def test_npc_sees_the_description_of_a_room_in_its_current_state(stage, state, burns):
    room = create_object(ExtendedRoom, key="Hall", nohome=True)
    room.db.desc = "A hall. $state(burning, It burns!)"
    if state:
        room.add_room_state(state)
    for one in (stage.npc, stage.anna):
        one.location = room
    told = looks(stage, stage.npc, "")
    assert "A hall." in told and ("It burns!" in told) is burns
    assert "$state" not in told


@pytest.mark.parametrize(("known", "heard"), [(["elvish"], True), ([], False)])
def test_words_in_an_unknown_language_stay_garbled_for_the_npc(stage, known, heard):
    add_language(key="elvish", force=True)
    elf = create_object(Elf, key="Ela", location=stage.room, nohome=True)
    elf.sdesc.add("a pale elf")
    anna = create_object(ContribRPCharacter, key="Annabel", location=stage.room, nohome=True)
    anna.sdesc.add("a hooded traveller")
    change_settings(elf, languages=known, by=THE_GAME)
    stage.talks_with("Aye.")
    anna.execute_cmd('emote /me turns to /elf. elvish"The treasure lies below"')
    stage.passes(1)
    told = repr(stage.model.requests) + repr(elf.ai.attention.unrecorded)
    records = [body for _, _, body in _records(elf)]
    assert any("treasure" in body for body in records) is heard
    assert ("treasure" in told + "".join(records)) is heard


def _records(npc):
    from evennia_ai.store.history.conversations import conversations_of
    from evennia_ai.store.history.record_rows import records_of

    return [
        (record.kind, record.name, record.body)
        for known in conversations_of(npc.ai.ref)
        for record in records_of(known)
    ]
