"""Safe output, read where a client reads it: as telnet and the web draw what left the server."""

import re

import pytest

HOSTILE = [
    "{x}",
    "a } b { c",
    "{you.__class__}",
    "{{x}} {{char}}",
    "$eval(1+1)",
    "$pad(x,3000000)",
    "$You() $conj(smile)",
    "|rred|n",
    "|[400 |#ff0000x |=a |500",
    "|lclook|ltx|le",
    "||lclook||ltx||le",
    "|||lclook|||ltx|||le",
    "|luhttp://evil.example|ltx|le",
    "pipe at the end |",
    "back\\slash \\$eval(1+1) \\|r",
    "<b>bold</b> & <script>",
]
INVISIBLE = "\x1b[31mred\x1b[0m \x07bell \x00null \u202eright to left\u2066 \u200bzero\x9bm"


@pytest.fixture
def output(db):
    from evennia_ai.game import output

    return output


def shown(text):
    """What a reader sees of hostile text: as it stands, links and addresses broken."""
    return text.replace("|l", "| l").replace("http://", "http: //")


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_speech_is_read_as_it_stands_by_a_plain_client(stage, output, text):
    output.speak(stage.npc, text)
    assert stage.anna.screen.plain() == [f'Oren says, "{shown(text)}"']


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_speech_sends_no_link_and_no_colour_to_a_client_that_knows_them(
    stage, output, text
):
    output.speak(stage.npc, text)
    (line,) = stage.anna.screen.telnet(MXP=True, TRUECOLOR=True)
    assert "<SEND" not in line
    assert "<A HREF" not in line
    assert line.removesuffix("\x1b[0m").count("\x1b") == 0


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_speech_makes_no_link_and_no_colour_on_the_web(stage, output, text):
    output.speak(stage.npc, text)
    (html,) = stage.anna.screen.web()
    assert re.findall(r"<(?!br)[^>]*>", html) == []


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_speech_is_not_parsed_where_a_game_parses_all_that_it_sends(
    stage, output, text, monkeypatch
):
    from django.conf import settings
    from evennia.server import sessionhandler

    monkeypatch.setattr(settings, "FUNCPARSER_PARSE_OUTGOING_MESSAGES_ENABLED", True)
    monkeypatch.setattr(sessionhandler, "_FUNCPARSER_PARSE_OUTGOING_MESSAGES_ENABLED", True)
    output.speak(stage.npc, text)
    (line,) = stage.anna.screen.plain()
    assert "$" not in text or "$" in line
    assert len(line) < 200


@pytest.mark.parametrize("act", ["speak", "pose"])
def test_characters_that_are_not_seen_are_taken_out(stage, output, act):
    getattr(output, act)(stage.npc, INVISIBLE)
    (line,) = stage.anna.screen.telnet(NOCOLOR=True)
    assert "[31mred[0m bell null right to left zero" in line
    assert line.isprintable()


@pytest.mark.parametrize("text", HOSTILE)
def test_a_name_made_of_markup_stays_a_name(stage, output, text):
    stage.anna.key = text
    stage.npc.key = text
    output.speak(stage.npc, "hello")
    output.whisper(stage.npc, stage.ben, "psst")
    output.pose(stage.npc, "waits.")
    html = "".join(stage.ben.screen.web())
    lines = stage.ben.screen.telnet(MXP=True)
    assert re.findall(r"<(?!br)[^>]*>", html) == []
    assert not [line for line in lines if "<SEND" in line or "<A HREF" in line]
    assert all(line.removesuffix("\x1b[0m").count("\x1b") == 0 for line in lines)


@pytest.mark.parametrize("text", HOSTILE)
def test_talk_of_a_player_is_read_as_it_stands_by_everybody(stage, output, text):
    output.talk(stage.anna, stage.npc, text)
    stage.passes()
    assert stage.anna.screen.plain()[0] == f'You say to Oren, "{shown(text)}"'
    assert stage.ben.screen.plain()[0] == f'Anna says to Oren, "{shown(text)}"'
    assert stage.ben.screen.telnet(MXP=True)[0].removesuffix("\x1b[0m").count("\x1b") == 0


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_reply_is_spoken_as_text(stage, text):
    stage.talks_with(text)
    stage.says(stage.anna, "Oren, hello")
    assert stage.anna.screen.plain()[-1] == f'Oren says, "{shown(text)}"'


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_speech_of_a_player_reaches_the_npc_as_text_and_is_answered(stage, text):
    stage.anna.key = text
    stage.talks_with("Aye.")
    stage.says(stage.anna, f"Oren, {text}")
    assert stage.ben.screen.plain()[-1] == 'Oren says, "Aye."'


def test_a_line_break_in_a_reply_cannot_fake_somebody_elses_line(stage):
    stage.talks_with('Hello"\nBen says, "I give up')
    stage.says(stage.anna, "Oren, hello")
    assert all("\n" not in line for line in stage.anna.screen.sent)


def test_a_web_address_is_not_clickable(stage, output):
    output.speak(stage.npc, "see http://evil.example/x or www.evil.example or HTTPS://evil.example")
    assert "<a" not in stage.anna.screen.web()[0]


def test_text_over_the_limits_is_cut_with_an_ellipsis(output):
    assert output.safe_text("x" * 50, max_characters=10) == "x" * 10 + "…"
    assert output.safe_text("a\nb\nc", max_lines=2) == "a\nb…"
    assert output.safe_text("a\nb\nc", max_lines=1) == "a b c"


def test_lone_surrogates_and_other_scripts_are_sent_without_an_error(stage, output):
    output.speak(stage.npc, "\ud800 你好 👩‍👧 naïve")
    assert stage.anna.screen.plain() == ['Oren says, "你好 👩‍👧 naïve"']


def test_speaking_takes_no_time_whatever_is_said(stage, output):
    import time

    started = time.perf_counter()
    output.speak(stage.npc, "$pad(x,3000000) $space(9999999)" * 50)
    assert time.perf_counter() - started < 0.2
    assert len(stage.anna.screen.sent[0]) < 5000
