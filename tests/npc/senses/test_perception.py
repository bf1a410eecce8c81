"""What an NPC hears from speakers with and without our mixin."""

import pytest
from evennia.locks.lockhandler import get_all_lockfuncs
from evennia.objects.objects import DefaultCharacter
from evennia.utils.create import create_account, create_object

from evennia_ai.npc.senses import presence
from evennia_ai.npc.senses.perception import AISpeakerMixin
from evennia_ai.npc.senses.utterance import Utterance, uttering
from tests.effort import little_work


class SpeakingCharacter(AISpeakerMixin, DefaultCharacter):
    """A player's character with our mixin for speakers."""


@pytest.fixture
def heard(stage):
    """The events that the NPC heard so far."""
    events = []
    stage.npc.ai.hear = events.append
    return events


def mixed_in(stage, key):
    return create_object(SpeakingCharacter, key=key, location=stage.room, nohome=True)


@pytest.mark.parametrize(
    "text",
    [
        "hello",
        'she said "no", Oren',
        "{x} a } b {you.__class__} {{user}}",
        "$eval(1+1)",
        'a quote at the end "',
        "50% off, pipes a || b",
    ],
)
def test_default_say_is_heard_word_for_word(stage, heard, text):
    stage.says(stage.anna, text)
    (event,) = heard
    assert event.text == text.replace("||", "|")
    assert (event.kind, event.speaker_name, event.private) == ("say", "Anna", False)
    assert event.speaker_ref == str(stage.anna.id)
    assert event.room_ref == str(stage.room.id)


def test_whisper_is_private_and_heard_only_by_its_receiver(stage, heard):
    other = stage.make("Brida", "evennia_ai.typeclasses.AINPC")
    others = []
    other.ai.hear = others.append
    stage.whispers(stage.anna, "psst, {x}")
    (event,) = heard
    assert (event.kind, event.text, event.private) == ("whisper", "psst, {x}", True)
    assert others == []


def test_pose_is_heard_without_the_name_of_its_actor(stage, heard):
    stage.room.msg_contents(("Anna waves to Oren.", {"type": "pose"}), from_obj=stage.anna)
    (event,) = heard
    assert (event.kind, event.text) == ("pose", "waves to Oren.")


def test_heard_text_has_no_colour_codes_links_or_control_characters(stage, heard):
    stage.says(stage.anna, "|rred|n |lclook|ltclick|le \x1b[31m \u202eodd")
    assert heard[0].text == "red click odd"


@pytest.mark.req("S3-08")
@pytest.mark.parametrize("unit", ["|lc|lt", "|lca|ltb", "|luh|lt", "|lc", "|l|lcc|l|ltt", "|#fff"])
def test_many_broken_links_are_removed_with_little_work(stage, heard, unit):
    with little_work():
        stage.says(stage.anna, "Oren " + unit * (6000 // len(unit)))
    assert not {"|lc", "|lt", "|lu"} & {heard[0].text[n : n + 3] for n in range(2000)}


def test_npc_does_not_hear_itself(stage, heard):
    from evennia_ai.npc.speech.output import say_aloud

    say_aloud(stage.npc, "hello")
    stage.npc.at_say("hello", msg_self=True)
    assert heard == []


def test_npc_does_not_hear_another_room(stage, heard):
    cellar = stage.make("Cellar", "evennia.objects.objects.DefaultRoom", place=None)
    stage.anna.location = cellar
    stage.says(stage.anna, "Oren!")
    assert heard == []


def test_messages_of_other_types_are_not_heard_as_speech(stage, heard):
    stage.npc.msg("The tide turns.")
    stage.npc.msg(text=("You feel cold.", {"type": "say"}))
    stage.npc.msg(text=("Anna takes the boat.", {"type": "get"}), from_obj=stage.anna)
    assert heard == []


def test_message_to_an_npc_is_passed_on_to_its_sessions(stage):
    assert stage.npc.at_msg_receive(text=("hello", {"type": "say"}), from_obj=stage.anna) is True


@pytest.mark.parametrize(
    ("frame", "text"),
    [
        ('{object} says: "{speech}"', "hello there"),
        ("{object} says, “{speech}”", "hello there"),
        ("{object} mumbles {speech}", "hello there"),
    ],
)
def test_words_are_read_back_from_a_custom_say_frame(stage, heard, frame, text):
    stage.anna.at_say(text, msg_location=frame)
    assert heard[0].text in (text, f"mumbles {text}")


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("Anna: Oren, when does she leave?", "Oren, when does she leave?"),
        ("Anna > Oren, when?", "Oren, when?"),
        ("Oren, when does she leave?", "Oren, when does she leave?"),
        ("Oren: when?", "Oren: when?"),
        ("[Anna] Oren, when?", "[Anna] Oren, when?"),
        ("Anna calls: Oren, when?", "Oren, when?"),
        ("Anna (shouting): Oren! When?", "Oren! When?"),
        ("Anna asks, 'Oren, when?'", "'Oren, when?'"),
        ("Anna says to Oren: When?", "says to Oren: When?"),
    ],
)
def test_words_are_read_back_from_a_say_frame_without_quotes(stage, heard, line, text):
    stage.npc.msg((line, {"type": "say"}), from_obj=stage.anna)
    assert [event.text for event in heard] == [text]


def test_raw_words_of_a_speaker_with_the_mixin_are_heard_in_any_frame(stage, heard):
    speaker = mixed_in(stage, "Cora")
    speaker.at_say("hello {x}", msg_location="{object} brabbelt etwas: <{speech}>")
    (event,) = heard
    assert (event.text, event.speaker_name) == ("hello {x}", "Cora")


def test_speaker_with_the_mixin_is_heard_once(stage, heard):
    speaker = mixed_in(stage, "Cora")
    speaker.at_say("hello", msg_self=True)
    speaker.at_say("psst", receivers=[stage.npc], whisper=True)
    assert [(event.kind, event.text) for event in heard] == [("say", "hello"), ("whisper", "psst")]


def test_talk_is_heard_by_all_npcs_as_addressed_to_one(stage, heard):
    from evennia_ai.npc.speech.output import talk_to

    other = stage.make("Brida", "evennia_ai.typeclasses.AINPC")
    others = []
    other.ai.hear = others.append
    talk_to(stage.anna, stage.npc, "|rhello|n {x}")
    assert [(e.kind, e.text, e.to_ref) for e in heard] == [("talk", "hello {x}", stage.npc.ai.ref)]
    assert [(e.kind, e.text, e.to_ref) for e in others] == [("talk", "hello {x}", stage.npc.ai.ref)]


def test_speaker_name_is_the_plain_name_that_the_listener_knows(stage, heard):
    stage.anna.get_display_name = lambda looker=None, **kwargs: "|ra tall\nstranger|n"
    stage.says(stage.anna, "hello")
    assert heard[0].speaker_name == "a tall stranger"
    assert heard[0].text == "hello"


def test_event_is_marked_alone_when_only_the_speaker_is_present(stage, heard):
    stage.says(stage.anna, "hello")
    stage.ben.location = None
    stage.says(stage.anna, "hello again")
    assert [event.alone for event in heard] == [False, True]


def test_heard_text_is_cut_at_2000_characters(stage, heard):
    stage.says(stage.anna, "x" * 50_000)
    assert len(heard[0].text) == 2000


def test_npc_played_by_a_player_hears_nothing(stage, heard):
    stage.npc.__dict__["sessions"] = stage.anna.sessions
    stage.says(stage.ben, "Oren!")
    assert heard == []


def test_played_character_with_a_mind_counts_as_a_person(stage, heard):
    cora = stage.make("Cora", "evennia_ai.typeclasses.AINPC")
    cora.at_say("hello")
    cora.__dict__["sessions"] = stage.anna.sessions
    cora.at_say("hello again")
    assert [(event.hops, event.speaker_rank) for event in heard] == [(1, "NPC"), (0, "Player")]


def test_utterance_that_arrives_twice_is_heard_once(stage, heard):
    with uttering(Utterance(speaker=stage.anna, text="hello", kind="say")):
        for line in ('Anna says, "hello"', "Anna calls: hello"):
            stage.npc.msg((line, {"type": "say"}), from_obj=stage.anna)
    assert [event.text for event in heard] == ["hello"]


@pytest.mark.parametrize(
    ("permissions", "rank"),
    [((), "Player"), (("Builder",), "Builder"), (("Builder", "Admin"), "Admin")],
)
def test_rank_is_the_highest_permission_of_the_speaker(stage, heard, permissions, rank):
    stage.anna.permissions.clear()
    for permission in permissions:
        stage.anna.permissions.add(permission)
    stage.says(stage.anna, "hello")
    assert heard[0].speaker_rank == rank


def _ranks_while(stage, heard, *changes):
    """Return Anna's rank in the line that she says after each of these changes."""
    for change in changes:
        change()
        stage.says(stage.anna, "hello")
    return [event.speaker_rank for event in heard]


def test_rank_changes_at_once_with_the_permissions(stage, heard):
    permissions = stage.anna.permissions
    assert _ranks_while(
        stage,
        heard,
        permissions.clear,
        lambda: permissions.add("Admin"),
        lambda: permissions.remove("Admin"),
    ) == ["Player", "Admin", "Player"]


@pytest.mark.req("S0-26")
def test_rank_of_a_played_character_depends_on_account_and_quelling(stage, heard):
    account = create_account("Mira", email="", password="a-long-password-1")
    stage.anna.account = account
    assert _ranks_while(
        stage,
        heard,
        lambda: account.permissions.add("Admin"),
        lambda: account.attributes.add("_quell", True),
        lambda: stage.anna.permissions.add("Builder"),
        lambda: account.attributes.remove("_quell"),
        account.permissions.clear,
    ) == ["Admin", "Player", "Builder", "Admin", "Player"]


def test_superuser_has_the_highest_rank(stage, heard):
    account = create_account("Mira", email="", password="a-long-password-1", is_superuser=True)
    stage.anna.account = account
    assert _ranks_while(
        stage,
        heard,
        lambda: stage.anna.locks.cache_lock_bypass(stage.anna),
        lambda: account.attributes.add("_quell", True),
        lambda: stage.anna.locks.cache_lock_bypass(stage.anna),
    ) == ["Developer", "Developer", "Player"]


def test_replaced_perm_lock_function_is_called_for_each_line(stage, heard, monkeypatch):
    asked = iter([False] * 4 + [True] + [True])
    monkeypatch.setitem(get_all_lockfuncs(), "perm", lambda *_, **__: next(asked))
    presence._locks_of_ranks.cache_clear()
    try:
        assert _ranks_while(stage, heard, dict, dict) == ["Player", "Developer"]
    finally:
        presence._locks_of_ranks.cache_clear()
