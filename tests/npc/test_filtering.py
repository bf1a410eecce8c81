"""The game's own filter withholds words of players and of models."""

from dataclasses import replace
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from evennia_ai.checks import check_tools
from evennia_ai.engine.actors import THE_GAME
from evennia_ai.engine.prompt.messages import ToolCall
from evennia_ai.npc.filtering import FilteredWords, InOrder
from evennia_ai.npc.npc_settings import change_settings
from evennia_ai.npc.watch.request_log import RequestLog
from evennia_ai.services.llm.chat import ChatReply
from evennia_ai.services.settings.kinds import FilterRules
from evennia_ai.store.history import turns
from world import word_filter

HERE = __name__
REASON = "the word 'password' is on the list"
VERDICT = f"withheld by the game: {REASON}"
LINE = FilterRules().line
WAITING: list[Deferred[str]] = []
ASKED: list[FilteredWords] = []


@pytest.fixture(autouse=True)
def _nothing_waits() -> None:
    WAITING.clear()
    ASKED.clear()


def listed(words: FilteredWords) -> str:
    ASKED.append(words)
    return word_filter.said(words)


async def listed_by_coroutine(words: FilteredWords) -> str:
    return listed(words)


def waits(words: FilteredWords) -> "Deferred[str]":
    ASKED.append(words)
    WAITING.append(Deferred())
    return WAITING[-1]


def fails(words: FilteredWords) -> str:
    raise RuntimeError("a bug of the game")


def rules(**names: Any) -> FilterRules:
    paths = {key: f"{HERE}.{names.pop(key)}" for key in ("heard", "said") if key in names}
    return FilterRules(**paths, **names)


class Counting(RequestLog):
    """A watcher that keeps what was withheld and how turns ended."""

    def __init__(self) -> None:
        super().__init__(in_full=False)
        self.held: list[tuple[str, str]] = []
        self.ended: list[str] = []

    def withheld(self, npc_ref: str, side: str, reason: str) -> None:
        self.held.append((side, reason))

    def turn_ended(self, turn: Any, outcome: Any, ended_at: float) -> None:
        self.ended.append(outcome)


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counting:
    made = Counting()
    monkeypatch.setattr("evennia_ai.npc.runtime.watchers_of", lambda *_, **__: [made])
    return made


@pytest.mark.parametrize("function", ["listed", "listed_by_coroutine"])
def test_withheld_words_of_a_player_are_not_recorded_and_not_answered(
    stage: Any, counts: Counting, function: str
) -> None:
    brida = stage.make("Brida", "evennia_ai.typeclasses.AINPC")
    stage.talks_with(lambda _: "Aye.", filter=rules(heard=function))
    stage.says(stage.anna, "Oren, my password is rum.")
    assert [body for _, _, body in stage.records()] == [f"({VERDICT})"]
    assert stage.model.requests == []
    assert stage.screen_of(stage.anna)[-1] == "Oren shakes the head and does not answer."
    assert not any("shakes" in line for line in stage.screen_of(stage.ben))
    (decision,) = stage.npc.ai.attention.heard_lately()
    assert decision.why == VERDICT
    assert counts.held == [("heard", REASON)] * 2
    assert len(ASKED) == 1 and ASKED[0].person == stage.anna and not ASKED[0].private
    assert not brida.ai.is_busy


@pytest.mark.parametrize("function", ["listed", "listed_by_coroutine"])
def test_withheld_answer_of_a_model_is_neither_said_nor_stored(
    stage: Any, counts: Counting, function: str
) -> None:
    stage.talks_with("Tell me your password.", "Aye.", filter=rules(said=function))
    stage.says(stage.anna, "Oren, hello?")
    assert stage.screen_of(stage.anna)[-1] == f'Oren says, "{LINE}"'
    turn = turns.last_turn(stage.npc.ai.ref)
    assert turn is not None and turn.outcome == VERDICT
    assert not any("Tell me" in body for _, _, body in stage.records())
    assert (counts.held, counts.ended) == ([("said", REASON)], ["withheld"])
    stage.says(stage.anna, "Oren, again?")
    assert stage.screen_of(stage.anna)[-1] == 'Oren says, "Aye."'


def test_filter_reads_the_words_in_calls_of_tools(stage: Any) -> None:
    change_settings(stage.npc, tools=("say",), by=THE_GAME)
    call = ToolCall(id="1", name="say", arguments='{"text": "The password, please."}')
    reply = ChatReply(text="", model="scripted", tool_calls=(call,))
    stage.talks_with(reply, "Aye.", filter=rules(said="listed"))
    stage.says(stage.anna, "Oren, hello?")
    assert stage.screen_of(stage.anna)[-1] == f'Oren says, "{LINE}"'
    assert len(stage.model.requests) == 1


@pytest.mark.parametrize(("on_failure", "is_heard"), [("withhold", False), ("pass", True)])
@pytest.mark.parametrize("function", ["fails", "waits", "missing"])
@pytest.mark.parametrize("side", ["heard", "said"])
def test_setting_decides_when_the_filter_gives_no_verdict(
    stage: Any, logged: list[str], side: str, function: str, on_failure: Any, is_heard: bool
) -> None:
    given = rules(**{side: function}, on_failure=on_failure)
    stage.talks_with("Aye.", filter=given)
    stage.says(stage.anna, "Oren, hello?")
    stage.passes(given.seconds + 1)
    assert (stage.screen_of(stage.anna)[-1] == 'Oren says, "Aye."') == is_heard
    assert any("EVENNIA_AI_FILTER" in line and "gave no verdict" in line for line in logged)
    bodies = [body for _, _, body in stage.records()]
    withheld = "(withheld by the game: the filter gave no verdict)"
    assert (withheld in bodies) == (side == "heard" and not is_heard)


def test_words_are_heard_in_their_order_although_verdicts_are_not(stage: Any) -> None:
    stage.talks_with(lambda _: "Aye.", filter=rules(heard="waits"))
    stage.says(stage.anna, "The first.")
    stage.says(stage.ben, "The second.")
    WAITING[1].callback("")
    stage.passes()
    assert stage.records() == []
    assert stage.npc.ai.is_busy
    WAITING[0].callback("")
    stage.passes()
    assert [body for _, _, body in stage.records()] == ["The first.", "The second."]
    assert not stage.npc.ai.is_busy


def test_nothing_is_said_early_when_a_filter_reads_answers(stage: Any) -> None:
    from evennia_ai.services.endpoints import Access
    from evennia_ai.services.llm.clients.scripted import ScriptedModel

    model = ScriptedModel(["Good evening. Tell me your password."])
    plain = Access(model=model)
    access = Access(model=model, profile=replace(plain.profile, speaks_early=True))
    stage.opens(access, filter=rules(said="listed"))
    stage.says(stage.anna, "Oren, hello?")
    assert not any("Good evening" in line for line in stage.screen_of(stage.anna))


def test_values_in_order_are_passed_on_once() -> None:
    passed: list[tuple[int, str]] = []
    order, verdicts = InOrder(lambda value, why: passed.append((value, why))), []
    for number in range(3):
        verdicts.append(Deferred())
        order.add(number, verdicts[-1])
    for number in (2, 0, 1):
        verdicts[number].callback(str(number))
    assert passed == [(0, "0"), (1, "1"), (2, "2")]
    assert len(order) == 0


def test_check_names_a_function_that_does_not_exist() -> None:
    from django.test import override_settings

    with override_settings(EVENNIA_AI_FILTER={"said": "world.word_filter.nothing"}):
        (problem,) = check_tools()
    assert problem.id == "evennia_ai.E142"
