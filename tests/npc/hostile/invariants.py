"""Check what must hold after any hostile text has entered the game.

Most checks compare the play with `like`, the play of a harmless text that entered in the same way.
A check that fails raises AssertionError.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain

from evennia_ai.engine.history.role_markup import find_role_markup, without_tags, without_tokens
from evennia_ai.services.llm.chat import ChatMessage, argument_object
from tests.npc.conftest import Screen
from tests.npc.hostile.corpus import MARK, Case
from tests.npc.hostile.plain import assert_plain
from tests.npc.hostile.playing import Played
from tests.npc.hostile.ways import HARMLESS, NAMES

MOST_SECONDS = 5.0
"""Processor time; much more than the tenth of a second that a play of four turns takes."""

LINE_ENDS = re.compile("[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
GAME, TOOL = "Game instruction", "Tool result"
FRAMES = {
    "native": (),
    "fitted": (GAME, TOOL),
    "open, told": (TOOL,),
    "open, none": (TOOL,),
    "strict": (GAME,),
    "names": (),
    "merged names": (GAME, TOOL),
    "nameless": (),
}
"""The frames that each kind of server reads as marks. For other servers they are words."""

APART = frozenset({"names", "nameless"})
"""Kinds of servers that get the speaker's name outside the text, or not at all."""

LABEL = re.compile(r"(?!- )(?P<label>[^\s:：][^:：\n]{0,63})[:：](?=\s|$)")
FRAMED = re.compile(r"^\[(Game instruction|Tool result)\]\n.*?^\[/\1\]$", re.DOTALL | re.MULTILINE)
TAG = re.compile(r"<(?!br>)[^>]*>")


def problems(case: Case, played: Played, like: Played, *, way: str, roles: str) -> list[str]:
    """Return the failures, each with the name of its check."""
    checks = _checks(case, played, like, way=way, roles=roles)
    return [found for check in checks if (found := _problem(check))]


Check = tuple[str, Callable[[], None]]


def _problem(check: Check) -> str:
    name, run = check
    try:
        run()
    except AssertionError as error:
        return f"{name}: {error}"
    return ""


def _checks(case: Case, played: Played, like: Played, *, way: str, roles: str) -> Iterator[Check]:
    yield "as many prompts", lambda: same_count(played, like)
    for kind, prompts, harmless in () if case.moves else _prompts(played, like):
        pair = (prompts, harmless)
        yield f"shape ({kind})", partial(same_shape, *pair)
        yield f"system messages ({kind})", partial(same_system_messages, *pair, way=way)
        yield f"place ({kind})", partial(only_in_its_place, *pair)
        if kind not in APART:
            yield f"labels ({kind})", partial(same_labels, *pair, way=way)
    for kind, prompts in _everything(played):
        frames = FRAMES[roles if kind == "asked" else kind]
        yield f"chat markup ({kind})", partial(no_chat_markup, prompts)
        yield f"frames ({kind})", partial(frames_are_ours, prompts, frames)
        yield f"form ({kind})", partial(well_formed, prompts, kind)
    yield "as a user's", lambda: never_a_system_message(case, played, way=way)
    yield "reads", lambda: reads_as_it_stands(case, played, way=way)
    for who, screen in (*played.clients.items(), ("builder", played.builder)):
        yield f"screen of {who}", partial(nothing_is_live, screen)
    yield "replay", lambda: no_faults(played)
    yield "world", lambda: nothing_changed(played)
    yield "log", lambda: one_line_each(played.logged)
    yield "cost", lambda: bounded(played)


# Prompts

Prompt = Sequence[ChatMessage]


def _prompts(
    played: Played, like: Played
) -> Iterator[tuple[str, Sequence[Prompt], Sequence[Prompt]]]:
    """Yield the prompts before the model obeys the text, for each kind of server."""
    count = min(played.steady, like.steady)
    asked = [request.messages for request in played.requests[:count]]
    yield "asked", asked, [request.messages for request in like.requests[:count]]
    for kind in played.adapted:
        yield kind, played.adapted[kind][:count], like.adapted[kind][:count]


def _everything(played: Played) -> Iterator[tuple[str, Sequence[Prompt]]]:
    yield "asked", [request.messages for request in played.requests]
    yield from played.adapted.items()


def same_count(played: Played, like: Played) -> None:
    """Check that the model got equally many requests."""
    assert played.steady == like.steady


def same_shape(prompts: Sequence[Prompt], harmless: Sequence[Prompt]) -> None:
    """Check that roles, tool calls and results have the same order."""
    assert [_shape(one) for one in prompts] == [_shape(one) for one in harmless]


def _shape(prompt: Prompt) -> list[tuple[str, tuple[str, ...], str | None]]:
    return [
        (one.role, tuple(f"{call.id} {call.name}" for call in one.tool_calls), one.tool_call_id)
        for one in prompt
    ]


def same_system_messages(
    prompts: Sequence[Prompt], harmless: Sequence[Prompt], *, way: str
) -> None:
    """Check that system messages are equal, except for names and an author's lore."""
    for one, other in _pairs(prompts, harmless):
        if one.role == "system" and way not in NAMES and way != "lore":
            assert one.content == other.content


def only_in_its_place(prompts: Sequence[Prompt], harmless: Sequence[Prompt]) -> None:
    """Check that prompts differ only at the place of the text."""
    for one, other in _pairs(prompts, harmless):
        assert _around(other.content).fullmatch(_at_margin(one.content)), (one, other)
        assert HARMLESS in (other.name or "") or one.name == other.name


def _around(harmless: str) -> re.Pattern[str]:
    """Return a pattern with any text at the place of the harmless text and its article."""
    pattern = re.escape(_at_margin(harmless))
    pattern = pattern.replace(rf"a\ {HARMLESS}", "(?:.*)")
    return re.compile(pattern.replace(HARMLESS, "(?:.*)"), re.DOTALL)


def _at_margin(text: str) -> str:
    return re.sub("^    ", "", text, flags=re.MULTILINE)


def same_labels(prompts: Sequence[Prompt], harmless: Sequence[Prompt], *, way: str) -> None:
    """Check that hostile text starts no line with the label of a speaker or a fact.

    A hostile name is a label itself. It must differ from the other labels.
    """
    others = {label for one in harmless for label in _labels(one)} - {HARMLESS}
    for one, other in zip(prompts, harmless, strict=True):
        found, wanted = _labels(one), _labels(other)
        if way != "player_name":
            assert found == wanted
            continue
        assert len(found) == len(wanted), (found, wanted)
        for label, harmless_label in zip(found, wanted, strict=True):
            if harmless_label == HARMLESS:
                assert label not in others, label
                assert not find_role_markup(f"{label}: x"), label
            else:
                assert label == harmless_label


def _labels(prompt: Prompt) -> list[str]:
    texts = [FRAMED.sub("", one.content) for one in prompt if one.role == "user"]
    lines = [line for text in texts for line in text.split("\n")]
    return [found["label"] for line in lines if (found := LABEL.match(line))]


def _pairs(
    prompts: Sequence[Prompt], harmless: Sequence[Prompt]
) -> Iterable[tuple[ChatMessage, ChatMessage]]:
    for one, other in zip(prompts, harmless, strict=False):  # `same_shape` reports missing messages
        yield from zip(one, other, strict=False)


def no_chat_markup(prompts: Sequence[Prompt]) -> None:
    """Check that texts contain nothing that a chat template reads as its own marks."""
    for one in chain.from_iterable(prompts):
        for text in (one.name or "", one.content, *(call.arguments for call in one.tool_calls)):
            assert (without_tokens if one.role == "system" else without_tags)(text) == text
            assert one.role != "user" or not LINE_ENDS.search(text), ascii(text)


def frames_are_ours(prompts: Sequence[Prompt], frames: Sequence[str]) -> None:
    """Check that frames are on lines of their own, alternately opened and closed."""
    if not frames:
        return
    mark = re.compile(rf"\[(/?)(?:{'|'.join(frames)})\]")
    for one in chain.from_iterable(prompts):
        if one.role == "user":
            found = [line for line in one.content.split("\n") if mark.search(line)]
            assert [line for line in found if not mark.fullmatch(line)] == []
            assert [line[1] == "/" for line in found] == [False, True] * (len(found) // 2), found


def well_formed(prompts: Sequence[Prompt], kind: str) -> None:
    """Check that servers accept the prompts: valid calls, each result after its call.

    For strict servers, the first message and no other is the system's.
    """
    for prompt in prompts:
        called = [call for one in prompt for call in one.tool_calls]
        for call in called:
            assert json.dumps(argument_object(call), allow_nan=False)
            assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", call.name)
        results = [one.tool_call_id for one in prompt if one.role == "tool"]
        assert results == [call.id for call in called]
        if kind in ("strict", "merged names"):
            assert [one.role for one in prompt].index("system") == 0
            assert [one.role for one in prompt].count("system") == 1


def never_a_system_message(case: Case, played: Played, *, way: str) -> None:
    """Check that no system message contains the text."""
    if way == "lore" or way in NAMES:
        return
    for request in played.requests:
        told = [one.content for one in request.messages if one.role == "system"]
        assert [content for content in told if MARK in content] == []


def reads_as_it_stands(case: Case, played: Played, *, way: str) -> None:
    """Check that a model gets `reads` unchanged, although it looks like a template.

    Cards and lore are left out, because their macros are expanded; names, because they lose
    braces.
    """
    if not case.reads or played.steady == 0 or way in ("card", "lore", "player_name"):
        return
    first = played.requests[: played.steady]
    assert any(case.reads in one.content for request in first for one in request.messages)


# Screens


def nothing_is_live(screen: Screen) -> None:
    """Check that a client gets no control sequences, links or HTML tags from the text."""
    for flags in ({"MXP": True, "TRUECOLOR": True}, {"MXP": True, "NOCOLOR": True}):
        for line in screen.telnet(**flags):
            bare = line.removesuffix("\x1b[0m")
            assert_plain(bare)  # a link needs an escape character to work
    for html in screen.web():
        assert TAG.findall(html) == [], ascii(html)


# What is left of it


def no_faults(played: Played) -> None:
    """Check that the replay of every turn equals what was sent."""
    assert played.faults == ()


def nothing_changed(played: Played) -> None:
    """Check that no lock, permission, setting or component has changed."""
    assert played.changes == ()


def bounded(played: Played) -> None:
    """Check that the play took little processor time."""
    assert played.seconds < MOST_SECONDS


def one_line_each(logged: Iterable[str]) -> None:
    """Check that log lines are short and printable, so that the text adds no line."""
    for line in logged:
        if "Traceback (most recent call last)" not in line:
            assert line.isprintable(), ascii(line[:500])
            assert len(line) < 2000, len(line)
