"""The tools remember and recall."""

from typing import Any

import pytest

from tests.npc.tools.acting import an_event, does


@pytest.fixture
def learnt(stage: Any) -> Any:
    """Return the stage after Oren learnt two things aloud and one in private."""
    does(stage, "remember", text="The ferry sails at dusk.")
    does(stage, "remember", text="Ben lost a lantern.", about="Ben")
    private = an_event(stage, private=True)
    does(stage, "remember", event=private, text="Anna hid a barrel behind the shed.")
    return stage


def test_memory_is_recalled_by_its_words(learnt: Any) -> None:
    assert does(learnt, "recall", query="ferry").text == "- The ferry sails at dusk."


def test_remember_returns_the_stored_text(stage: Any) -> None:
    ran = does(stage, "remember", text="The ferry sails at dusk.", importance=9)
    assert (ran.ok, ran.text) == (True, "Remembered: The ferry sails at dusk.")


def test_memory_about_a_person_is_recalled_by_name(learnt: Any) -> None:
    assert does(learnt, "recall", about="Ben").text == "- Ben lost a lantern."


def test_memory_about_an_absent_person_is_recalled_by_name(learnt: Any) -> None:
    learnt.ben.location = None
    assert does(learnt, "recall", about="Ben").text == "- Ben lost a lantern."


def test_whispered_memory_is_recalled_only_with_the_whisperer(learnt: Any) -> None:
    aloud = does(learnt, "recall", query="barrel").text
    with_ben = does(
        learnt, "recall", query="barrel", event=an_event(learnt, speaker=learnt.ben, private=True)
    ).text
    with_anna = does(learnt, "recall", query="barrel", event=an_event(learnt, private=True)).text
    assert [aloud, with_ben] == ["You remember nothing of that."] * 2
    assert with_anna == "- Anna hid a barrel behind the shed."


def test_recall_is_refused_when_the_person_is_unknown(stage: Any) -> None:
    told = [does(stage, "recall", about="Cara"), does(stage, "remember", text="x.", about="Cara")]
    assert [one.text for one in told] == ["There is no 'Cara' here."] * 2


def test_remember_is_refused_when_the_text_says_what_the_npc_is(stage: Any) -> None:
    ran = does(stage, "remember", text="I am a wolf.")
    assert (ran.ok, ran.text.startswith("Not remembered: ")) == (False, True)


def test_remember_reports_an_invalid_importance(stage: Any) -> None:
    from tests.npc.tools.acting import a_call, a_toolbox

    call = a_call("remember", text="The ferry sails.", importance=11)
    assert "'importance': Input should be less than" in a_toolbox(stage, "remember").find(call).text


def test_remember_is_refused_when_the_game_has_no_memory(stage: Any) -> None:
    from django.test import override_settings

    with override_settings(EVENNIA_AI_MEMORY={"enabled": False}):
        ran = does(stage, "remember", text="The ferry sails at dusk.")
    assert (ran.ok, "EVENNIA_AI_MEMORY" in ran.text) == (False, True)
