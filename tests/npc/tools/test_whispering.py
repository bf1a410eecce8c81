"""The tool whisper: only one person hears the words, and only their conversation has them."""

from typing import Any

from tests.npc.tools.acting import a_call, a_toolbox, an_event, does


def test_whisper_is_heard_by_one_person_only(stage: Any) -> None:
    ran = does(stage, "whisper", to="Ben", text="Come at night.")
    assert (ran.ok, ran.spoke) == (True, True)
    assert stage.screen_of(stage.ben) == ['Oren whispers to you, "Come at night."']
    assert stage.screen_of(stage.anna) == []


def test_whisper_in_a_room_turn_is_recorded_in_the_private_conversation(
    stage: Any,
) -> None:
    does(stage, "whisper", to="Ben", text="Come at night.")
    assert stage.records("private") == [("assistant", "", "Come at night.")]


def test_whisper_is_recorded_before_it_is_heard(stage: Any) -> None:
    recorded: list[Any] = []
    stage.ben.at_msg_receive = lambda **_: recorded.extend(stage.records("private"))
    does(stage, "whisper", to="Ben", text="Come at night.")
    assert recorded == [("assistant", "", "Come at night.")]


def test_whisper_is_not_said_when_it_cannot_be_recorded(
    stage: Any, logged: list[str], monkeypatch: Any
) -> None:
    from evennia_ai.engine.errors import StoreError
    from evennia_ai.store.history import conversations

    def refuses(*_: Any) -> None:
        raise StoreError("the database is away")

    monkeypatch.setattr(conversations, "append_records", refuses)
    assert not does(stage, "whisper", to="Ben", text="Come at night.").ok
    assert stage.screen_of(stage.ben) == []


def test_room_record_of_a_whisper_call_and_its_result_hides_the_words(stage: Any) -> None:
    call = a_call("whisper", to="Ben", text="Come at night.")
    found = a_toolbox(stage, "whisper").find(call)
    assert found.recorded.arguments == '{"to":"Ben","text":"(whispered)"}'
    assert found.arguments.text == "Come at night."
    ran = does(stage, "whisper", to="Ben", text="Come at night.")
    assert ran.text == "You whisper to Ben, and nobody else hears it."


def test_whisper_in_its_private_conversation_is_recorded_only_as_the_call(stage: Any) -> None:
    event = an_event(stage, private=True)
    call = a_call("whisper", to="Anna", text="Come at night.")
    found = a_toolbox(stage, "whisper", event=event).find(call)
    assert found.recorded.arguments == call.arguments
    ran = does(stage, "whisper", event=event, to="Anna", text="Come at night.")
    assert ran.text == 'You whisper to Anna: "Come at night."'
    assert stage.records("private") == []


def test_private_conversation_hides_a_whisper_to_another_person(stage: Any) -> None:
    event = an_event(stage, private=True)
    call = a_call("whisper", to="Ben", text="Anna comes at night.")
    found = a_toolbox(stage, "whisper", event=event).find(call)
    assert "Anna comes" not in found.recorded.arguments


def test_whisper_to_an_absent_person_is_shown_nowhere(stage: Any) -> None:
    found = a_toolbox(stage, "whisper").find(a_call("whisper", to="Cara", text="Come at night."))
    assert found.recorded.arguments == '{"to":"Cara","text":"(whispered)"}'
    assert does(stage, "whisper", to="Cara", text="Come.").text == "There is no 'Cara' here."


def test_npc_cannot_whisper_to_itself(stage: Any) -> None:
    assert does(stage, "whisper", to="Oren", text="Hm.").text == "There is no 'Oren' here."


def test_whisper_is_refused_when_the_npc_does_not_see_the_person(stage: Any) -> None:
    stage.ben.locks.add("view:false()")
    assert does(stage, "whisper", to="Ben", text="Come.").text == "There is no 'Ben' here."


def test_mark_is_needed_to_whisper_to_the_speaker_when_two_people_share_a_name(stage: Any) -> None:
    """The bare name means the other person, whose name it was first, so it must be refused here."""
    other = stage.player("Anna")
    event = an_event(stage, speaker=other)
    told = does(stage, "whisper", event=event, to="Anna", text="Come at night.").text
    assert told == "'Anna' could be: Anna, Anna (another). Say which."
    does(stage, "whisper", event=event, to="Anna (another)", text="Come at night.")
    assert (len(stage.screen_of(other)), stage.screen_of(stage.anna)) == (1, [])
    does(stage, "whisper", to="Anna", text="Come at noon.")
    assert (len(stage.screen_of(other)), len(stage.screen_of(stage.anna))) == (1, 1)


def test_whisper_refusal_lists_several_people_with_the_name(stage: Any) -> None:
    stage.player("Benno Grey")
    stage.player("Benno Black")
    told = does(stage, "whisper", to="Benno", text="Come.").text
    assert told == "'Benno' could be: Benno Grey, Benno Black. Say which."


def test_whisper_is_refused_when_a_hook_forbids_it(stage: Any) -> None:
    stage.npc.at_pre_say = lambda message, **options: None if options["whisper"] else message
    assert not does(stage, "whisper", to="Ben", text="Come.").ok


def test_words_said_aloud_in_a_private_turn_are_recorded_in_the_room(
    stage: Any,
) -> None:
    event = an_event(stage, private=True)
    does(stage, "say", event=event, text="Mind the step.")
    does(stage, "pose", event=event, action="points at the step.")
    assert stage.records("room") == [
        ("assistant", "", "Mind the step."),
        ("assistant", "", "*points at the step.*"),
    ]


def test_words_said_aloud_in_a_room_turn_are_recorded_once(stage: Any) -> None:
    does(stage, "say", text="Mind the step.")
    assert stage.records("room") == []
