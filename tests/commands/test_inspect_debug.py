"""`ai/debug`: the four steps of a turn, from stored records."""

import pytest
from django.test import override_settings

from evennia_ai.commands.turn_shown import rounds_of
from evennia_ai.engine.actors import trusted
from evennia_ai.engine.knowledge.pages.page import BaseInfo
from evennia_ai.engine.knowledge.restricted.mediation import PagePassage
from evennia_ai.engine.prompt.components import GAME
from evennia_ai.store import model_calls
from evennia_ai.store.authored import components
from evennia_ai.store.erasing import erase_private
from evennia_ai.store.history import turns
from evennia_ai.store.knowledge import knowledge_bases, knowledge_searches
from evennia_ai.store.knowledge.knowledge_searches import NewSearch
from evennia_ai.store.model_calls import NewCall
from tests.commands.stage import on_screen, one_line


@pytest.fixture
def answered(stage):
    """Let Oren answer Pim once. Return the turn."""
    with stage.model("Aye."):
        stage.player.at_say("Oren, where is the bell?")
        stage.waited()
        yield turns.last_turn(stage.npc.ai.ref)


def searched(turn, *, restricted=False, ended=True, decision="", reason=""):
    """Store a search of this turn."""
    knowledge_bases.save_base(BaseInfo(key="vault", name="The vault"), by=trusted("Tam"))
    chunk = PagePassage(
        base="vault",
        base_name="Vault",
        title="Bell",
        revision="1",
        score=1.0,
        content="It hangs below.",
    )
    new = NewSearch(
        conversation=turn.conversation,
        turn=turn.number,
        speaker_ref="7",
        bases=("vault",),
        query="the drowned bell",
        restricted=restricted,
        mode="rag_retrieval",
        total=9,
        sent=4,
    )
    number = knowledge_searches.begin_search(new, (chunk,))
    if ended:
        knowledge_searches.end_search(number, "{}", decision=decision, reason=reason)
    return number


def asked_mediator(turn, outcome="answered"):
    model_calls.add_call(
        NewCall(
            npc_ref=turn.npc_ref,
            role="mediator",
            model="small-one",
            turn=turn.number,
            started_at=turn.created_at,
            seconds=0.5,
            outcome=outcome,
        )
    )


def test_search_in_a_private_conversation_is_for_admins(stage):
    with stage.model("Aye."):
        stage.plays("whisper Oren = Where is the bell?")
        stage.waited()
        turn = turns.last_turn(stage.npc.ai.ref)
        number = searched(turn)
        told = stage.builds("ai/debug oren")
        assert f"search {number}: [said in private; for Admins]" in told
        assert "drowned" not in told and "4 of 9" not in told
        admin = stage.person("Ada", permission="Admin")
        assert "the drowned bell" in on_screen(stage.sent(admin, "ai/debug oren"))


@pytest.mark.req("S0-58")
def test_debug_shows_four_steps_of_a_turn_without_a_search(stage, answered):
    lines = stage.builds("ai/debug oren").splitlines()
    assert [line for line in lines if line[:1].isdigit()] == [
        "1. dynamic_context: message #2, the last being #1; role user.",
        "2. knowledge_base_search: NOT called.",
        "3. Safe summary: NOT started; nothing restricted was searched.",
        "4. The turn ended: answered.",
    ]
    assert lines[0].startswith("Turn 1 of Oren, ")
    assert "   blocks: speaker, place" in lines


@pytest.mark.req("S0-58")
def test_debug_shows_decision_and_reason_of_a_restricted_search(stage, answered):
    number = searched(answered, restricted=True, decision="refuse", reason="policy_extraction")
    asked_mediator(answered)
    told = stage.builds("ai/debug oren")
    assert "2. knowledge_base_search: called once, searched once." in told
    assert f"search {number} (restricted) in vault" in told
    assert "3. Safe summary: started once." in told
    assert f"search {number}: 4 of 9 passages were sent" in told
    assert "the mediator was asked: small-one, answered" in told
    assert f"search {number}: decision refuse, reason policy_extraction" in told


@pytest.mark.req("S0-58")
def test_debug_hides_query_and_passages_of_a_restricted_search(stage, answered):
    searched(answered, restricted=True, decision="answer", reason="answerable")
    told = stage.builds("ai/debug oren")
    assert "drowned bell" not in told
    assert "hangs below" not in told


@pytest.mark.req("S0-58")
def test_debug_shows_the_query_of_an_open_search(stage, answered):
    number = searched(answered)
    told = stage.builds("ai/debug oren")
    assert f"search {number} (open) in vault: the drowned bell" in told
    assert "3. Safe summary: NOT started" in told
    assert f"search {number}: 4 of 9 passages given to the NPC" in told


def test_debug_shows_a_search_without_an_end(stage, answered):
    number = searched(answered, restricted=True, ended=False)
    told = stage.builds("ai/debug oren")
    assert f"search {number} has no end: the server stopped during it" in told
    assert "no model of the role mediator was asked" in told


def test_debug_leaves_out_searches_of_other_turns(stage, answered):
    with stage.model("Aye."):
        stage.player.at_say("Oren, and the ferry?")
        stage.waited()
    searched(answered)
    assert "NOT called" in stage.builds("ai/debug oren")
    assert "searched once" in stage.builds("ai/debug oren/1")


def test_debug_says_why_facts_are_missing(stage):
    components.update("dynamic_context", by=trusted("builder"), scope=GAME, enabled=False)
    with stage.model("Aye."):
        stage.player.at_say("Oren?")
        stage.waited()
    told = stage.builds("ai/debug oren")
    assert "1. dynamic_context: NOT in the request." in told
    assert "component dynamic_context is disabled" in told


def test_debug_says_if_no_provider_had_facts(stage):
    with override_settings(EVENNIA_AI_CONTEXT_PROVIDERS=[]), stage.model("Aye."):
        stage.npc.ai.known_view = None
        stage.player.at_say("Oren?")
        stage.waited()
    assert "no provider had a fact to tell" in stage.builds("ai/debug oren")


def test_an_npc_without_a_turn_has_nothing_to_debug(stage):
    assert one_line(stage.builds("ai/debug oren")) == (
        "Oren had no turn yet: it has answered nobody."
    )


def test_debug_refuses_a_value(stage, answered):
    assert "takes no '='" in one_line(stage.builds("ai/debug oren = 1"))


def test_debug_of_an_unknown_turn_is_refused(stage, answered):
    assert one_line(stage.builds("ai/debug oren/9")) == "Oren had no turn 9; the newest is 1."


def test_players_may_not_debug(stage, answered):
    assert "dynamic_context" not in stage.plays("ai/debug oren")


def test_debug_command_says_that_the_words_of_a_turn_were_erased(stage):
    with stage.model("I know."):
        stage.player.at_say("The tunnel is open.", receivers=[stage.npc], whisper=True)
        stage.waited()
    erase_private(str(stage.player.id), by=trusted("admin"))
    told = stage.builds("ai/debug oren")
    assert "Its words were erased on request" in told
    assert "tunnel" not in told


def test_turns_that_answer_different_events_are_different_turns(stage):
    with stage.model("Aye.", "Aye."):
        for said in ("Oren, one?", "Oren, two?"):
            stage.player.at_say(said)
            stage.waited()
    newest = turns.last_turn(stage.npc.ai.ref)
    assert [one.number for one in rounds_of(newest)] == [2]
