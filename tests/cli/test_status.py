"""`evennia-ai status`: the state of a game and of one NPC, as commands and pages show it."""

import json
import time
from dataclasses import replace

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.text.plain_values import plain_value


@pytest.fixture
def ned(db, monkeypatch) -> str:
    """Use the test's database as that of a game in which Ned answered once and was paused."""
    from evennia.utils.create import create_object

    from evennia_ai.store.history.conversations import get_or_open_conversation
    from evennia_ai.store.model_calls import Halt, NewCall, add_call, add_halt
    from evennia_ai.typeclasses import AINPC
    from tests.store.builders import a_turn

    monkeypatch.setattr("evennia_ai.cli.opened_game", lambda folder: None)
    create_object(AINPC, key="Tilda", nohome=True)
    ref = str(create_object(AINPC, key="Ned", nohome=True).id)
    a_turn(get_or_open_conversation(ref, kind="room", place_ref="3"), "Hello.", reply="Evening.")
    call = NewCall(npc_ref=ref, role="speaker", started_at=time.time(), seconds=1.0)
    add_call(
        replace(call, input_tokens=200, cached_tokens=150, output_tokens=30, nanodollars=4_200_000)
    )
    add_call(replace(call, npc_ref="999", input_tokens=1))
    halt = Halt(npc_ref=ref, halted_by="Mara", halted_at=time.time(), reason="the\x1b[31m bill")
    add_halt(halt, by=trusted("Mara"))
    return ref


def test_status_of_one_npc_shows_its_turn_use_and_pause(call, ned) -> None:
    told = call("status", "ned")
    assert told.status == 0, told.err
    first, *others = told.out.splitlines()
    assert first == rf"Ned (#{ned}): paused by Mara: the\x1b[31m bill"
    assert "  conversations  1 room" in others
    assert "  today          calls 1, tokens in 200 (75 % cached), out 30, $0.0042" in others
    assert "  this month     calls 1, tokens in 200 (75 % cached), out 30, $0.0042" in others
    assert "  last turn      turn 1 " in told.out


def test_status_of_the_game_lists_all_npcs(call, ned) -> None:
    told = call("status").out.splitlines()
    assert told[0].startswith("NPCs: 2; today calls 2, ")
    assert told[1] == "this month $0.0042, 1 call without a known price"
    assert told[2].startswith(f"Ned (#{ned}): paused by Mara")
    assert "): on; no turn yet; today calls 0" in told[3]


def test_status_as_json_is_the_value_that_pages_show(call, ned) -> None:
    from evennia_ai.npc.mind.status import stored_game_status, stored_status

    now = time.time()
    shown = json.loads(json.dumps(plain_value(stored_status(ned, now=now))))
    told = call("status", f"#{ned}", "--json").json
    assert told == shown
    assert (told["state"], told["now"], told["today"]["cached_percent"]) == ("paused", None, 75)
    told = call("status", "--json").json
    assert told["game"] == json.loads(json.dumps(plain_value(stored_game_status(now=now))))
    assert (told["month"]["nanodollars"], told["month"]["unpriced_calls"]) == (4_200_000, 1)
    assert [one["name"] for one in told["npcs"]] == ["Ned", "Tilda"]


@pytest.mark.parametrize("name", ["nobody", "#999999"])
def test_status_refuses_a_name_that_is_no_npc(call, ned, name) -> None:
    told = call("status", name)
    assert (told.status, told.out) == (2, "")
    assert f"no NPC called '{name}' has a mind" in told.err
