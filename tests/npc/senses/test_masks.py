"""A game with Evennia's rpsystem: an NPC does not recognise a person who wears a mask."""

import random
import re
from unittest.mock import patch

import pytest
from evennia.contrib.rpg.rpsystem.rpsystem import ContribRPCharacter
from evennia.utils.create import create_object

from evennia_ai.engine.actors import THE_GAME, trusted
from evennia_ai.engine.memory.memories import Memory
from evennia_ai.engine.prompt.components import Scope
from evennia_ai.engine.prompt.messages import ToolCall
from evennia_ai.engine.prompt.personas import Persona
from evennia_ai.npc.npc_settings import change_settings
from evennia_ai.npc.senses.perception import AISpeakerMixin
from evennia_ai.npc.senses.presence import known_ref
from evennia_ai.npc.senses.utterance import spoken_words
from evennia_ai.services.llm.chat import ChatReply
from evennia_ai.store import memories
from evennia_ai.store.authored import lorebooks, personas
from evennia_ai.store.erasing import forget_person
from evennia_ai.store.history.conversations import conversations_of
from evennia_ai.typeclasses import AIMixin

PERSONA, RELATION, WHISPERED = "the Rose Queen", "the thief of your ring", "under the blue boat"
REMEMBERED, LORE = "owes you twelve coins", "heir of the lighthouse"
OF_ANNA = (PERSONA, RELATION, WHISPERED, REMEMBERED, LORE)


class Innkeeper(AIMixin, ContribRPCharacter):
    """An NPC with the rpsystem."""


class Player(AISpeakerMixin, ContribRPCharacter):
    """A player's character with the rpsystem and our mixin for speakers."""


class PlainPlayer(ContribRPCharacter):
    """A player's character with the rpsystem, without our mixin."""


@pytest.fixture(params=[Player, PlainPlayer])
def inn(stage, request):
    """Vesna, "a stern innkeeper", with Annabel, "a hooded traveller", and Tamsin, "a tall guard".

    Annabel has a persona, a relation, a memory and lore about her, and whispered something.
    """
    stage.npc.delete()
    stage.npc = create_object(Innkeeper, key="Vesna", location=stage.room, nohome=True)
    stage.npc.sdesc.add("a stern innkeeper")
    stage.anna, stage.ben = (_player(stage, request.param, key) for key in ("Annabel", "Tamsin"))
    stage.anna.sdesc.add("a hooded traveller")
    stage.ben.sdesc.add("a tall guard")
    ref, anna = stage.npc.ai.ref, str(stage.anna.id)
    written = Persona(text=f"I am {PERSONA}.")
    personas.set_persona(anna, written, most_characters=100, by=trusted("Annabel"))
    stage.npc.db.ai_relations = {anna: RELATION}
    about = Memory(id=memories.NEW, text=f"She {REMEMBERED}.", created_at=1.0, about=anna)
    memories.add_memory(ref, about, by=trusted("npc"), most=50)
    book = (
        '{"entries": [{"id": 0, "keys": [], "constant": true, "enabled": true, "content": "%s"}]}'
    )
    lorebooks.save_book("hers", book % LORE, by=trusted("Ada"))
    lorebooks.LOREBOOKS.assign("hers", Scope(kind="player", ref=anna), by=trusted("Ada"))
    stage.talks_with(lambda request: "Aye.")
    types(stage, stage.anna, f"whisper innkeeper = The gold is {WHISPERED}.")
    return stage


def _player(stage, kind, key):
    made = create_object(kind, key=key, location=stage.room, nohome=True)
    stage.who(made.id)
    return made


def types(stage, who, *lines):
    """Let a player type lines. Return the plain text that they then read."""
    from tests.commands.stage import _at_once

    before = len(who.screen.sent)
    as_typed = patch.object(type(who.nicks), "nickreplace", lambda _, line, *__, **___: line)
    with as_typed, patch("evennia.commands.cmdhandler.deferLater", _at_once):
        for line in lines:
            who.execute_cmd(line)
            stage.passes(1)
    return "\n".join(who.screen.plain()[before:])


def newest(stage):
    """Return the last request as one text."""
    return "\n".join(f"{m.name}: {m.content}" for m in stage.model.requests[-1].messages)


def knows(stage):
    """Return the facts about Annabel in the last request."""
    return {one for one in OF_ANNA if one in newest(stage)}


def test_prompt_has_no_knowledge_of_a_person_while_they_wear_a_mask(inn):
    types(inn, inn.anna, "say Innkeeper, good evening.")
    assert knows(inn) == {*OF_ANNA} - {WHISPERED}
    types(inn, inn.anna, "whisper innkeeper = Are you there?")
    assert knows(inn) >= {WHISPERED, PERSONA, REMEMBERED}
    types(inn, inn.anna, "mask a masked figure", "say Innkeeper, good evening.")
    assert "a masked figure" in newest(inn)
    assert knows(inn) == set()
    types(inn, inn.anna, "whisper innkeeper = Do you know me?")
    assert knows(inn) == set()
    types(inn, inn.anna, "unmask", "say Innkeeper, it was me.")
    assert knows(inn) == {*OF_ANNA} - {WHISPERED}
    types(inn, inn.anna, "whisper innkeeper = And now?")
    assert WHISPERED in newest(inn) and "Do you know me?" not in newest(inn)


def test_memory_about_a_mask_is_recalled_only_for_the_same_mask(inn):
    types(inn, inn.anna, "mask a masked figure")
    mask = known_ref(inn.npc, inn.anna)
    assert mask.startswith(f"{inn.anna.id}~")
    call = ToolCall(
        id="x", name="remember", arguments='{"text": "Seeks a ship.", "about": "a masked figure"}'
    )
    change_settings(inn.npc, tools=("remember",), by=THE_GAME)
    inn.talks_with(ChatReply(text="", model="m", tool_calls=(call,)), "I will.", *["Aye."] * 9)
    types(inn, inn.anna, "say Innkeeper, I seek a ship.")
    held = memories.held_by(inn.npc.ai.ref).memories
    assert [one.about for one in held if "ship" in one.text] == [mask]

    def remembered():
        return [one.text for one in inn.npc.ai.foreseen("hello", inn.anna).memories]

    assert remembered() == ["Seeks a ship."]
    types(inn, inn.anna, "unmask")
    assert remembered() == [f"She {REMEMBERED}."]
    types(inn, inn.anna, "mask another figure")
    assert remembered() == []
    types(inn, inn.anna, "unmask", "mask a masked figure")
    assert remembered() == ["Seeks a ship."]


def test_forgetting_a_person_includes_their_masks(inn):
    types(inn, inn.anna, "mask a masked figure", "whisper innkeeper = I am nobody.")
    ref, mask = inn.npc.ai.ref, known_ref(inn.npc, inn.anna)
    new = Memory(id=memories.NEW, text="Limps.", created_at=1.0, about=mask)
    memories.add_memory(ref, new, by=trusted("npc"), most=50)
    partners = {one.partner_ref for one in conversations_of(ref) if one.kind == "private"}
    assert partners == {str(inn.anna.id), mask}
    done = forget_person(str(inn.anna.id), by=trusted("Annabel"))
    assert done.memories == 2 and done.said.conversations == 2
    assert memories.held_by(ref).memories == ()


@pytest.mark.parametrize("line", ["say Innkeeper, are you open?", "say A stern innkeeper, hello?"])
def test_npc_answers_to_words_of_its_short_description(inn, line):
    inn.talks_with("Aye, open.")
    types(inn, inn.anna, line)
    assert len(inn.model.requests) == 1


def test_npc_answers_to_the_recog_name_of_the_speaker_only(inn):
    inn.talks_with("Aye.", "No.")
    types(inn, inn.anna, "say Hostess, are you open?")
    asked = len(inn.model.requests)
    types(inn, inn.anna, "recog innkeeper as Hostess", "emote waits.", "say Hostess, are you open?")
    assert len(inn.model.requests) == asked + 1
    types(inn, inn.ben, "say Hostess, are you open?")
    assert len(inn.model.requests) == asked + 1


def test_talk_command_shows_no_emote_and_no_real_name(inn):
    told = types(inn, inn.anna, "talk innkeeper do you know me?")
    assert 'You say to a stern innkeeper, "do you know me?"' in told
    heard = "\n".join(inn.ben.screen.plain())
    assert 'a hooded traveller says to a stern innkeeper, "do you know me?"' in heard.casefold()
    assert "/Me" not in told + heard + newest(inn)
    assert "Vesna" not in told + heard and "Annabel" not in heard + newest(inn)


@pytest.mark.parametrize(
    ("tool", "arguments", "shown"),
    [
        ("say", '{"text": "She leaves at the slack."}', 'says, "She leaves at the slack."'),
        ("whisper", '{"to": "a hooded traveller", "text": "Psst."}', 'whispers to you, "Psst."'),
    ],
)
def test_speech_tools_show_no_emote(inn, tool, arguments, shown):
    change_settings(inn.npc, tools=(tool,), by=THE_GAME)
    call = ToolCall(id="x", name=tool, arguments=arguments)
    inn.talks_with(ChatReply(text="", model="m", tool_calls=(call,)), "Done.")
    told = types(inn, inn.anna, "say Innkeeper, when does she leave?")
    assert shown in told and "/Me" not in told + newest(inn)


def test_whisper_is_heard_without_the_emote_around_it(inn):
    types(inn, inn.anna, "whisper innkeeper = I am the queen.")
    assert "/Me" not in newest(inn)
    assert "I am the queen." in newest(inn)


def test_pose_does_not_repeat_the_short_description_of_the_npc(inn):
    inn.talks_with("*a stern innkeeper smiles*")
    told = types(inn, inn.anna, "say Innkeeper, hello.")
    assert "a stern innkeeper smiles" in told.casefold()
    assert "innkeeper a stern" not in told.casefold()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('/Me says, "Hello."', "Hello."),
        ('/me whispers "I said "no" twice."', 'I said "no" twice.'),
        ("/Me waves.", "/Me waves."),
        ('He said /Me says, "x"', 'He said /Me says, "x"'),
        ("", ""),
    ],
)
def test_spoken_words_removes_the_emote_of_at_pre_say(text, words):
    assert spoken_words(text) == words


LINES = (
    *("say Innkeeper, {word}?", "say {word}.", "whisper innkeeper = {word}", "emote nods at /inn."),
    *("talk innkeeper {word}", 'emote /me looks at /guard. "{word}"', "pose leans on the bar"),
    *("say Smith, {word}", "recog innkeeper as Hostess", "say Hostess, {word}", "emote bows."),
    *("mask a masked figure", "unmask", "mask a grey pilgrim", "unmask", "sdesc {sdesc}"),
)
WORDS = ("a room", "the ferry", "who am I", "do you know me", "what is this", "good evening")


@pytest.mark.long
def test_no_real_name_appears_in_requests_or_on_other_screens_in_80_lines(inn):
    chance = random.Random(7)
    sdescs = {inn.anna: "a hooded traveller", inn.ben: "a tall guard"}
    for _ in range(80):
        who = chance.choice((inn.anna, inn.ben))
        line = chance.choice(LINES).format(word=chance.choice(WORDS), sdesc=sdescs[who])
        is_masked = bool(who.db.unmasked_sdesc)
        if line.startswith("sdesc") and is_masked:
            continue
        asked = len(inn.model.requests)
        types(inn, who, line)
        for request in inn.model.requests[asked:]:
            told = repr(request)
            assert not re.search("Annabel|Tamsin", told), line
            if who is inn.anna and who.db.unmasked_sdesc:
                facts = "".join(m.content for m in request.messages if "Who " in m.content)
                assert not any(one in facts for one in OF_ANNA), line
    assert len(inn.model.requests) > 24
    for reader, other in ((inn.anna, "Tamsin"), (inn.ben, "Annabel")):
        read = "\n".join(reader.screen.plain())
        assert other not in read and "Vesna" not in read
        assert "/Me says" not in read
