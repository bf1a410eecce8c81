"""Safe output, as telnet and the web client show what the server sent."""

import re

import pytest

from tests.effort import little_work

HOSTILE = [
    "{x}",
    "a } b { c",
    "{you.__class__}",
    "{{x}} {{chart}}",
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
    "<a>bold</a> & <script>",
]
INVISIBLE = "\x1b[31mred\x1b[0m \x07bell \x00null \u202eright to left\u2066 \u200bzero\x9bm"


@pytest.fixture
def output(db):
    from evennia_ai.npc.speech import output

    return output


def shown(text):
    """Return hostile text as a reader sees it: unchanged, except that links and addresses are
    broken.
    """
    return text.replace("|l", "| l").replace("http://", "http: //")


def lines_of(stage, speak):
    """Return the lines of one screen after `speak` was called with each hostile text."""
    for text in HOSTILE:
        speak(text)
    stage.passes()
    return stage.ben.screen


def has_markup(line):
    """Return whether a line contains a colour or a link for a client that supports them."""
    colours = line.removesuffix("\x1b[0m").count("\x1b")
    return colours > 0 or "<SEND" in line or "<A HREF" in line


def tags(html):
    return re.findall(r"<(?!br)[^>]*>", html)


def test_hostile_speech_is_shown_unchanged_on_a_plain_client(stage, output):
    screen = lines_of(stage, lambda text: output.say_aloud(stage.npc, text))
    assert screen.plain() == [f'Oren says, "{shown(text)}"' for text in HOSTILE]


def test_hostile_speech_sends_no_link_or_colour_to_a_client_that_supports_them(stage, output):
    screen = lines_of(stage, lambda text: output.say_aloud(stage.npc, text))
    lines = screen.telnet(MXP=True, TRUECOLOR=True)
    assert [line for line in lines if has_markup(line)] == []
    assert len(lines) == len(HOSTILE)


def test_hostile_speech_sends_no_link_to_a_client_without_colours(stage, output):
    screen = lines_of(stage, lambda text: output.say_aloud(stage.npc, text))
    assert [line for line in screen.telnet(MXP=True, NOCOLOR=True) if has_markup(line)] == []


def test_hostile_speech_makes_no_link_or_colour_in_the_web_client(stage, output):
    screen = lines_of(stage, lambda text: output.say_aloud(stage.npc, text))
    assert [html for html in screen.web() if tags(html)] == []


def test_hostile_speech_is_not_parsed_when_a_game_parses_outgoing_messages(
    stage, output, monkeypatch
):
    from django.conf import settings
    from evennia.server import sessionhandler

    monkeypatch.setattr(settings, "FUNCPARSER_PARSE_OUTGOING_MESSAGES_ENABLED", True)
    monkeypatch.setattr(sessionhandler, "_FUNCPARSER_PARSE_OUTGOING_MESSAGES_ENABLED", True)
    screen = lines_of(stage, lambda text: output.say_aloud(stage.npc, text))
    calls = [line for line, text in zip(screen.plain(), HOSTILE, strict=True) if "$" in text]
    assert [line.count("$") for line in calls] == [t.count("$") for t in HOSTILE if "$" in t]
    assert max(map(len, screen.sent)) < 200


@pytest.mark.parametrize("act", ["say_aloud", "show_pose"])
def test_invisible_characters_are_removed_from_speech(stage, output, act):
    getattr(output, act)(stage.npc, INVISIBLE)
    (line,) = stage.anna.screen.telnet(NOCOLOR=True)
    assert "[31mred[0m bell null right to left zero" in line
    assert line.isprintable()


def test_name_with_markup_is_shown_as_text(stage, output):
    def everything(name):
        stage.npc.key = name
        output.say_aloud(stage.npc, "hello")
        output.whisper_to(stage.npc, stage.ben, "psst")
        output.show_pose(stage.npc, "waits.")
        stage.anna.key = name
        output.talk_to(stage.anna, stage.npc, "good evening")

    stage.talks_with(*["Aye."] * len(HOSTILE))
    screen = lines_of(stage, everything)
    assert [line for line in screen.telnet(MXP=True) if has_markup(line)] == []
    assert [html for html in screen.web() if tags(html)] == []
    assert len(screen.sent) == 5 * len(HOSTILE)


def test_command_talk_shows_hostile_words_unchanged_to_everybody(stage, output):
    screen = lines_of(stage, lambda text: output.talk_to(stage.anna, stage.npc, text))
    assert screen.plain()[: len(HOSTILE)] == [f'Anna says to Oren, "{shown(t)}"' for t in HOSTILE]
    assert [line for line in screen.telnet(MXP=True) if has_markup(line)] == []
    own = stage.anna.screen.plain()[: len(HOSTILE)]
    assert own == [f'You say to Oren, "{shown(text)}"' for text in HOSTILE]


def test_hostile_reply_is_spoken_as_text(stage):
    stage.talks_with(*HOSTILE)
    for _ in HOSTILE:
        stage.says(stage.anna, "Oren, hello")
    replies = [line for line in stage.ben.screen.plain() if line.startswith("Oren")]
    assert replies == [f'Oren says, "{shown(text)}"' for text in HOSTILE]


def test_hostile_speech_and_names_of_players_reach_the_npc_as_text(stage):
    model = stage.talks_with(*["Aye."] * len(HOSTILE))
    for text in HOSTILE:
        stage.anna.key = text
        stage.says(stage.anna, f"Oren, {text}")
    replies = [line for line in stage.ben.screen.plain() if line == 'Oren says, "Aye."']
    assert len(replies) == len(model.requests) == len(HOSTILE)
    asked = [request.question for request in model.requests]
    unmarked = [text for text in HOSTILE if "|" not in text]
    assert [f"Oren, {text}" for text in unmarked] == [a for a in asked if a[6:] in unmarked]


def test_line_break_in_a_reply_cannot_fake_another_speakers_line(stage):
    stage.talks_with('Hello"\nBen says, "I give up')
    stage.says(stage.anna, "Oren, hello")
    assert all("\n" not in line for line in stage.anna.screen.sent)


def test_web_address_in_speech_is_not_clickable(stage, output):
    output.say_aloud(
        stage.npc, "see http://evil.example/x or www.evil.example or HTTPS://evil.example"
    )
    assert "<a" not in stage.anna.screen.web()[0]


def test_text_over_the_limits_is_cut_with_an_ellipsis(output):
    assert output.safe_text("x" * 50, max_characters=10) == "x" * 10 + "…"
    assert output.safe_text("a\nb\nc", max_lines=2) == "a\nb…"
    assert output.safe_text("a\nb\nc", max_lines=1) == "a b c"


def test_lone_surrogates_and_other_scripts_are_sent_without_an_error(stage, output):
    output.say_aloud(stage.npc, "\ud800 你好 👩‍👧 naïve")
    assert stage.anna.screen.plain() == ['Oren says, "你好 👩‍👧 naïve"']


def test_hostile_speech_does_not_slow_down_speaking(stage, output):
    with little_work():
        output.say_aloud(stage.npc, "$pad(x,3000000) $space(9999999)" * 50)
    assert len(stage.anna.screen.sent[0]) < 5000


def test_pose_that_ends_in_a_pipe_does_not_change_the_text_after_it(stage, output):
    output.show_pose(stage.npc, "points at the mast |")
    assert stage.ben.screen.plain() == ["Oren points at the mast "]


def test_npc_does_not_receive_its_own_words(stage, output):
    sent = []
    stage.npc.msg = lambda *args, **kwargs: sent.append(args)
    output.say_aloud(stage.npc, "Aye.")
    output.show_pose(stage.npc, "nods.")
    assert sent == []


def test_command_talk_respects_a_hook_that_forbids_or_changes_speech(stage, output):
    stage.talks_with("Aye.")
    stage.anna.at_pre_say = lambda message, **kwargs: ""
    assert not output.talk_to(stage.anna, stage.npc, "Oren, hello")
    stage.passes()
    assert stage.ben.screen.plain() == []
    stage.anna.at_pre_say = lambda message, **kwargs: f"{message}, hic"
    assert output.talk_to(stage.anna, stage.npc, "hello")
    stage.passes()
    assert stage.ben.screen.plain()[0] == 'Anna says to Oren, "hello, hic"'
