"""`ai/set` and `ai/profile`: the settings of an NPC, where they come from, and changes."""

import re
from pathlib import Path

import pytest
from django.test import override_settings

from evennia_ai.commands.ai.settings import ROWS
from evennia_ai.engine.actors import THE_GAME
from evennia_ai.npc import runtime as running
from evennia_ai.npc.npc_settings import change_settings, changes_of, settings_of
from tests.commands.stage import one_line

KEY = "sk-very-secret-4711"
PROFILES = {
    "cheap": {
        "base_url": "http://127.0.0.1:9/v1",
        "model": "small",
        "api_key_env": "CHEAP_KEY",
        "temperature": 0.7,
    },
    "dear": {"base_url": "http://127.0.0.1:9/v1", "model": "large", "context_tokens": 1000},
}
ROLES = {"speaker": ["cheap", "dear"], "decider": "cheap"}

BAD_INPUT = {
    "ai/set": "Usage: ai/set <npc>",
    "ai/set nobody": "no NPC called 'nobody'",
    "ai/set oren =": "Usage: ai/set <npc>",
    "ai/set oren = mood bad": "There is no setting 'mood'; did you mean mode? Nothing was",
    "ai/set oren = xyzzy 1": "There is no setting 'xyzzy'; there are model, temperature,",
    "ai/set oren = temperature hot": "temperature: must be a valid number, not 'hot'. Nothing was",
    "ai/set oren = temperature nan": "temperature: must be a finite number",
    "ai/set oren = temperature 9": "temperature: must be less than or equal to 2, not 9.0",
    "ai/set oren = hops many": "hops: must be a valid integer, not 'many'",
    "ai/set oren = hops 1.5": "hops: must be a valid integer, not '1.5'",
    "ai/set oren = mode loud": "mode: must be 'name_match', 'always', 'whisper_only' or 'decide'",
    "ai/set oren = cooldown -1": "cooldown: must be greater than or equal to 0",
    "ai/set oren = tick 1": "tick: must be 0 for never, or at least 5",
    "ai/set oren = limits five": "Limits are written like calls_per_minute=5",
    "ai/set oren = limits calls_per_year=5": "there is no limit 'calls_per_year'",
    "ai/set oren = base_url http://evil.example": "There is no setting 'base_url'",
    "ai/set oren = api_key sk-1": "There is no setting 'api_key'",
    "ai/set oren = profile cheap": "For that type ai/profile <npc> = <profile>. Nothing was",
    "ai/set oren = tools say": "For that type ai/tools <npc> = <tools>. Nothing was changed.",
    "ai/set oren = reply_tokens 8192": "must be fewer than the 8192 of the profile",
    "ai/profile nobody": "no NPC called 'nobody'",
    "ai/profile oren =": "Usage: ai/profile",
    "ai/profile = cheap": "Usage: ai/profile",
    "ai/profile oren = cheep": "there is no profile 'cheep'; did you mean cheap?",
    "ai/profile oren = http://evil.example": "there is no profile 'http",
}


@pytest.fixture
def harbour(stage, monkeypatch):
    """Return the stage with two profiles and a secret key."""
    monkeypatch.setenv("CHEAP_KEY", KEY)
    with override_settings(EVENNIA_AI_PROFILES=PROFILES, EVENNIA_AI_MODEL_ROLES=ROLES):
        before = running.install(None)
        yield stage
        running.runtime().close()
        running.install(before)


def rows(told):
    """Return the lines of a table by their first word. A row may continue on the next line."""
    whole = re.sub(r"\n {3,}", " ", told)
    lines = [line.split(maxsplit=1) for line in whole.splitlines() if line.startswith("  ")]
    return {line[0]: line[1] for line in lines}


def test_each_line_fits_a_terminal(harbour):
    change_settings(
        harbour.npc,
        thinking=f"{'strokes his beard and ' * 8}frowns.",
        languages=["x" * 40, "y" * 40, "z" * 30],
        by=THE_GAME,
    )
    for typed in ("ai/set oren", "ai/profile", "ai oren", "ai/mode oren", "ai/log oren", "ai"):
        assert max(map(len, harbour.builds(typed).splitlines())) <= 78, typed


def test_all_settings_are_listed_with_where_they_come_from(harbour):
    change_settings(
        harbour.npc, mode="always", reply_tokens=200, languages=["common", "elvish"], by=THE_GAME
    )
    told = harbour.builds("ai/set oren")

    assert told.startswith("Settings of Oren:")
    assert {name: " ".join(line.split()) for name, line in rows(told).items()} == {
        "profile": "cheap the game",
        "model": "small profile cheap",
        "temperature": "0.7 profile cheap",
        "top_p": "up to the server profile cheap",
        "reply_tokens": "200 this NPC",
        "mode": "always this NPC",
        "cooldown": "1 the game",
        "engagement": "60 the game",
        "tick": "never the game",
        "hops": "3 the game",
        "thinking": "thinks it over. the game",
        "odd_replies": "watch the game",
        "talkativeness": "0.5 the game",
        "speaks": "none the game",
        "languages": "common, elvish this NPC",
        "react_to": "what is addressed to it the game",
        "limits": "those of the game the game",
    }


@pytest.mark.parametrize(
    ("typed", "field", "value", "told"),
    [
        ("model tiny", "model", "tiny", "model is tiny now; it was small."),
        ("temperature 0.5", "temperature", 0.5, "temperature is 0.5 now; it was 0.7."),
        ("top_p 1", "top_p", 1.0, "top_p is 1 now; it was up to the server."),
        ("reply_tokens 99", "reply_tokens", 99, "reply_tokens is 99 now; it was 400."),
        ("mode ALWAYS", "mode", "always", "mode is always now; it was name_match."),
        ("cooldown 0", "cooldown_seconds", 0.0, "cooldown is 0 now; it was 1."),
        ("cooldown_seconds 2", "cooldown_seconds", 2.0, "cooldown is 2 now; it was 1."),
        ("engagement 90", "engagement_seconds", 90.0, "engagement is 90 now; it was 60."),
        ("tick 60", "tick_seconds", 60.0, "tick is 60 now; it was never."),
        ("hops 0", "hop_limit", 0, "hops is 0 now; it was 3."),
        (
            "thinking frowns.",
            "thinking",
            "frowns.",
            "thinking is 'frowns.' now; it was 'thinks it over.'.",
        ),
        ("odd_replies Retry", "odd_replies", "retry", "odd_replies is retry now; it was watch."),
        ("talkativeness 0", "talkativeness", 0.0, "talkativeness is 0 now; it was 0.5."),
        ("languages common, elvish", "languages", ("common", "elvish"), "now; it was all."),
        ("languages none", "languages", (), "languages is none now; it was all."),
        ("react_to arrive give", "react_to", ("arrive", "give"), "react_to is arrive, give now"),
        (
            "limits calls_per_minute=5, tokens_per_day = 20000",
            "limits",
            {"calls_per_minute": 5, "tokens_per_day": 20000},
            "limits is calls_per_minute=5, tokens_per_day=20000 now; it was those of the game.",
        ),
    ],
)
def test_set_shows_the_new_and_the_old_value(harbour, typed, field, value, told):
    assert told in one_line(harbour.builds(f"ai/set oren = {typed}"))
    assert getattr(settings_of(harbour.npc), field) == value


def test_set_without_value_resets_the_setting(harbour):
    change_settings(harbour.npc, temperature=0.2, by=THE_GAME)
    told = one_line(harbour.builds("ai/set oren = temperature"))

    assert told == "Oren: temperature is 0.7 (profile cheap) again; it was 0.2."
    assert settings_of(harbour.npc).temperature is None


def test_set_command_says_that_a_setting_to_reset_was_not_set(harbour):
    told = one_line(harbour.builds("ai/set oren = cooldown"))

    assert told == "Oren: cooldown was not set; it is 1 (the game)."
    assert changes_of(harbour.npc) == ()


def test_set_is_logged_with_its_author(harbour):
    harbour.builds("ai/set oren = temperature 0.5")
    (change,) = changes_of(harbour.npc)

    assert (change.by, change.name, change.old, change.new) == ("Mara", "temperature", None, 0.5)


def test_invalid_stored_value_is_shown_as_a_problem(harbour):
    harbour.npc.attributes.add("ai_settings", {"values": {"mode": "loud"}})

    assert "problem: mode: must be 'name_match'" in harbour.builds("ai/set oren")
    assert "problem        mode: must be 'name_match'" in harbour.builds("ai oren")


def test_markup_in_a_setting_is_shown_and_not_interpreted(harbour):
    change_settings(harbour.npc, thinking="|rred $random()", by=THE_GAME)

    assert "|rred $random()" in harbour.builds("ai/set oren")


def test_the_profiles_are_listed_with_breaker_and_roles(harbour):
    told = harbour.builds("ai/profile")

    listed = {name: " ".join(line.split()) for name, line in rows(told).items()}
    assert listed == {
        "profile": "client model breaker asked as",
        "default": "offline none what an NPC is given",
        "cheap": "openai small closed every role",
        "dear": "openai large closed speaker, planner, mediator, summariser, lorekeeper",
    }


def test_profile_list_shows_learned_server_limits_and_their_setting(harbour):
    assert "learned" not in harbour.builds("ai/profile")
    cheap, dear = (running.runtime().models.accesses()[at].learned for at in (1, 2))
    cheap.learn_refusal("user")
    cheap.learn_refusal("max_tokens", instead="max_completion_tokens")
    cheap.learn_window(window_tokens=4096, counted_tokens=None, sent_tokens=5000, reply_tokens=400)
    dear.learn_window(window_tokens=None, counted_tokens=None, sent_tokens=4000, reply_tokens=400)
    dear.learn_roles("no_system")
    dear.learn_roles("in_turn")
    dear.tells_past_calls = True

    typed = harbour.builds("ai/profile")
    assert max(map(len, typed.splitlines())) <= 78
    told = " ".join(typed.split())
    for line in (
        "learned: cheap reads 4096 tokens: a prompt gets at most 3696 (set context_tokens to 4096)",
        "learned: cheap gets no user, gets max_completion_tokens for max_tokens (set reply_limit",
        "\"max_completion_tokens\" and extra to {'user': None})",
        "learned: dear refused more: a prompt gets at most 3000 (set context_tokens)",
        "learned: dear gets one system message, then user and assistant, gets no role system,",
        "gets tool calls of earlier turns as text (set strict_roles to True and system_role",
        'to False and past_calls to "told")',
    ):
        assert line in told
    assert "forgotten when the game's server restarts" in told


def test_a_profile_that_cannot_be_asked_says_why(stage, monkeypatch):
    monkeypatch.setenv("CHEAP_KEY", f"{KEY} with blanks")
    with override_settings(EVENNIA_AI_PROFILES=PROFILES, EVENNIA_AI_MODEL_ROLES=ROLES):
        before = running.install(None)
        told = stage.builds("ai/profile")
        running.install(before).close()

    assert "not ready" in rows(told)["cheap"]
    assert "cheap cannot be asked: api_key has characters" in told
    assert KEY not in told


def test_profile_warns_of_a_key_sent_over_plain_http(stage, monkeypatch):
    monkeypatch.setenv("CHEAP_KEY", KEY)
    away = {**PROFILES, "cheap": {**PROFILES["cheap"], "base_url": "http://box.example/v1"}}
    with override_settings(EVENNIA_AI_PROFILES=away, EVENNIA_AI_MODEL_ROLES=ROLES):
        before = running.install(None)
        listed = stage.builds("ai/profile")
        dear = one_line(stage.builds("ai/profile oren = dear"))
        cheap = one_line(stage.builds("ai/profile oren = cheap"))
        running.install(before).close()

    told = "cheap sends its key over plain http to another machine"
    assert f"problem: {told}" in listed
    assert told not in dear
    assert cheap == f"Oren speaks with cheap now; it was dear. {told}."


@pytest.mark.parametrize("typed", ["ai/profile", "ai/profile oren", "ai/set oren", "ai oren"])
def test_no_key_and_no_address_is_shown(harbour, typed):
    told = harbour.builds(typed)
    assert KEY not in told
    assert "127.0.0.1" not in told


def test_profile_is_used_by_the_npc(harbour):
    assert one_line(harbour.builds("ai/profile oren")) == (
        "Oren speaks with cheap, the game's usual profile, or dear if that gives no answer."
    )
    told = one_line(harbour.builds("ai/profile oren = dear"))
    assert told == "Oren speaks with dear now; it was cheap."
    assert one_line(harbour.builds("ai/profile oren")) == (
        "Oren speaks with dear, its own profile, or cheap if that gives no answer."
    )
    assert "dear (large) (a model is asked), breaker closed" in harbour.builds("ai oren")


def test_the_profile_default_can_be_given_by_name(harbour):
    harbour.builds("ai/profile oren = default")
    assert "offline responder (no model is asked)" in harbour.builds("ai oren")


def test_choosing_the_usual_profile_resets_the_npc(harbour):
    harbour.builds("ai/profile oren = dear", "ai/profile oren = cheap")
    assert settings_of(harbour.npc).profile == ""


def test_profile_is_refused_if_reply_tokens_do_not_fit(harbour):
    harbour.builds("ai/set oren = reply_tokens 2000")
    told = one_line(harbour.builds("ai/profile oren = dear"))

    assert "reply_tokens must be fewer than the 1000 of the profile 'dear'" in told
    assert settings_of(harbour.npc).profile == ""


@pytest.mark.parametrize("typed", BAD_INPUT)
def test_bad_input_gives_one_line_and_changes_nothing(harbour, typed):
    assert BAD_INPUT[typed] in one_line(harbour.builds(typed))
    assert changes_of(harbour.npc) == ()


def test_the_page_of_settings_lists_every_setting_of_an_npc():
    page = Path(__file__).resolve().parents[2] / "docs" / "reference" / "settings.md"
    section = page.read_text(encoding="utf-8").partition("## Settings of one NPC\n")[2]
    cells = re.findall(r"^\| (`[^|]+`) \|", section.partition("\n## ")[0], re.MULTILINE)
    names = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]

    assert sorted(names) == sorted(row.name for row in ROWS)


@pytest.mark.parametrize("typed", ["ai/set oren = mode always", "ai/profile oren = dear"])
def test_players_can_set_nothing(harbour, typed):
    harbour.plays(typed)
    assert changes_of(harbour.npc) == ()


def test_setting_a_tick_starts_ticking(harbour):
    harbour.builds("ai/set oren = tick 60")
    assert running.runtime().ticker.count == 1
    harbour.builds("ai/set oren = tick 0")
    assert running.runtime().ticker.count == 0
