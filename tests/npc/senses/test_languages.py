"""Languages and volume: what an NPC hears of words in a language."""

import pytest
from evennia.contrib.rpg.rpsystem.rpsystem import ContribRPCharacter, send_emote
from evennia.objects.objects import DefaultCharacter
from evennia.utils.create import create_object

from evennia_ai.engine.actors import THE_GAME
from evennia_ai.npc.npc_settings import change_settings
from evennia_ai.npc.recording.heard import event_record
from evennia_ai.npc.senses.perception import AISpeakerMixin
from evennia_ai.typeclasses import AIMixin


class Speaker(AISpeakerMixin, DefaultCharacter):
    """A player's character in a game with languages."""


class Roleplayer(AIMixin, ContribRPCharacter):
    """An NPC with the roleplaying contrib, whose game shouts one language."""

    def process_language(self, text, speaker, language, **kwargs):
        shown = super().process_language(text, speaker, language, **kwargs)
        return shown.upper() if language == "shouted" else shown


@pytest.fixture
def heard(stage):
    events = []
    stage.npc.ai.hear = events.append
    return events


@pytest.fixture
def cora(stage):
    return create_object(Speaker, key="Cora", location=stage.room, nohome=True)


def test_event_has_language_and_volume_of_at_say(stage, heard, cora):
    cora.at_say("Mae govannen", language="Elvish", volume="shout")
    (event,) = heard
    assert (event.text, event.language, event.volume) == ("Mae govannen", "Elvish", "shout")


def test_event_has_language_and_volume_of_the_message_options(stage, heard):
    options = {"type": "say", "language": "Elvish", "volume": "mutter"}
    stage.npc.msg(text=('Anna says, "Mae govannen"', options), from_obj=stage.anna)
    (event,) = heard
    assert (event.text, event.language, event.volume) == ("Mae govannen", "Elvish", "mutter")


def test_facts_in_the_prompt_name_language_and_volume(stage, heard, cora):
    stage.talks_with("Aye.")
    stage.npc.ai.hear = stage.npc.ai.attention.hear
    cora.at_say("Oren, mae govannen", language="Elvish", volume="shout")
    stage.passes(1)
    ((kind, _, body), *_) = stage.records()
    assert (kind, body) == ("user", "Oren, mae govannen")
    facts = "\n".join(message.content for message in stage.model.requests[0].messages)
    assert "Who speaks: Cora (Player), in Elvish, shouting." in facts


def test_record_keeps_language_and_volume(stage, heard, cora):
    cora.at_say("Mae govannen", language="Elvish", volume="shout")
    meta = event_record(heard[0]).meta
    assert (meta["language"], meta["volume"]) == ("Elvish", "shout")


def test_name_of_a_spoken_language_has_no_markup_and_at_most_40_characters(stage, heard, cora):
    cora.at_say("Hello", language="|rEl\nvish|n " + "x" * 99, volume=None)
    assert heard[0].language.startswith("El vish xxx")
    assert len(heard[0].language) == 40
    assert heard[0].volume == ""


@pytest.mark.parametrize(
    ("languages", "text"),
    [
        (None, "Mae govannen"),
        (["elvish"], "Mae govannen"),
        (["Common"], "(words in Elvish)"),
        ([], "(words in Elvish)"),
    ],
)
def test_npc_hears_only_the_language_of_words_that_it_does_not_understand(
    stage, heard, cora, languages, text
):
    change_settings(stage.npc, languages=languages, by=THE_GAME)
    cora.at_say("Mae govannen", language="Elvish")
    assert [event.text for event in heard] == [text]


def test_npc_hears_the_words_as_the_game_garbled_them(stage, heard, cora):
    change_settings(stage.npc, languages=["Common"], by=THE_GAME)
    cora.at_say("Mae govannen", language="Elvish", msg_location='{object} says, "xae xo"')
    assert [event.text for event in heard] == ["xae xo"]


def test_words_without_a_language_are_always_understood(stage, heard, cora):
    change_settings(stage.npc, languages=["Common"], by=THE_GAME)
    cora.at_say("Hello")
    assert [event.text for event in heard] == ["Hello"]


def test_game_can_override_which_languages_an_npc_understands(stage, heard, cora):
    stage.npc.understands = lambda language: language == "Elvish"
    change_settings(stage.npc, languages=["Common"], by=THE_GAME)
    cora.at_say("Mae govannen", language="Elvish")
    cora.at_say("Baruk", language="Dwarvish")
    assert [event.text for event in heard] == ["Mae govannen", "(words in Dwarvish)"]


# Evennia's roleplaying contrib


@pytest.fixture
def players(stage, db):
    """Oren and Dara with the roleplaying contrib. Dara's short description is "a tall sailor"."""
    oren = create_object(Roleplayer, key="Oren", location=stage.room, nohome=True)
    dara = create_object(ContribRPCharacter, key="Dara", location=stage.room, nohome=True)
    dara.sdesc.add("a tall sailor")
    oren.heard = []
    oren.ai.hear = oren.heard.append
    return oren, dara


def emotes(dara, emote, **how):
    send_emote(dara, dara.location.contents, emote, **how)


def test_emote_is_heard_as_a_pose_with_the_name_that_the_npc_gave(players):
    oren, dara = players
    oren.recog.add(dara, "Red Dara")
    emotes(dara, '/Me nods and says "Hello, Oren."')
    (event,) = oren.heard
    assert (event.kind, event.text) == ("pose", 'nods and says "Hello, Oren."')
    assert event.speaker_name == "Red Dara"


def test_emote_has_the_names_that_the_npc_knows(players):
    oren, dara = players
    emotes(dara, "With a smile /me bows to /oren.")
    (event,) = oren.heard
    assert event.text == "With a smile a tall sailor bows to Oren."


def test_say_that_is_sent_as_an_emote_is_heard_as_speech(players):
    oren, dara = players
    speech = dara.at_pre_say("Is the ferry in?")
    emotes(dara, speech, msg_type="say", anonymous_add=None)
    (event,) = oren.heard
    assert (event.kind, event.text) == ("say", "Is the ferry in?")
    assert event.speaker_name == "a tall sailor"


def test_words_in_an_unknown_language_are_not_heard_in_an_emote(players):
    oren, dara = players
    change_settings(oren, languages=["Common"], by=THE_GAME)
    emotes(dara, '/Me whispers elvish"Mae govannen" and "Hello".')
    (event,) = oren.heard
    assert "Mae" not in event.text
    assert event.text == 'whispers "(words in elvish)" and "Hello".'
    assert event.language == "elvish"


def test_words_in_an_emote_are_heard_as_the_game_changed_them(players):
    oren, dara = players
    emotes(dara, '/Me cries shouted"Land".')
    (event,) = oren.heard
    assert '"LAND"' in event.text
    assert event.language == "shouted"


def test_npc_without_the_roleplaying_contrib_also_hears_emotes(stage, heard, players):
    _, dara = players
    change_settings(stage.npc, languages=["Common"], by=THE_GAME)
    emotes(dara, '/Me cries elvish"Mae govannen".')
    emotes(dara, '/Me cries "Land".')
    assert [event.text for event in heard] == ['cries "(words in elvish)".', 'cries "Land".']
    assert [event.language for event in heard] == ["elvish", ""]
