"""Screens: folded prompts and their parts, message numbers, pages, and escaped texts."""

import re
from types import SimpleNamespace

import pytest

from evennia_ai.commands.ai.operating import INDEX
from evennia_ai.commands.cmdset import AICmdSet
from evennia_ai.commands.prompt_shown import runs
from evennia_ai.commands.screens import Span, shown_rows
from evennia_ai.engine.actors import trusted
from evennia_ai.store.authored import components
from evennia_ai.store.history import turns
from tests.commands.stage import on_screen, one_line

_SAID = ("Oren, are you there?", "Oren, when does the ferry sail?", "Thanks, Oren.")
LINK = "|lclook|ltpress|le |rred $pron(you) {{x}}"


@pytest.fixture
def talked(stage, mood):
    """Let Oren answer Pim three times, with the component `mood` at depth 2."""
    stage.builds("component/depth mood = 2")
    with stage.model("Aye.", "At dusk.", "So be it.", "Yes?") as scripted:
        for said in _SAID:
            stage.player.at_say(said)
            stage.waited()
        yield scripted


def test_context_tells_the_history_in_one_line_and_the_event_in_its_words(stage, talked):
    told = stage.builds("ai/context oren")
    assert re.search(r"H history: messages #\d+ to #\d+ \(2\), [\d,]+ tokens", told)
    assert "At dusk." not in told
    assert "Pim: Thanks, Oren." in told
    assert max(len(line) for line in told.splitlines()) <= 78


def test_context_shows_each_part_of_the_prompt(stage, talked):
    assert "At dusk." in stage.builds("ai/context oren = history")
    assert "No entry of lore" in stage.builds("ai/context oren = lore")
    assert "expansion: empty" in stage.builds("ai/context oren = left out")
    assert "breakpoints" in stage.builds("ai/context oren = full")
    assert "are you there" in stage.builds("ai/context oren/1")
    assert "full, history, lore, left out, changes" in one_line(stage.builds("ai/context oren = x"))


def test_a_message_has_one_number_on_every_screen(stage, talked):
    manifest = turns.last_turn(stage.npc.ai.ref).manifest
    (number,) = re.findall(r"^ *(#\d+) assistant .*At dusk", told(stage, "= history"), re.M)
    assert number.removeprefix("#") in manifest.record_ids
    assert f"{number}  20" in stage.builds("ai/history oren")
    assert f"-- {number} assistant" in stage.builds("ai/replay oren = 3 full")
    assert stage.builds(f"ai/why oren = {number}").startswith(f"message {number}: ")
    assert re.search(rf"^ *{number} assistant", stage.builds("ai/why oren/3 = full"), re.M)


def told(stage, part):
    return stage.builds(f"ai/context oren {part}")


def test_changes_show_added_removed_and_changed_texts(stage, talked):
    components.update("mood", content="The air is light.", by=trusted("Mara"))
    stage.builds("note oren = He has a cold.", "component/off system_prompt")
    stage.player.at_say("Oren?")
    stage.waited()
    seen = told(stage, "= changes")
    assert "~ component C mood changed" in seen
    assert "    - The air is heavy." in seen and "    + The air is light." in seen
    assert re.search(r"^\+ note N \S+ came", seen, re.M) and "    He has a cold." in seen
    assert re.search(r"\+ said since: #\d+, #\d+", seen)
    assert "first of its conversation" in stage.builds("ai/context oren/1 = changes")


def test_unrecorded_greeting_is_a_row_of_its_own():
    said = [
        SimpleNamespace(block="history", injected=False, record=record) for record in ("5", "7")
    ]
    coming = SimpleNamespace(block="history", injected=False, record=None)

    assert list(runs(SimpleNamespace(messages=[*said, coming]))) == [[0, 1], [2]]


def test_history_folds_internal_records(stage, talked):
    seen = stage.builds("ai/history oren")
    assert "run_end)" in seen and "At dusk." in seen
    assert "behind the scenes" not in stage.builds("ai/history oren = full")


def test_replay_and_why_fold_the_history(stage, talked):
    for typed in ("ai/replay oren = 3", "ai/why oren/3"):
        folded, full = stage.builds(typed), stage.builds(full_of(typed))
        assert "H history: messages #" in folded and "H history: messages #" not in full
        assert "Aye." not in folded and "Aye." in full


def full_of(typed):
    return f"{typed} full" if "=" in typed else f"{typed} = full"


def test_colours_do_not_change_the_text(stage, talked):
    sent = stage.sent(stage.builder, "ai/context oren")
    assert "|cC mood|n" in sent
    assert "C mood" in on_screen(sent)


@pytest.mark.parametrize("kind", ["", "lore"])
def test_markup_in_a_span_is_escaped(kind):
    sent = shown_rows([(Span(LINK, kind), Span("lclook|ltx|le"))])
    assert "press" in on_screen(sent)
    assert "|rred" in on_screen(sent).replace("| r", "|r")
    assert "\x1b" not in on_screen(sent)


def test_span_ending_in_a_pipe_starts_no_link():
    assert "|l" not in on_screen(shown_rows([(Span("a|"), Span("lclook|lty|le"))]))


def a_session(**flags):
    return SimpleNamespace(protocol_key="telnet", protocol_flags={"SCREENHEIGHT": {0: 20}, **flags})


@pytest.fixture
def at_screen(stage, monkeypatch):
    """Put the builder before a screen of this kind. Return what they read of a long text."""

    def reads(session):
        for method in ("all", "get"):
            monkeypatch.setattr(stage.builder.sessions, method, lambda: [session])
        return stage.sent(stage.builder, "component/preview/full oren")

    yield reads
    if stage.builder.ndb._more:
        stage.builder.ndb._more.page_quit(quiet=True)


def test_client_with_a_screen_size_gets_pages(stage, at_screen):
    first = on_screen(at_screen(a_session(AUTORESIZE=True)))
    assert "Page [1/2]" in first and "== 0: user ==" not in first
    assert len(first.splitlines()) <= 20
    assert "== 0: user ==" in stage.builds("next")


@pytest.mark.parametrize("protocol", ["websocket", "ajax/comet"])
def test_web_client_gets_pages_without_a_websocket(at_screen, protocol):
    session = a_session()
    session.protocol_key = protocol
    assert "Page [1/2]" in on_screen(at_screen(session))


def test_long_texts_are_wrapped_at_words(stage, mood):
    words = "herring " * 40
    components.update("mood", content=words, by=trusted("Mara"))
    stage.builds(f"note oren = {words}", f"lore/create b/one = k: {words}")
    for typed in ("component mood", "note oren", "lore b/0", "component/preview/full oren"):
        assert max(map(len, stage.builds(typed).splitlines())) <= 78, typed


def test_another_command_closes_the_pages_and_runs(stage, at_screen):
    at_screen(a_session(AUTORESIZE=True))
    assert "There is no" in stage.builds("component/nonsense")


@pytest.mark.parametrize(
    "flags",
    [
        {},
        {"AUTORESIZE": True, "SCREENREADER": True},
        {"AUTORESIZE": True, "SCREENHEIGHT": {0: 10_000}},
    ],
)
def test_programs_and_screen_readers_get_no_pages(at_screen, flags):
    seen = at_screen(a_session(**flags))
    assert "Page [" not in on_screen(seen)
    assert "==" in seen.splitlines()[-3] or "sha256" in seen


def test_the_index_for_builders_is_one_screen_of_commands_that_there_are(stage):
    seen = stage.builds("ai/start")
    assert len(seen.splitlines()) <= 22
    assert max(map(len, seen.splitlines())) <= 78
    known = {command.key: command for command in AICmdSet()}
    for _, typed in INDEX:
        named = re.findall(r"(?:^|[,:] +)([a-z]+)(/[a-z]+)?(?![a-z])", typed)
        ours = [(name, switch) for name, switch in named if switch or name in known]
        assert ours, typed
        for name, switch in ours:
            assert switch.removeprefix("/") in known[name].verbs, typed


def test_start_takes_no_words(stage):
    assert "Usage: ai/start" in stage.builds("ai/start oren")


def test_unknown_switch_of_a_large_command_names_the_help(stage):
    told = one_line(stage.builds("ai/xyzzy oren"))
    assert told == ("There is no ai/xyzzy. Nothing was changed. 'help ai' lists the switches.")
