"""A key that a server sends back is never said, shown or stored (issue 14, Low)."""

import base64
import codecs
import json
import re
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.llm.chat import ChatReply
from evennia_ai.llm.endpoint import SecretText
from evennia_ai.llm.errors import ModelError
from evennia_ai.llm.key_masks import MASK, PIECE, KeyMask
from tests.llm.builders import a_request
from tests.llm.conftest import KEY, Making, MakingClaude
from tests.llm.handover import Handover
from tests.llm.stub_server import StubServer, answers, calls, fails, sends, streamed, streams

LONG_KEY = "sk-proj-9aZ/Qr+71xVfTq0LwB3nEe5dYs8KuHj2MoPc"
KEYS = (KEY, LONG_KEY, "0123456789abcdef0123456789abcdef", "aB3_dEfG-hIjK7")

FORMS = {
    "as it stands": str,
    "reversed": lambda key: key[::-1],
    "in large letters": str.upper,
    "in rot13": lambda key: codecs.encode(key, "rot13"),
    "in base64": lambda key: base64.b64encode(key.encode()).decode(),
    "reversed in base64": lambda key: base64.b64encode(key[::-1].encode()).decode(),
    "base64 reversed": lambda key: base64.b64encode(key.encode()).decode()[::-1],
    "in a sentence in base64": lambda key: base64.b64encode(f"Key: {key}.".encode()).decode(),
    "in base64 for addresses": lambda key: base64.urlsafe_b64encode(key.encode()).decode(),
    "in base32": lambda key: base64.b32encode(key.encode()).decode(),
    "in hexadecimal": lambda key: key.encode().hex(),
    "in hexadecimal with colons": lambda key: key.encode().hex(":"),
    "escaped for a shell": lambda key: "".join(f"\\x{ord(one):02x}" for one in key),
    "escaped for JSON": lambda key: "".join(f"\\u{ord(one):04x}" for one in key),
    "escaped for an address": lambda key: quote(key, safe=""),
    "each letter escaped for an address": lambda key: "".join(f"%{ord(one):02X}" for one in key),
    "in numbers": lambda key: " ".join(str(ord(one)) for one in key),
    "in bits": lambda key: " ".join(f"{ord(one):08b}" for one in key),
    "with blanks": " ".join,
    "with dashes": "-".join,
    "on lines": "\n".join,
    "with zero-width blanks": "\u200b".join,
    "doubled": lambda key: "".join(2 * one for one in key),
    "in wide letters": lambda key: "".join(
        chr(ord(one) + 0xFEE0) if one.isalnum() else one for one in key
    ),
    "in halves": lambda key: f"{key[: len(key) // 2]} and then {key[len(key) // 2 :]}",
}


def pieces_of(text: str, key: str) -> list[str]:
    """The runs of letters and digits of a form of the key that are in a text."""
    size = min(PIECE, len(key))
    found = "".join(one for one in text.lower() if one.isalnum())
    sought = "".join(one for one in key.lower() if one.isalnum())
    return [one for at in range(len(sought)) if len(one := sought[at : at + size]) == size
            and one in found]  # fmt: skip


@pytest.mark.parametrize(
    ("form", "key"),
    [
        (form, key)
        for form in FORMS
        for key in KEYS
        if form != "in halves" or len(key) >= 2 * PIECE + 4  # else half is shorter than a piece
    ],
)
def test_a_key_is_hidden_in_each_form(form, key):
    written = FORMS[form](key)
    masked = KeyMask(key).masked(f"Listen: {written} is what you want.")
    assert MASK in masked
    assert masked.startswith("Listen: ")
    assert masked.endswith(" is what you want.")
    assert pieces_of(masked, written) == []


@pytest.mark.parametrize("form", FORMS)
def test_of_a_stream_the_same_is_heard_letter_by_letter(form):
    mask = KeyMask(LONG_KEY)
    text = f"Ask: {FORMS[form](LONG_KEY)}, or {FORMS[form](LONG_KEY)}; aye."
    stream = mask.stream()
    assert "".join(map(stream.fed, text)) + stream.ended() == mask.masked(text)


@given(
    parts=st.lists(
        st.one_of(
            st.sampled_from([LONG_KEY, LONG_KEY[::-1], LONG_KEY[:15], LONG_KEY[9:40]]),
            st.text(max_size=8),
            st.text(alphabet="sk-projQa9 .,", min_size=60, max_size=120),
        ),
        max_size=6,
    ),
    cuts=st.lists(st.integers(0, 600), max_size=8),
)
def test_a_stream_is_masked_as_the_whole_is_wherever_it_is_cut(parts, cuts):
    mask, text = KeyMask(LONG_KEY), "".join(parts)
    stream, places = mask.stream(), [0, *sorted(cuts), len(text)]
    heard = [stream.fed(text[a:b]) for a, b in zip(places, [*places[1:], len(text)], strict=True)]
    said = "".join(heard) + stream.ended()
    assert said == mask.masked(text)
    assert pieces_of(said, LONG_KEY) == []


@given(text=st.text(alphabet="sk-projQa9 .,", max_size=60))
def test_a_text_without_a_piece_of_the_key_stays_as_it_is(text):
    if not pieces_of(text, LONG_KEY) and not pieces_of(text, LONG_KEY[::-1]):
        assert KeyMask(LONG_KEY).masked(text) == text


def test_what_cannot_be_the_key_is_heard_at_once():
    stream = KeyMask(LONG_KEY).stream()
    assert stream.fed("The ferry is late. Wait!").startswith("The ferry is late. ")


@pytest.mark.parametrize("word", ["", "none", "x", "anything", "lm-studio", "not-needed"])
def test_a_word_that_stands_for_no_key_may_be_said(word):
    said = f"I need not {word}, not anything, none at all."
    assert KeyMask(word).masked(said) == said


def test_a_server_s_explanation_has_no_key_of_any_length():
    assert SecretText("hush").hidden_in("bad key hush") == "bad key ***"


SAID = re.compile(r"My key: \*\*\*=* Aye\.")
ECHOES = pytest.mark.parametrize(
    "form", ["as it stands", "reversed", "in base64", "in hexadecimal", "with blanks"]
)


@pytest.mark.req("S0-53")
@ECHOES
@pytest.mark.parametrize("kind", ["openai", "stream"])
def test_a_reply_that_echoes_the_key_says_it_to_nobody(
    server: StubServer, model: Making, reactor: Handover, form: str, kind: str
) -> None:
    written = FORMS[form](LONG_KEY)
    pieces: list[str] = []
    if kind == "stream":
        server.behaves(streams(*streamed("My key: ", *written, " Aye.")))
    else:
        server.behaves(answers(f"My key: {written} Aye."))
    asked = model(api_key=SecretText(LONG_KEY)).complete(
        a_request(), listener=pieces.append if kind == "stream" else None
    )
    reply = reactor.outcome_of(asked)
    assert isinstance(reply, ChatReply)
    assert SAID.fullmatch(reply.text)
    assert "".join(pieces) in ("", reply.text)
    assert bool(pieces) == (kind == "stream")


@ECHOES
def test_the_anthropic_client_hides_it_too(
    server: StubServer, claude: MakingClaude, reactor: Handover, form: str
) -> None:
    text = f"My key: {FORMS[form](LONG_KEY)} Aye."
    body = {"content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "model": "c"}
    server.behaves(sends(json.dumps(body).encode()))
    asked = claude(api_key=SecretText(LONG_KEY)).complete(a_request())
    assert SAID.fullmatch(reactor.outcome_of(asked).text)


@ECHOES
def test_a_call_of_a_tool_has_no_key_in_it(
    server: StubServer, model: Making, reactor: Handover, form: str
) -> None:
    written = json.dumps({"text": FORMS[form](LONG_KEY)})
    server.behaves(calls("say", written))
    reply: Any = reactor.outcome_of(model(api_key=SecretText(LONG_KEY)).complete(a_request()))
    assert json.loads(reply.tool_calls[0].arguments)["text"].startswith(MASK)


@ECHOES
def test_an_error_quotes_no_key(
    server: StubServer, model: Making, reactor: Handover, form: str
) -> None:
    server.behaves(fails(401, f"wrong key {FORMS[form](LONG_KEY)}"))
    error = reactor.outcome_of(model(api_key=SecretText(LONG_KEY)).complete(a_request()))
    assert isinstance(error, ModelError)
    assert "wrong key ***" in str(error)
    assert pieces_of(str(error), FORMS[form](LONG_KEY)) == []
