"""The switches of `ai` that operate NPCs: list, log, limits, pause and stop."""

import re
import time
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext, override_settings
from evennia.objects.models import ObjectDB
from evennia.typeclasses.attributes import AttributeProperty
from evennia.utils.create import create_object

from evennia_ai.commands.ai.status import ago, thousands
from evennia_ai.engine.actors import trusted
from evennia_ai.engine.text.columns import count_columns
from evennia_ai.npc import runtime as running
from evennia_ai.npc.mind import news
from evennia_ai.npc.model_calls.limits import CallKey, is_stopped, why_halted
from evennia_ai.npc.npc_settings import change_settings
from evennia_ai.npc.runtime import runtime
from evennia_ai.services.llm.quotas import Quota
from evennia_ai.services.settings.conf import conf
from evennia_ai.store import model_calls
from evennia_ai.store.model_calls import NewCall
from evennia_ai.typeclasses import AINPC
from tests.commands.stage import one_line
from tests.effort import little_work

BAD_INPUT = {
    "ai/list = oren": "takes no '='",
    "ai/list oren/0": "whole number from 1 on",
    "ai/list nobody": "No NPC has 'nobody' in its name or in the name of its room",
    "ai/list /2": "There is no page 2",
    "ai/log": "Usage",
    "ai/log oren = 2": "takes no '='",
    "ai/log oren": "did nothing yet",
    "ai/log oren/2": "There is no page 2",
    "ai/limits = oren": "takes no '='",
    "ai/limits nobody": "no NPC called 'nobody'",
    "ai/pause": "Usage",
    "ai/resume": "Usage",
    "ai/resume oren": "Oren is not paused",
    "ai/resume oren = x": "takes no '='",
    "ai/stopall oren": "Nothing was stopped; ai/pause stops one NPC",
    "ai/startall": "are not stopped",
    "ai/startall oren": "Usage",
}


@pytest.fixture
def talked(stage: Any) -> Any:
    """Let Oren answer Pim twice."""
    with stage.model("Aye.", "At dusk."):
        for said in ("Oren, are you there?", "Oren, when does the ferry sail?"):
            stage.player.at_say(said)
            stage.waited()
        yield stage


def npcs(count: int, stage: Any) -> None:
    """Create this many NPCs in the database, but not in memory."""
    path = "evennia_ai.typeclasses.AINPC"
    ObjectDB.objects.bulk_create(
        ObjectDB(db_key=f"Guard {number:03}", db_typeclass_path=path, db_location=stage.room)
        for number in range(count)
    )


def row_of(told: str, name: str) -> str:
    (row,) = [line for line in told.splitlines() if line.startswith(name)]
    return row


@pytest.mark.parametrize(("typed", "told"), BAD_INPUT.items())
def test_bad_input_is_one_line(stage: Any, typed: str, told: str) -> None:
    assert told in one_line(stage.builds(typed))
    assert is_stopped() == ""
    assert why_halted(stage.npc.ai.ref) == ""


@pytest.mark.parametrize("typed", ["ai", "ai/list", "ai/log oren", "ai/stopall", "ai/pause oren"])
def test_operating_is_refused_to_players(stage: Any, typed: str) -> None:
    assert "Command 'ai" in stage.plays(typed) or "not available" in stage.plays(typed)
    assert is_stopped() == ""


# Tests of the list.


def test_ai_without_switch_lists_all_npcs(stage: Any) -> None:
    create_object(AINPC, key="Karl", location=None, nohome=True)
    with stage.model("Aye."):
        told = stage.builds("ai")
    assert "2 NPCs in the game; in all 0 answering, 0 waiting; today 0 calls, 0 tokens." in told
    assert row_of(told, "Karl").split()[:4] == ["Karl", "(nowhere)", "idle", "0"]
    assert row_of(told, "Oren").split()[:4] == ["Oren", "Harbour", "idle", "0"]


def test_list_without_npcs_says_how_to_create_one(stage: Any) -> None:
    stage.npc.delete()
    assert "create/drop Oren:evennia_ai.typeclasses.AINPC" in one_line(stage.builds("ai"))


def test_an_npc_is_listed_with_its_last_turn_and_its_model(talked: Any) -> None:
    row = row_of(talked.builds("ai"), "Oren")
    assert "s, done" in row
    assert row.endswith(" scri...")


def test_an_npc_is_listed_with_what_it_used_today(stage: Any) -> None:
    npc_ref = stage.npc.ai.ref
    call = NewCall(npc_ref=npc_ref, role="speaker", started_at=time.time(), seconds=1.0)
    model_calls.add_call(replace(call, input_tokens=70))
    with stage.model("Aye."):
        assert row_of(stage.builds("ai"), "Oren").split()[5:7] == ["1", "70"]


@pytest.mark.parametrize(("typed", "state"), [("ai/off oren", "off"), ("ai/pause oren", "PAUSED")])
def test_list_says_which_npcs_do_not_answer(stage: Any, typed: str, state: str) -> None:
    stage.builds(typed)
    assert row_of(stage.builds("ai"), "Oren").split()[2] == state


def test_an_npc_whose_class_is_off_by_default_is_listed_as_off(stage: Any) -> None:
    create_object("tests.commands.test_operating.Silent", key="Silva", location=stage.room)
    assert row_of(stage.builds("ai"), "Silva").split()[2] == "off"


class Silent(AINPC):
    """An NPC that answers only after a builder has switched it on."""

    ai_enabled = AttributeProperty(False, autocreate=False)


def test_list_shows_busy_npcs_first(stage: Any) -> None:
    npcs(3, stage)
    with stage.model("Aye."):
        runtime().scheduler.offer(stage.npc.ai.ref, lambda: None)
        told = stage.builds("ai").splitlines()
    assert told[3].startswith("Oren")
    assert told[3].split()[2:4] == ["waits", "1"]


def test_the_list_has_pages(stage: Any) -> None:
    npcs(30, stage)
    told = stage.builds("ai")
    assert "Page 1 of 2; the next: ai/list /2" in told
    assert "Guard 025" not in told
    assert "Guard 025" in stage.builds("ai/list /2")


def test_the_list_can_be_filtered_by_name_and_room(stage: Any) -> None:
    npcs(25, stage)
    assert "Guard" not in stage.builds("ai/list ore")
    told = stage.builds("ai/list harb")
    assert "26 NPCs with 'harb'" in told
    assert "the next: ai/list harb/2" in told


def test_no_line_of_the_list_is_too_long_or_acts_on_the_screen(stage: Any) -> None:
    stage.npc.key = "漢" * 30
    stage.room.key = "|rred\x1b[31m" + "w" * 60
    told = stage.builds("ai")
    assert all(count_columns(line) <= 78 for line in told.splitlines())
    assert "\x1b" not in told


def test_a_list_of_300_npcs_is_quick_and_asks_the_database_a_few_times(stage: Any) -> None:
    npcs(19, stage)
    few = _queries(stage)
    npcs(281, stage)
    assert _queries(stage) == few
    assert few <= 10
    with little_work():
        stage.builds("ai")


def _queries(stage: Any) -> int:
    stage.builds("ai")
    with CaptureQueriesContext(connection) as queries:
        stage.builds("ai")
    return len(queries)


# Tests of the emergency stop.


def test_stopall_is_confirmed_and_effective(stage: Any) -> None:
    told = stage.builds("ai/stopall = the bill")
    assert "ALL NPCs of the game are stopped until ai/startall" in told
    assert is_stopped() == "stopped by Mara: the bill"


def test_stopall_is_shown_first_on_every_screen(stage: Any) -> None:
    stage.builds("ai/stopall = the bill")
    for typed in ("ai", "ai oren"):
        assert stage.builds(typed).startswith("*** ALL NPCS ARE STOPPED: stopped by Mara: the bill")


def test_startall_ends_the_stop(stage: Any) -> None:
    stage.builds("ai/stopall")
    assert "answer again" in stage.builds("ai/startall")
    assert is_stopped() == ""
    assert "STOPPED" not in stage.builds("ai")


def test_startall_must_be_typed_in_full(stage: Any) -> None:
    stage.builds("ai/stopall")
    told = stage.builds("ai/sta")
    assert "/start" in told
    assert "/startall" in told
    assert is_stopped()


def test_pause_is_in_the_status_until_resumed(stage: Any) -> None:
    told = stage.builds("ai/pause oren = says strange things")
    assert "Oren is paused until ai/resume Oren" in told
    assert "PAUSED         paused by Mara: says strange things" in stage.builds("ai oren")
    assert "The pause of Oren is over." in stage.builds("ai/resume oren")
    assert "PAUSED" not in stage.builds("ai oren")


def test_resume_says_if_all_npcs_are_stopped(stage: Any) -> None:
    stage.builds("ai/pause oren", "ai/stopall")
    assert "The whole game is stopped, though" in stage.builds("ai/resume oren")


def test_stopall_counts_what_it_ended(stage: Any) -> None:
    with stage.model("Aye."):
        stage.player.at_say("Oren, are you there?")
        runtime().recorder.flush()
        assert "Answers dropped: 1." in stage.builds("ai/stopall")


# Tests of the log.


def test_log_shows_turns_and_whom_they_answered(talked: Any) -> None:
    told = talked.builds("ai/log oren").splitlines()
    assert told[0] == "What Oren did, page 1, the newest first:"
    assert [line.split()[0] for line in told if line.startswith("#")] == ["#2", "#1"]
    assert told[1].endswith("say by Pim")
    assert "done in" in told[2]
    assert told[2].endswith("answered")


def test_log_shows_the_calls_of_a_turn(talked: Any) -> None:
    model_calls.add_call(
        NewCall(
            npc_ref=talked.npc.ai.ref,
            role="speaker",
            model="small",
            turn=2,
            started_at=time.time(),
            seconds=2.3,
            first_piece_seconds=0.4,
            input_tokens=1200,
            cached_tokens=1100,
            output_tokens=45,
            nanodollars=150_600,
        )
    )
    told = talked.builds("ai/log oren")
    assert "small: 1200 in (1100 cached), 45 out, $0.00015, 2.3 s, begun after 0.4" in told


def test_log_shows_calls_outside_of_turns_and_their_failures(stage: Any) -> None:
    model_calls.add_call(
        NewCall(
            npc_ref=stage.npc.ai.ref,
            role="decider",
            model="small",
            started_at=time.time(),
            seconds=5.0,
            input_tokens=80,
            is_estimated=True,
            outcome="failed:timeout",
        )
    )
    told = stage.builds("ai/log oren")
    line = "decider, small: about 80 in, 0 out, no known price, 5.0 s, failed:timeout"
    assert line in told.splitlines()[2]


def test_log_names_settings_as_they_are_typed(stage: Any) -> None:
    change_settings(stage.npc, by=trusted("Mara"), hop_limit=1, languages=["Common", "Elvish"])
    told = stage.builds("ai/log oren")
    assert "set hops: not set -> 1, by Mara" in told
    assert "set languages: not set -> Common, Elvish, by Mara" in told


def test_log_shows_changed_settings(stage: Any) -> None:
    change_settings(stage.npc, by=trusted("Mara"), temperature=0.5)
    assert "set temperature: not set -> 0.5, by Mara" in stage.builds("ai/log oren")


def test_log_pages_show_each_entry_once(stage: Any) -> None:
    with stage.model(*["Aye."] * 12):
        for number in range(12):
            if number == 1:
                change_settings(stage.npc, by=trusted("Mara"), temperature=0.5)
            stage.player.at_say("Oren, are you there?")
            stage.waited()
        first, second = stage.builds("ai/log oren"), stage.builds("ai/log oren/2")
    assert "Older: ai/log Oren/2" in first
    assert [line.split()[0] for line in second.splitlines() if line[0] == "#"] == ["#2", "#1"]
    assert ("set temperature" in first, "set temperature" in second) == (False, True)


def test_no_line_of_the_log_is_too_long(stage: Any) -> None:
    change_settings(stage.npc, by=trusted("M" * 100), thinking="t" * 200)
    assert all(count_columns(line) <= 78 for line in stage.builds("ai/log oren").splitlines())


# Tests of the limits.


@pytest.fixture
def refused(stage: Any) -> Iterator[Any]:
    """Let Oren answer Pim once and refuse him twice, until Pim may ask no more."""
    with stage.model(*["Aye."] * 9):
        change_settings(stage.npc, by=trusted("Mara"), limits={"calls_per_day": 1})
        for said in ("Oren, are you there?", "Oren, hello?", "Oren!"):
            stage.player.at_say(said)
            stage.waited()
        yield stage


def test_the_log_has_every_refused_utterance(refused: Any) -> None:
    told = refused.builds("ai/log oren")
    shown = [line for line in told.splitlines() if "refused:" in line]
    assert len(shown) == 2
    assert all("refused: say by Pim, record #" in line for line in shown)
    assert told.count("the NPC's calls per day") == 2


def test_limits_show_who_was_refused_and_when(refused: Any) -> None:
    told = refused.builds("ai/limits")
    heading, who, limit = told.splitlines()[-3:]
    assert heading == "Refused today, the last first:"
    assert re.match(r"  \d{4}-\d\d-\d\d \d\d:\d\d", who)
    assert f"Pim (#{refused.player.id}) by Oren (#{refused.npc.id}), 2 times" in who
    assert limit.strip() == "the NPC's calls per day"


def test_limits_of_an_npc_show_whom_it_refused(refused: Any) -> None:
    told = refused.builds("ai/limits oren")
    assert f"Pim (#{refused.player.id}), 2 times" in told


def test_log_says_if_no_model_was_asked(stage: Any) -> None:
    model_calls.add_call(
        NewCall(
            npc_ref=stage.npc.ai.ref,
            role="decider",
            model="small",
            started_at=time.time(),
            seconds=0.0,
            outcome="unsent:unavailable",
        )
    )
    assert "decider, small: not asked: it rests" in stage.builds("ai/log oren")


def test_limits_show_used_and_allowed(stage: Any) -> None:
    with stage.model("Aye."):
        told = stage.builds("ai/limits")
    assert "game             calls per minute           0 of 600" in told
    assert "tokens per day             0 of no limit" in told
    assert "dollars per month         $0 of no limit" in told
    assert "each player      20 calls per minute, 2000 calls per day" in told


def test_limits_of_an_npc_mark_its_own(stage: Any) -> None:
    change_settings(stage.npc, by=trusted("Mara"), limits={"calls_per_day": 5})
    with stage.model("Aye."):
        told = stage.builds("ai/limits oren")
    assert "Oren             calls per day              0 of 5 (its own)" in told
    assert "Oren             calls per minute           0 of 60" in told


def test_limits_show_who_is_at_a_limit(stage: Any) -> None:

    quotas = replace(conf().limits, player=Quota(calls_per_minute=1))
    with stage.model("Aye."):
        live = running.runtime_of(replace(conf(), limits=quotas), clock=stage.clock)
        running.install(live)
        ref = str(stage.player.id)
        live.limits.begun(CallKey(npc_ref=stage.npc.ai.ref, player_ref=ref))
        assert f"player Pim (#{ref}) is at its 1 calls per minute" in stage.builds("ai/limits")


def test_the_status_tells_what_an_npc_used_and_has_left(stage: Any) -> None:
    model_calls.add_call(
        NewCall(
            npc_ref=stage.npc.ai.ref,
            role="speaker",
            started_at=time.time(),
            seconds=1.0,
            input_tokens=200,
            cached_tokens=150,
            output_tokens=30,
            nanodollars=4_200_000,
        )
    )
    with stage.model("Aye."):
        told = stage.builds("ai oren")
    assert "today          1 call, 200 tokens in, 75 % cached, 30 out, $0.0042" in told
    assert "this month     $0.0042" in told
    assert "ever           1 call, 230 tokens, $0.0042" in told
    assert "left           60 calls per minute, 9999 calls per day" in told


def test_money_of_the_game_is_shown_with_its_limits_and_who_spent_it(stage: Any) -> None:
    ref, player = stage.npc.ai.ref, str(stage.player.id)
    call = NewCall(npc_ref=ref, player_ref=player, role="speaker", started_at=0.0, seconds=1.0)
    model_calls.add_call(replace(call, started_at=1.0, nanodollars=2 * 10**9))
    limits = {"game": {"dollars_per_day": 2, "dollars_per_month": 30}}
    far = {"default": {"base_url": "https://api.example/v1", "model": "small"}}
    with override_settings(EVENNIA_AI_LIMITS=limits, EVENNIA_AI_PROFILES=far), stage.model("Aye."):
        overview, used = stage.builds("ai"), stage.builds("ai/limits")
    assert (
        "Models cost $2.00 of $2.00 today, $2.00 of $30.00 this month; see ai/limits." in overview
    )
    why = "the game has used its $2.00 per day; again in"
    assert f"! No NPC asks a model: {why}" in joined(overview)
    assert "raise the limit in the settings and type @reload" in joined(overview)
    unknown = "! no price known for model small of profile default: set EVENNIA_AI_PROFILES"
    assert unknown in joined(overview)
    assert unknown in joined(used)
    assert f"npc Oren (#{ref}) cost $2.00 this month, $2.00 today" in used
    assert f"player Pim (#{player}) cost $2.00 this month, $2.00 today" in used


def test_money_is_not_mentioned_if_models_cost_nothing(stage: Any) -> None:
    with stage.model("Aye."):
        assert "$" not in stage.builds("ai")


def joined(told: str) -> str:
    """Return text with each line break and indentation replaced by a space."""
    return " ".join(told.split())


def test_forgetting_a_player_removes_them_from_the_call_log(stage: Any) -> None:
    model_calls.add_call(
        NewCall(
            npc_ref=stage.npc.ai.ref,
            player_ref=str(stage.player.id),
            role="speaker",
            started_at=1.0,
            seconds=1.0,
        )
    )
    stage.builder.permissions.add("Admin")
    told = stage.builds("ai/forget = pim", "yes")
    assert "1 call of a model was made for their words; that it was for theirs is forgotten" in told
    assert model_calls.count_of_player(str(stage.player.id)) == 0


# Tests of the columns.


@pytest.mark.parametrize(
    ("number", "shown"),
    [(0, "0"), (99_999, "99999"), (123_456, "123k"), (9_999_999, "10000k"), (10**8, "100M")],
)
def test_a_large_number_fits_its_column(number: int, shown: str) -> None:
    assert thousands(number) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(-1, "0 s"), (59, "59 s"), (60, "1 m"), (7200, "2 h"), (86_400 * 9, "9 d")],
)
def test_time_is_shown_in_its_largest_unit(seconds: float, shown: str) -> None:
    assert ago(seconds) == shown


def test_news_go_only_to_connected_builders_who_asked(stage, monkeypatch):
    people = (stage.builder, stage.player, None)
    sessions = [SimpleNamespace(get_puppet=lambda who=who: who) for who in people]
    monkeypatch.setattr(news.SESSION_HANDLER, "get_sessions", lambda: sessions)
    assert "no messages about problems" in stage.builds("ai/tell")
    assert "You are told when" in stage.builds("ai/tell on")
    news.switch_news(stage.player, True)
    heard = {who.key: [] for who in (stage.builder, stage.player)}
    for who in (stage.builder, stage.player):
        monkeypatch.setattr(who, "msg", heard[who.key].append, raising=False)
    news.tell_builders("[ai] |rwhat")
    assert heard == {"Mara": ["[ai] ||rwhat"], "Pim": []}
    monkeypatch.undo()
    stage.builds("ai/tell off")
    assert not news.has_news(stage.builder)


def test_finding_builders_who_asked_for_news_is_one_query(stage, monkeypatch, query_count):
    here = (stage.builder, stage.player, stage.npc)
    sessions = [SimpleNamespace(get_puppet=lambda who=who: who) for who in here]
    monkeypatch.setattr(news.SESSION_HANDLER, "get_sessions", lambda: sessions)
    assert query_count(lambda: news.tell_builders("[ai] what")) == 1


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("ai/sto", "stopall"),
        ("ai/stop", "stopall"),
        ("ai/starta", "startall"),
        ("ai/forg oren", "forget"),
        ("ai/rese oren", "reset"),
    ],
)
def test_dangerous_switches_must_be_typed_in_full(stage, typed, meant):
    told = stage.builds(typed)
    assert f"if you mean /{meant}, write the whole word" in told
    assert "Nothing was changed" in told
    assert not is_stopped()


# Tests of `ai/check`.


def test_check_is_for_admins(stage):
    assert "for Admins" in stage.builds("ai/check")


def test_check_tests_the_named_profile(stage):
    stage.builder.permissions.add("Admin")
    for typed in ("ai/check", "ai/check default"):
        assert "ok    address   the client 'offline' asks no server" in stage.builds(typed)
    told = stage.builds("ai/check defualt")
    assert told == "There is no profile 'defualt'; did you mean default? ai/profile lists them."
    assert "takes no '='" in stage.builds("ai/check default = 1")
