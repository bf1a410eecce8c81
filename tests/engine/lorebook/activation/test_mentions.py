"""Tests of entries that are placed next to the message with their key ("mention entries")."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evennia_ai.engine.lorebook.activation.timers import Clock
from evennia_ai.engine.lorebook.book import Lorebook
from evennia_ai.engine.lorebook.rules import ActivationRules
from evennia_ai.engine.prompt.messages import Message, said
from evennia_ai.engine.prompt.prompt import Prompt
from tests.engine.lorebook.builders import a_book, a_history, a_scan, a_world_entry, an_entry, awake
from tests.engine.lorebook.turns import a_turn
from tests.engine.prompt.builders import a_record, a_tool_pair, texts, the_prompt
from tests.properties import up_to

quick = settings(max_examples=up_to(80), deadline=None)
WORDS = ("coin", "moon", "rope", "tide")


def at_mention(content: str = "Lore.", *keys: str, **fields: Any) -> dict[str, Any]:
    """Make an entry that is placed next to a message with its key.

    `side` and `message` select the side of the message, and the newest or the oldest one.
    """
    mention = {name: fields.pop(name) for name in ("side", "message") if name in fields}
    own = {"place": "at_mention", **({"mention": mention} if mention else {})}
    extensions = {"evennia_ai": own, **fields.pop("extensions", {})}
    fields.setdefault("keys", list(keys or ("coin",)))
    return an_entry(content, extensions=extensions, **fields)


def prompt_of(*entries: dict[str, Any], history: list[Message], **more: Any) -> Prompt:
    return the_prompt(books=(a_book(*entries, scan_depth=20),), history=history, **more)


def lines(*contents: str) -> list[Message]:
    return [said("user", content) for content in contents]


def depth_of(*entries: dict[str, Any], said: tuple[str, ...], **more: Any) -> int | None:
    """Return the depth of the only active entry."""
    scan = a_scan(*(f"user: {text}" for text in said), event=more.pop("event", None))
    [entry] = awake(a_book(*entries), scan=scan, **more).entries
    return entry.depth


@pytest.mark.req("S3-34")
@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({}, ["a", "a coin", "b", "Lore.", "the coin", "c"]),
        ({"side": "after"}, ["a", "a coin", "b", "the coin", "Lore.", "c"]),
        ({"message": "oldest"}, ["a", "Lore.", "a coin", "b", "the coin", "c"]),
        (
            {"side": "after", "message": "oldest"},
            ["a", "a coin", "Lore.", "b", "the coin", "c"],
        ),
    ],
)
def test_mention_entry_is_right_next_to_the_message_with_its_key(
    where: dict[str, str], expected: list[str]
) -> None:
    history = lines("a", "a coin", "b", "the coin", "c")
    assert texts(prompt_of(at_mention(**where), history=history)) == expected


@pytest.mark.req("S3-34")
def test_mention_entry_moves_with_its_message() -> None:
    history = lines("a coin")
    for count in range(4):
        prompt = prompt_of(at_mention(), history=history)
        assert texts(prompt)[:2] == ["Lore.", "a coin"]
        assert len(prompt.messages) == count + 2
        history = [*history, said("user", "and so on")]


@pytest.mark.req("S3-34")
def test_mention_entry_with_its_key_in_the_event_is_after_the_newest_message() -> None:
    first = prompt_of(at_mention(), history=lines("a"), event="A coin?")
    assert texts(first) == ["a", "Lore.", "A coin?"]
    second = prompt_of(
        at_mention(), history=[*lines("a"), said("user", "A coin?", name="Anna")], event="Hm."
    )
    assert texts(second) == ["a", "Lore.", "A coin?", "Hm."]
    assert [m.wire() for m in second.messages[:3]] == [m.wire() for m in first.messages]


def test_mention_of_the_oldest_message_is_limited_to_the_scan_depth() -> None:
    said = ("a coin", "a coin", "b", "a coin")
    assert (
        depth_of(at_mention(message="oldest"), said=said, rules=ActivationRules(scan_depth=3)) == 3
    )
    assert (
        depth_of(at_mention(message="oldest"), said=said, rules=ActivationRules(scan_depth=4)) == 4
    )


def test_mention_entry_uses_its_own_scan_depth() -> None:
    said = ("a coin", "a coin", "b", "a coin")
    entry = at_mention(message="oldest", extensions={"scan_depth": 1})
    assert depth_of(entry, said=said) == 1


def test_constant_mention_entry_is_at_the_last_message_with_its_key() -> None:
    entry = at_mention(constant=True)
    said = ("b", "a coin", *("b",) * 9)
    assert depth_of(entry, said=said) == 10


def test_mention_entry_without_a_message_with_its_key_is_after_the_newest() -> None:
    assert depth_of(at_mention(constant=True), said=("a", "b")) == 0
    assert depth_of(at_mention(constant=True, keys=[]), said=("a", "b")) == 0


def test_mention_entry_ignores_keys_in_scanned_notes() -> None:
    scan = a_scan("user: a", notes=("The coin is false.",))
    [entry] = awake(a_book(at_mention()), scan=scan).entries
    assert (entry.position, entry.depth) == ("at_mention", 0)


def test_sticky_mention_entry_stays_with_its_message() -> None:
    book = a_book(at_mention(extensions={"sticky": 5}), scan_depth=1)
    first = a_turn(book, scan=a_scan("user: a coin"))
    later = a_turn(
        book,
        scan=a_scan("user: a coin", "user: b", "user: c"),
        state=first.after,
        clock=Clock(turns=2, messages=3, seconds=1.0),
    )
    assert [entry.depth for entry in later.entries] == [3]


def test_mention_entry_searches_regex_keys_in_each_message() -> None:
    entry = a_world_entry(key=["/coi?n/"], evennia_ai={"place": "at_mention"})
    rules = ActivationRules(rules="sillytavern", scan_depth=4)
    scan = a_scan("user: a coin", "user: b", "user: c")
    [active] = awake(a_book(entry), scan=scan, rules=rules).entries
    assert active.depth == 3


def test_mention_entry_finds_keys_in_speakers_names() -> None:
    scan = a_scan("user Coin: hello", "user: b")
    [entry] = awake(a_book(at_mention()), scan=scan).entries
    assert entry.depth == 2


def test_mention_entry_is_placed_again_in_every_turn() -> None:
    book = a_book(at_mention())
    history = a_history("user: a coin")
    for count in range(1, 4):
        prompt = the_prompt(books=(book,), history=list(history))
        assert prompt.fragments[0].claim.depth == count
        history = history.appended(said("user", "b"))


@pytest.mark.req("S3-34")
def test_mention_entry_counts_in_the_budget() -> None:
    history = lines("a coin")
    without = prompt_of(history=history)
    prompt = prompt_of(at_mention("One two three."), history=history)
    assert prompt.tokens == without.tokens + prompt.by_origin["lore:book#0"]
    assert prompt.by_origin["lore:book#0"] > 0


# Properties that hold for any conversation


def a_mentioning_book(draw: st.DrawFn, count: int) -> Lorebook:
    entries = [
        at_mention(
            f"Lore {i}.",
            draw(st.sampled_from(WORDS)),
            insertion_order=draw(st.integers(0, 3)),
            constant=draw(st.booleans()),
            side=draw(st.sampled_from(["before", "after"])),
            message=draw(st.sampled_from(["newest", "oldest"])),
        )
        for i in range(count)
    ]
    entries += [an_entry("@@depth 2\nDeep.", keys=["moon"]), an_entry("Plain.", keys=["rope"])]
    return a_book(*entries, scan_depth=draw(st.integers(1, 12)))


@st.composite
def talks(draw: st.DrawFn) -> tuple[Lorebook, list[Message], int, str | None]:
    """Draw a book with mention entries, a history with tool calls and records, a limit and an
    event."""
    history: list[Message] = []
    for i in range(draw(st.integers(0, 12))):
        word = draw(st.sampled_from(WORDS))
        kind = draw(st.sampled_from(["said", "said", "said", "tool", "record"]))
        if kind == "tool":
            call, result = a_tool_pair(i)
            history += [call, replace(result, content=f"A {word} was found.")]
        elif kind == "record":
            history.append(a_record())
        else:
            history.append(said(draw(st.sampled_from(["user", "assistant"])), f"m{i} {word}"))
    event = draw(st.one_of(st.none(), st.sampled_from(["A coin?", "Hm."])))
    limit = draw(st.sampled_from([90, 160, 100_000]))
    return a_mentioning_book(draw, draw(st.integers(0, 4))), history, limit, event


def is_mention(message: Message) -> bool:
    return message.injected and message.content.startswith("Lore ")


@pytest.mark.req("S3-34")
@quick
@given(talk=talks())
def test_mention_entry_is_never_outside_the_history(talk: Any) -> None:
    book, history, limit, event = talk
    prompt = the_prompt(books=(book,), history=history, event=event, limit=limit)
    blocks = [message.block for message in prompt.messages]
    inside = [index for index, block in enumerate(blocks) if block == "history"]
    assert inside == list(range(inside[0], inside[-1] + 1)) if inside else True
    standing = [i for i, m in enumerate(prompt.messages) if m.content.startswith("Lore ")]
    assert set(standing) <= set(inside)
    assert all(prompt.messages[index].injected for index in standing)


@pytest.mark.req("S3-34")
@quick
@given(talk=talks())
def test_mention_entry_is_never_between_a_call_and_its_result(talk: Any) -> None:
    book, history, limit, event = talk
    prompt = the_prompt(books=(book,), history=history, event=event, limit=limit)
    for index, message in enumerate(prompt.messages):
        if message.role == "tool":
            assert not prompt.messages[index - 1].injected


@pytest.mark.req("S3-34")
@quick
@given(talk=talks())
def test_mention_entry_is_next_to_the_message_in_its_verdict_or_at_an_end_of_the_history(
    talk: Any,
) -> None:
    book, history, limit, event = talk
    prompt = the_prompt(books=(book,), history=history, event=event, limit=limit)
    own = [m for m in prompt.messages if m.block == "history" and not m.injected]
    for piece in prompt.fragments:
        if piece.claim.beside is None:
            continue
        at = prompt.messages.index(piece.message)
        before = [m for m in prompt.messages[:at] if m in own]
        told = piece.claim.beside.at
        if told is None:
            assert len(before) == len(own)
        elif told < prompt.cut:
            assert not [m for m in before if m.counted]
        elif history[told].role != "tool":
            word = book.entries[int(piece.claim.origin.rpartition("#")[2])].keys[0]
            assert word in history[told].content
            spoken = [m for m in before if m.counted]
            is_before = piece.claim.depth == sum(m.counted for m in history[told:])
            assert len(spoken) == sum(
                m.counted for m in history[prompt.cut : told + (not is_before)]
            )


@pytest.mark.req("S3-34")
@quick
@given(talk=talks())
def test_mention_entry_changes_no_other_message_of_the_prompt(talk: Any) -> None:
    book, history, _, event = talk
    rest = [
        an_entry(f"Quiet {entry.uid}.", keys=["never"])
        if entry.mention
        else an_entry("@@depth 2\nDeep.", keys=["moon"])
        if entry.keys == ("moon",)
        else an_entry("Plain.", keys=["rope"])
        for entry in book.entries
    ]
    without = a_book(*rest, scan_depth=book.scan_depth)
    prompt = the_prompt(books=(book,), history=history, event=event)
    plain = the_prompt(books=(without,), history=history, event=event)
    kept = [message.wire() for message in prompt.messages if not is_mention(message)]
    assert kept == [message.wire() for message in plain.messages]
