"""SillyTavern chat files: values read, errors, and writing without loss."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.errors import FormatError
from evennia_ai.formats.chats.chat import (
    ChatLimits,
    dump_chat,
    is_chat,
    read_chat,
    values_sha256,
)
from tests.formats.chats.builders import HEADER, a_chat, a_file, a_line, a_user_line, read

_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=6,
)
_MESSAGES = st.fixed_dictionaries(
    {"mes": _TEXTS},
    optional={
        "name": _TEXTS,
        "is_user": st.booleans(),
        "is_system": st.booleans(),
        "send_date": _TEXTS | st.integers(0, 2**45),
        "extra": st.dictionaries(_TEXTS, _VALUES, max_size=3),
        "swipes": st.lists(_TEXTS, max_size=4),
        "swipe_id": st.integers(0, 3),
        "swipe_info": st.lists(st.dictionaries(_TEXTS, _VALUES, max_size=2), max_size=2),
        "a field of tomorrow": _VALUES,
    },
)


def test_chat_header_has_the_names_and_each_later_line_a_message():
    chat = a_chat(HEADER, a_line(), a_user_line("When does she leave?"))
    assert (chat.user, chat.character) == ("Anna", "Oren")
    assert [(m.line, m.name, m.text, m.is_user) for m in chat.messages] == [
        (2, "Oren", "Evening.", False),
        (3, "Anna", "When does she leave?", True),
    ]


def test_group_chat_without_header_lists_characters_in_order():
    chat = a_chat(a_line("Mira"), a_user_line(), a_line("Oren"), a_line("Mira"))
    assert (chat.header, chat.characters) == (None, ("Mira", "Oren"))


def test_swipes_narration_and_hidden_lines_are_recognised():
    chat = a_chat(
        HEADER,
        a_line(swipes=["Evening.", "Hm?"], swipe_id=0),
        a_line("System", "Night falls.", extra={"type": "narrator"}),
        a_line(is_system=True),
    )
    told = [(m.swipes, m.is_narrator, m.is_hidden) for m in chat.messages]
    assert told == [(2, False, False), (0, True, False), (0, False, True)]


def test_empty_lines_and_byte_order_mark_of_a_chat_are_skipped():
    assert len(read(b"\xef\xbb\xbf" + a_file(HEADER) + b"\n\n" + a_file(a_line()) + b"\n").messages)


@given(
    header=st.none() | st.fixed_dictionaries({"user_name": _TEXTS, "x": _VALUES}),
    lines=st.lists(_MESSAGES, min_size=1, max_size=5),
)
def test_written_chat_equals_the_chat_read(header, lines):
    before = [*([header] if header is not None else []), *lines]
    chat = read(a_file(*before))
    written = b"".join(dump_chat(chat.header, [m.raw for m in chat.messages]))
    assert [json.loads(line) for line in written.split(b"\n")] == before


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "evening.jsonl: it is empty"),
        (b"{}", "line 1: mes must be text"),
        (a_file(HEADER, HEADER), "line 2: mes must be text"),
        (a_file(HEADER) + b"\n[]", "line 2: must be a JSON object"),
        (a_file(HEADER) + b'\n{"mes": "a"', "line 2: is not valid JSON"),
        (a_file(HEADER) + b'\n{"mes": NaN}', "line 2: is not valid JSON"),
        (a_file(HEADER) + b'\n{"mes": "a", "mes": "b"}', "line 2: member 'mes' occurs twice"),
        (a_file(HEADER) + b'\n{"mes": "\\ud83d"}', "line 2: a text has half a character"),
        (a_file(HEADER) + b'\n{"mes": "\xff"}', "line 2: is not UTF-8 text"),
        (a_file(a_line(is_user="yes")), "line 1: is_user must be true or false, not 'yes'"),
        (a_file(a_line(name=["ai/stopall"])), "line 1: name must be a text"),
        (a_file(a_line(swipes="two")), "line 1: swipes must be a list"),
        (b'{"mes": ' + b"[" * 500 + b"]" * 500 + b"}", "line 1: nested more than 64 deep"),
        (b'{"mes": ' + b"[" * 10**6, "line 1: nested more than 64 deep"),
    ],
)
def test_file_that_is_no_chat_is_refused_with_the_line(content, problem):
    with pytest.raises(FormatError, match=problem.replace("[", r"\[")):
        read(content)


def test_damaged_lines_are_kept_and_the_others_are_read():
    damaged = [b"[]", b'{"mes": "cut', b"\xff\x00"]
    content = b"\n".join([a_file(HEADER), damaged[0], a_file(a_line()), *damaged[1:]])
    chat = read(content)

    assert [message.line for message in chat.messages] == [3]
    assert [(one.line, one.content) for one in chat.unread] == [
        (2, damaged[0]),
        (4, damaged[1]),
        (5, damaged[2]),
    ]
    assert chat.unread[0].problem == "line 2: must be a JSON object"
    assert values_sha256(chat) != values_sha256(read(a_file(HEADER, a_line())))
    with pytest.raises(FormatError, match="line 4: a chat may have at most 2 messages"):
        read(content, limits=ChatLimits(messages=2))


@pytest.mark.parametrize(
    ("limits", "problem"),
    [
        ({"line_bytes": 100}, "line 1: it is longer than 100 bytes"),
        ({"file_bytes": 400}, "line 3: a chat may have at most 400 bytes; split it"),
        ({"messages": 1}, "line 3: a chat may have at most 1 messages; split it"),
        ({"swipes": 1}, "line 3: it has 2 swipes and may have 1"),
    ],
)
def test_chat_over_a_limit_is_refused(limits, problem):
    lines = (HEADER, a_line(), a_line(swipes=["a", "b"]))
    with pytest.raises(FormatError, match=problem):
        read(a_file(*lines), limits=ChatLimits(**limits))


def test_million_swipes_are_refused_with_their_number():
    with pytest.raises(FormatError, match="line 1: it has 1000000 swipes and may have 1000"):
        read(b'{"mes": "a", "swipes": [' + b"0," * (10**6 - 1) + b"0]}")


def test_endless_chat_line_is_read_only_up_to_the_limit():
    class Endless(io.BytesIO):
        asked = 0

        def readline(self, size=-1):
            Endless.asked += size
            return b"a" * size

    with pytest.raises(FormatError, match="line 1: it is longer than 1024 bytes"):
        read_chat(Endless().readline, where="endless", limits=ChatLimits(line_bytes=1024))
    assert Endless.asked == 1025


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (a_file(HEADER), True),
        (a_file(a_line()), True),
        (b"\r\n\n" + a_file(HEADER, a_line()), True),
        (b'{"transcript": 1, "npc_ref": "12"}', False),
        (b"[]", False),
        (b"{", False),
        (b"[" * 10**6, False),
    ],
)
def test_is_chat_decides_by_the_first_line_that_is_not_empty(line, expected):
    assert is_chat(line) is expected
