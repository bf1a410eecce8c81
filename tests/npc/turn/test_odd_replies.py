"""Replies that do not seem to come from the character: said and counted, or asked for again."""

import pytest
from django.test import override_settings

from evennia_ai.commands.ai.operating import log_lines
from evennia_ai.engine.actors import THE_GAME
from evennia_ai.npc.model_calls.watching import Watcher
from evennia_ai.npc.npc_settings import change_settings
from evennia_ai.services.llm.odd_replies import oddities
from evennia_ai.services.settings.conf import conf
from evennia_ai.store import model_calls
from tests.npc.turn.test_failures import FALLBACK, checked_turns

ODD = "As an AI language model, I cannot leave the quay."
GOOD = "I never leave the quay."


class Counts(Watcher):
    def __init__(self):
        self.odd = []

    def odd_reply(self, model, odd):
        self.odd.append((model, odd))


@pytest.fixture
def retrying(stage):
    stage.npc.fallback_line = FALLBACK
    with override_settings(EVENNIA_AI_ODD_REPLIES="retry"):
        conf.cache_clear()
        yield stage
    conf.cache_clear()


def outcomes(stage):
    numbers = [turn.number for turn in checked_turns(stage)]
    return [call.outcome for call in model_calls.calls_of_turns(stage.npc.ai.ref, numbers)]


def test_odd_reply_is_said_and_counted_by_default(stage):
    stage.talks_with(ODD)
    counts = Counts()
    stage.npc.ai._current.runtime.watch.add(counts)
    stage.says(stage.anna, "Oren?")
    assert stage.screen_of(stage.anna)[-1] == f'Oren says, "{ODD}"'
    assert outcomes(stage) == ["answered:as_ai"]
    assert [odd for _, odd in counts.odd] == [("as_ai",)]
    log = "\n".join(log_lines(stage.npc, 1))
    assert "odd replies of the model: 1 (as_ai)" in log
    assert ", answered:as_ai" in log
    assert model_calls.total_use(stage.npc.ai.ref).failures == 0


def test_model_is_asked_once_more_with_a_reminder_after_an_odd_reply(retrying, logged):
    model = retrying.talks_with(ODD, GOOD)
    retrying.says(retrying.anna, "Oren?")
    assert retrying.screen_of(retrying.anna)[-1] == f'Oren says, "{GOOD}"'
    first, second = ("\n".join(one.content for one in r.messages) for r in model.requests)
    reminder = "How you answer this time (the game): speak as the character"
    assert (reminder in first, reminder in second) == (False, True)
    assert ODD not in second
    assert outcomes(retrying) == ["answered:as_ai", "answered"]


def test_fallback_line_is_said_after_a_second_odd_reply(retrying, logged):
    model = retrying.talks_with(ODD, ODD, GOOD)
    retrying.says(retrying.anna, "Oren?")
    assert retrying.screen_of(retrying.anna)[-1] == f'Oren says, "{FALLBACK}"'
    assert len(model.requests) == 2
    assert outcomes(retrying) == ["answered:as_ai", "answered:as_ai"]


def test_npc_that_only_watches_says_an_odd_reply_in_a_game_that_retries(retrying):
    change_settings(retrying.npc, odd_replies="watch", by=THE_GAME)
    model = retrying.talks_with(ODD)
    retrying.says(retrying.anna, "Oren?")
    assert retrying.screen_of(retrying.anna)[-1] == f'Oren says, "{ODD}"'
    assert len(model.requests) == 1


def test_same_answer_again_is_odd(stage):
    stage.talks_with(*["The ferry leaves at the evening slack."] * 2)
    stage.says(stage.anna, "Oren, when does she leave?")
    stage.says(stage.anna, "Oren, when does she come back?")
    assert outcomes(stage) == ["answered", "answered:repeated"]


@pytest.mark.parametrize(
    ("text", "asked", "earlier", "odd"),
    [
        ("Паром уходит в восемь часов.", "When does the ferry leave?", (), ["script"]),
        ("渡し船は夕方に出ます。", "When does the ferry leave?", (), ["script"]),
        ("Паром уходит в восемь часов.", "Когда уходит паром, скажи?", (), []),
        ("Паром уходит в восемь часов.", "When does it leave?", ("Добрый вечер, Анна.",), []),
        ("Aye.", "Wann geht die Fähre denn heute?", (), []),
        ("Aye.", "And then?", ("Aye.",), []),
        ("THE FERRY LEAVES AT NOON!", "And?", ("The ferry leaves at noon.",), ["repeated"]),
    ],
)
def test_reply_is_compared_with_the_question_and_the_last_answer(text, asked, earlier, odd):
    assert list(oddities(text, asked=asked, earlier=earlier)) == odd


def test_reply_ends_before_words_for_somebody_who_has_left(stage):
    stage.talks_with("Evening.", "He went home.\nBen: Who, me?")
    stage.says(stage.ben, "Oren, hello.")
    stage.ben.location = None
    stage.says(stage.anna, "Oren, where is Ben?")
    assert stage.screen_of(stage.anna)[-1] == 'Oren says, "He went home."'
