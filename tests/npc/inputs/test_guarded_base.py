"""A guarded base in whole turns: the prompt before a search, and the lines of `ai/debug`."""

import pytest

from evennia_ai.commands.turn_shown import debug_lines, rounds_of
from evennia_ai.engine.knowledge.meta_prompt import HEADING
from evennia_ai.store.history import turns
from tests.npc.knowledge.cellars import CANARIES, a_cellar, answering


@pytest.fixture
def cellar(stage):
    return a_cellar(stage)


def steps(stage):
    """Return the lines that `ai/debug` shows a builder about the newest turn."""
    builder = stage.player("Mara")
    builder.permissions.add("Builder")
    return debug_lines(builder, stage.npc, turns.last_turn(stage.npc.ai.ref))


@pytest.mark.req("S0-41", "S0-42")
def test_first_request_has_the_safe_block_of_a_guarded_knowledge_base(cellar):
    cellar.says(cellar.anna, "Oren, what of the smugglers?")
    first = cellar.minds.requests[0]
    (facts,) = [m for m in first.messages if HEADING in m.content]
    assert facts.role == "user"
    assert first.messages.index(facts) == len(first.messages) - 2
    assert facts.content.startswith(
        "Who speaks: Anna (Player).\n\n"
        f"{HEADING}\n"
        "- Name: The smugglers' cellar\n"
        "  ID: vault\n"
        "  Search: restricted\n"
        "  Routing hint: What the smugglers keep, and how one gets on with them.\n"
        "  Routing keywords: smugglers, cellar\n"
        "Current target: The smugglers' cellar (ID: vault)\n\n"
    )


@pytest.mark.req("S0-41")
def test_first_request_has_no_secret_of_a_guarded_knowledge_base(cellar):
    cellar.says(cellar.anna, "Oren, what of the smugglers?")
    sent = "\n".join(m.content for m in cellar.minds.requests[0].messages)
    assert [secret for secret in CANARIES if secret in sent] == []


@pytest.mark.req("S0-58")
def test_debug_lines_show_the_search_the_summary_and_the_decision(cellar):
    cellar.minds.mediates = answering(decision="refuse", reason="policy_extraction")
    cellar.says(cellar.anna, "Oren, what of the watchword?")
    lines = steps(cellar)
    numbered = [line for line in lines if line[:1].isdigit()]
    assert numbered == [
        numbered[0],
        "2. knowledge_base_search: called once, searched once.",
        "3. Safe summary: started once.",
        "4. The turn ended: answered.",
    ]
    assert numbered[0].startswith("1. dynamic_context: message ")
    assert any(line.endswith("decision refuse, reason policy_extraction") for line in lines)
    assert any("the mediator was asked" in line for line in lines)


@pytest.mark.req("S0-58")
def test_debug_lines_show_no_secret_of_a_guarded_knowledge_base(cellar):
    cellar.says(cellar.anna, "Oren, what of the watchword?")
    told = "\n".join(steps(cellar))
    assert [secret for secret in CANARIES if secret in told] == []
    assert "what of the watchword" not in told


@pytest.mark.req("S0-58")
def test_debug_lines_say_that_the_search_tool_was_not_called(cellar):
    cellar.minds.searches = None
    cellar.says(cellar.anna, "Oren, hello")
    assert "2. knowledge_base_search: NOT called." in steps(cellar)


def test_debug_lines_count_a_refused_call_without_a_search(cellar):
    cellar.minds.searches = {"bases": ["attic"]}
    cellar.says(cellar.anna, "Oren, what of the watchword?")
    lines = steps(cellar)
    assert "2. knowledge_base_search: called once, searched never." in lines
    assert any("was refused" in line for line in lines)


def test_debug_lines_cover_all_rounds_of_a_turn(cellar):
    cellar.says(cellar.anna, "Oren, what of the watchword?")
    last = turns.last_turn(cellar.npc.ai.ref)
    numbers = [one.number for one in rounds_of(last)]
    assert numbers == [1, 2]
    assert [one.number for one in rounds_of(turns.get_turn(last.npc_ref, 1))] == numbers
    assert steps(cellar)[0].startswith("Turns 1 to 2 of Oren")
