"""Signs for players whose lines get no answer: once a minute, and only for the speaker."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from evennia_ai import happened
from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import StoreError
from evennia_ai.npc.mind.emergency import pause, resume, start_all, stop_all
from evennia_ai.npc.speech.signs import AGAIN_SECONDS, Recently
from evennia_ai.services.llm.quotas import Quota, Quotas
from evennia_ai.store.history import conversations, turns

LOST = "Oren lost the thread and missed some of what you said."
STOPPED = "Oren stands still and does not answer."


def shown(stage: Any, who: Any, sign: str) -> int:
    """Return how often a person was shown a sign."""
    return sum(line == sign for line in stage.screen_of(who))


def refuse(*_: Any, **__: Any) -> None:
    raise StoreError("the disk is full")


def pokes(stage: Any, who: Any) -> None:
    """Let a person do something that the NPC answers. Unlike lines, such acts do not join."""
    text = "{actor} pokes {to}."
    happened(stage.room, "poke", text, actor=who, to=stage.npc, wants_answer=True)
    stage.passes()


def _much_at_once(stage: Any, patch: pytest.MonkeyPatch) -> None:
    for _ in range(20):
        pokes(stage, stage.anna)


def _much_by_each(stage: Any, patch: pytest.MonkeyPatch) -> None:
    for _ in range(20):
        pokes(stage, stage.anna)
        pokes(stage, stage.ben)


def _many_lines(stage: Any, patch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        stage.says(stage.anna, f"Oren, {number}?")
        stage.whispers(stage.anna, f"{number}?")


def _many_lines_during_a_fault(stage: Any, patch: pytest.MonkeyPatch) -> None:
    with patch.context() as broken:
        broken.setattr(conversations, "append_records", refuse)
        broken.setattr(conversations, "append_each", refuse)
        for number in range(20):
            stage.says(stage.anna, f"Oren, {number}?")


def _more_than_is_kept_during_a_fault(stage: Any, patch: pytest.MonkeyPatch) -> None:
    stage.talks_with(lambda _: "Aye.", queue_limit=3)
    _many_lines_during_a_fault(stage, patch)


def _to_another_during_a_fault(stage: Any, patch: pytest.MonkeyPatch) -> None:
    stage.talks_with(lambda _: "Aye.", queue_limit=3)
    with patch.context() as broken:
        broken.setattr(conversations, "append_records", refuse)
        broken.setattr(conversations, "append_each", refuse)
        for number in range(20):
            stage.says(stage.anna, f"Ben, {number}?")


def _a_prompt_that_is_never_committed(stage: Any, patch: pytest.MonkeyPatch) -> None:
    with patch.context() as broken:
        broken.setattr(turns, "begin_turn", refuse)
        stage.says(stage.anna, "Oren?")
        for _ in range(4):
            stage.passes(5)


def _a_reply_that_is_not_committed(stage: Any, patch: pytest.MonkeyPatch) -> None:
    stage.talks_with("Aye.")
    with patch.context() as broken:
        broken.setattr(turns, "finish_turn", refuse)
        stage.says(stage.anna, "Oren?")


def _a_hook_of_the_game_that_raises(stage: Any, patch: pytest.MonkeyPatch) -> None:
    def fails() -> str:
        raise RuntimeError("a bug")

    with patch.context() as broken:
        broken.setattr(stage.npc, "why_unable", fails, raising=False)
        stage.whispers(stage.anna, "Are you there?")


# Ways in which lines get lost, and how often Anna and Ben see the sign.
LOSSES: dict[str, tuple[Callable[[Any, pytest.MonkeyPatch], None], int, int]] = {
    "much at once": (_much_at_once, 1, 0),
    "much by each of two": (_much_by_each, 1, 1),
    "more than is kept during a fault": (_more_than_is_kept_during_a_fault, 1, 0),
    "what was said to another during a fault": (_to_another_during_a_fault, 0, 0),
    "a prompt that is never committed": (_a_prompt_that_is_never_committed, 1, 0),
    "a reply that is not committed": (_a_reply_that_is_not_committed, 1, 0),
    "a hook of the game that raises": (_a_hook_of_the_game_that_raises, 1, 0),
    "many lines": (_many_lines, 0, 0),
    "many lines during a fault": (_many_lines_during_a_fault, 0, 0),
}


@pytest.mark.parametrize("name", LOSSES)
def test_only_the_speaker_is_shown_once_that_lines_are_lost(
    name: str, stage: Any, logged: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lose, anna, ben = LOSSES[name]
    stage.talks_with(lambda _: "Aye.", delay_seconds=10)
    lose(stage, monkeypatch)
    stage.passes(10)
    assert (shown(stage, stage.anna, LOST), shown(stage, stage.ben, LOST)) == (anna, ben)
    assert LOST not in {body for _, _, body in stage.records()}


def test_log_names_each_speaker_once_when_too_much_waits(stage: Any, logged: list[str]) -> None:
    stage.talks_with(lambda _: "Aye.", delay_seconds=10)
    _much_by_each(stage, pytest.MonkeyPatch())
    told = [line for line in logged if "stay unanswered" in line]
    assert [sum(f"#{who.id} " in line for line in told) for who in (stage.anna, stage.ben)] == [
        1,
        1,
    ]
    assert len(told) == 2


def test_speaker_is_shown_again_after_a_minute_when_lines_are_still_lost(stage: Any) -> None:
    stage.talks_with(lambda _: "Aye.", delay_seconds=1000)
    _much_at_once(stage, pytest.MonkeyPatch())
    stage.passes(AGAIN_SECONDS)
    _much_at_once(stage, pytest.MonkeyPatch())
    assert shown(stage, stage.anna, LOST) == 2


@pytest.mark.parametrize(("line", "anna"), [("", 0), ("waves.", 1)])
def test_sign_is_the_line_of_the_settings_when_a_game_has_its_own(
    line: str, anna: int, stage: Any
) -> None:
    stage.talks_with(lambda _: "Aye.", delay_seconds=10, lost_line=line)
    _much_at_once(stage, pytest.MonkeyPatch())
    assert shown(stage, stage.anna, LOST) == 0
    assert shown(stage, stage.anna, "Oren waves.") == anna


def test_only_a_speaker_who_addresses_the_npc_sees_once_that_all_npcs_are_stopped(
    stage: Any,
) -> None:
    stage.talks_with(lambda _: "Aye.")
    stop_all(by=trusted("Mira"))
    stage.says(stage.ben, "Anna, the fog.")
    assert shown(stage, stage.ben, STOPPED) == 0
    for _ in range(3):
        stage.says(stage.anna, "Oren?")
        stage.whispers(stage.anna, "Are you there?")
    assert (shown(stage, stage.anna, STOPPED), shown(stage, stage.ben, STOPPED)) == (1, 0)
    assert len(stage.model.requests) == 0
    start_all(by=trusted("Mira"))
    stage.says(stage.anna, "Oren?")
    assert stage.screen_of(stage.ben)[-1] == 'Oren says, "Aye."'


def test_speaker_is_shown_that_a_paused_npc_does_not_answer(stage: Any) -> None:
    stage.talks_with(lambda _: "Aye.")
    stage.player("Cato")
    stage.says(stage.anna, "Oren, hello.")
    pause(stage.npc, by=trusted("Mira"))
    stage.says(stage.ben, "Anna, the fog.")
    stage.says(stage.anna, "And the ferry?")  # without its name, but they are in conversation
    assert (shown(stage, stage.anna, STOPPED), shown(stage, stage.ben, STOPPED)) == (1, 0)
    resume(stage.npc, by=trusted("Mira"))


def test_speaker_is_shown_which_named_npcs_a_limit_of_the_line_keeps_silent(stage: Any) -> None:
    stage.make("Brida", "evennia_ai.typeclasses.AINPC")
    stage.talks_with(lambda _: "Aye.", line_npcs=1)
    stage.says(stage.anna, "Oren, Brida, good evening.")
    assert [line for line in stage.screen_of(stage.anna) if "lost" in line] == [
        "Brida lost the thread and missed some of what you said."
    ]
    assert not [line for line in stage.screen_of(stage.ben) if "lost" in line]


def test_speaker_who_waits_is_shown_that_all_npcs_are_stopped(stage: Any) -> None:
    stage.talks_with(lambda _: "Aye.", delay_seconds=10)
    for number in range(3):
        stage.says(stage.anna, f"Oren, {number}?")
    stop_all(by=trusted("Mira"))
    stage.passes(20)
    assert shown(stage, stage.anna, STOPPED) == 1
    start_all(by=trusted("Mira"))


def test_limit_line_is_said_when_a_decider_or_summary_was_refused_before(stage: Any) -> None:
    """A refused decider or summary says nothing, so it must not use up the line about the limit."""
    quotas = replace(Quotas(), player=Quota(calls_per_minute=1))
    stage.talks_with("Aye.", limits=quotas, limit_line="Enough.")
    stage.says(stage.anna, "Oren?")
    refused = stage.running.runtime().limits.refusal(
        npc_ref=stage.npc.ai.ref, player_ref=str(stage.anna.id)
    )
    assert refused is not None
    stage.says(stage.anna, "Oren?")
    assert stage.screen_of(stage.anna)[-1] == 'Oren says, "Enough."'


def test_recently_forgets_things_older_than_a_minute() -> None:
    now = [0.0]
    recently = Recently(lambda: now[0])
    assert [recently.is_first(one) for one in (1, 1, 2)] == [True, False, True]
    now[0] += AGAIN_SECONDS
    assert [recently.is_first(one) for one in (1, 2, 1)] == [True, True, False]
    now[0] += 2 * AGAIN_SECONDS
    recently.is_first(3)
    assert len(recently._happened_at) == 1
