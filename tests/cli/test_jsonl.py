"""`evennia-ai compose --jsonl`: one scenario per line in, one result per line out."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from evennia_ai.engine.foreign import documents
from tests.formats.scenario.builders import said

GOOD = json.dumps({"history": said(1)})


def answers(called: Any) -> list[Any]:
    assert called.status == 0
    assert called.err == ""
    return [json.loads(line) for line in called.out.splitlines()]


def test_lines_are_answered_in_order(call) -> None:
    lines = [json.dumps({"dynamic_context": [f"block {i}"]}) for i in range(5)]
    found = answers(call("compose", "--jsonl", stdin="\n".join(lines).encode()))
    assert [result["messages"][0]["content"] for result in found] == [
        f"block {i}" for i in range(5)
    ]


@pytest.mark.parametrize(
    ("line", "kind", "message"),
    [
        (b"nonsense", "scenario", "line 2: is not valid JSON"),
        (b"", "scenario", "line 2: is not valid JSON"),
        (b"null", "scenario", "it must be a mapping"),
        (b"[1, 2]", "scenario", "it must be a mapping"),
        (b"\xff\xfe", "scenario", "line 2: is not UTF-8 text"),
        (b'{"settings": {"seed": NaN}}', "scenario", "NaN is not a JSON number"),
        (b'{"settings": {"seed": 1e999}}', "scenario", "a number is not finite"),
        (b'{"settings": {"seed": ' + b"9" * 5000 + b"}}", "scenario", "is not valid JSON"),
        (b'{"history": [], "history": []}', "scenario", "member 'history' occurs twice"),
        (b"[" * 100_000, "scenario", "nested more than 64 deep"),
        (b'{"card":' * 50_000 + b"1" + b"}" * 50_000, "scenario", "nested more than 64 deep"),
        (b'{"event": {"content": "\\ud800"}}', "scenario", "half a character"),
        (b'{"historie": []}', "scenario", "unknown key 'historie'; did you mean 'history'?"),
        (b'{"card": {"spec": "chara_card_v3"}}', "card", "card.data: must be an object"),
        (b'{"lorebooks": [{"book": {}}]}', "book", "has no `entries`"),
        (b'{"card": "x.png"}', "card", "x.png: cannot be read"),
        (b'{"settings": {"tokenizer": "gpt-2"}}', "unsupported", "gpt-2"),
        (
            b'{"event": {"content": "hi"}, "settings": {"context_tokens": 1, "reply_tokens": 0}}',
            "budget",
            "the required texts need",
        ),
    ],
)
def test_bad_line_gets_an_error_and_the_batch_continues(
    call, line: bytes, kind: str, message: str
) -> None:
    stdin = b"\n".join([GOOD.encode(), line, GOOD.encode(), b""])
    first, error, last = answers(call("compose", "--jsonl", stdin=stdin))
    assert first == last
    assert list(error) == ["error"]
    assert error["error"]["kind"] == kind
    assert message in error["error"]["message"]
    assert len(error["error"]["message"]) <= 600
    assert error["error"]["message"].isprintable()


def test_a_line_that_is_too_long_is_not_read_into_memory(call, monkeypatch) -> None:
    from evennia_ai.cli import composing

    monkeypatch.setattr(composing, "MAX_BYTES", 1000)
    stdin = b"\n".join([GOOD.encode(), b"x" * 5001, b"y" * 1000, GOOD.encode()])
    first, long, short, last = answers(call("compose", "--jsonl", stdin=stdin))
    assert "line 2: is longer than 1000 bytes" in long["error"]["message"]
    assert "line 3: is not valid JSON" in short["error"]["message"]
    assert first == last
    assert documents.MAX_BYTES > 1000


def test_answers_are_utf_8_and_windows_line_ends_are_fine(call) -> None:
    line = json.dumps({"event": {"content": "渡し船 🙂"}}, ensure_ascii=False).encode() + b"\r\n"
    called = call("compose", "--jsonl", stdin=line)
    assert "渡し船 🙂" in called.out
    assert answers(called)[0]["messages"][0]["content"] == "渡し船 🙂"


def test_empty_input_gives_no_output(call) -> None:
    assert answers(call("compose", "--jsonl", stdin=b"")) == []


@pytest.mark.long
def test_an_answer_comes_before_the_next_line_is_sent() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-m", "evennia_ai.cli", "compose", "--jsonl"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for text in ("one", "two"):
            process.stdin.write(json.dumps({"event": {"content": text}}).encode() + b"\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
            assert answer["messages"][0]["content"] == text
        process.stdin.close()
    assert process.returncode == 0


def test_an_answer_is_one_line_whatever_text_is_in_it(call) -> None:
    said_text = "a\u2028b\u2029c\x85d\x9b2Je"
    line = json.dumps({"event": {"content": said_text}})
    called = call("compose", "--jsonl", stdin=line.encode())
    assert [found["messages"][0]["content"] for found in answers(called)] == [said_text]
    assert "\\u2028" in called.out
    assert "\x9b" not in called.out
