"""Test turns with a real model server: real HTTP, a real chat template, a real prompt cache.

The token counts that the server reports are compared with our records of the same turns. The
model's words are random and are not compared.
"""

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

import pytest
from pydantic import BaseModel
from twisted.internet.task import Clock

from evennia_ai.engine.actors import THE_GAME, trusted
from evennia_ai.engine.history.turn.replay import replay_turn
from evennia_ai.engine.prompt.components import PromptComponent
from evennia_ai.npc import runtime as running
from evennia_ai.npc.npc_settings import change_settings
from evennia_ai.services.endpoints import Models
from evennia_ai.services.llm.chat import ChatReply
from evennia_ai.services.llm.clients.anthropic import AnthropicChat
from evennia_ai.services.llm.clients.openai import OpenAIChat
from evennia_ai.services.llm.profiles import Endpoint
from evennia_ai.services.llm.roles import adapt_messages, chat_messages
from evennia_ai.services.llm.structured import ask_for_answer, request_for
from evennia_ai.services.net.bridge import AsyncBridge
from evennia_ai.services.settings.conf import conf
from evennia_ai.store import model_calls
from evennia_ai.store.authored import components
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.history import record_rows
from evennia_ai.store.history.past_turns import turns_in_order
from evennia_ai.store.history.turns import StoredTurn
from evennia_ai.store.model_calls import NewCall
from tests.acceptance.model_server import ANSWER_SECONDS, ModelServer, Template
from tests.npc.conftest import Stage
from tests.services.llm.builders import a_message, a_request
from tests.services.net.handover import Handover

pytestmark = pytest.mark.service

REPLY_TOKENS = 24
TURNS = 6
LINES = (
    "Oren, when does the ferry sail?",
    "Oren, and what of the tide?",
    "Who rang the bell last night, Oren?",
    "Oren, do you ever sleep?",
    "Is the fog worse in winter, Oren?",
    "Oren, thank you for the rope.",
)
CREED = "Oren keeps the ferry and the rope, and speaks of the tide as of an old friend. " * 12
TOLERANCE = 0.1
"""The largest allowed difference between our share and the server's share of a prompt.

We estimate tokens and count whole messages. The server counts each token, with the marks of its
chat template.
"""

SENTENCES = 'root ::= ([A-Z] [a-z]{4,8} ". "){12}'
"""A grammar that makes the server write twelve short sentences."""

QUOTES = {str(ord('"')): 12.0}
"""A logit bias for the quotation mark, so that the model ends its JSON strings.

The first 256 tokens of the tiny model are the bytes.
"""

Serve = Callable[..., ModelServer]


@pytest.fixture
def serve(tmp_path: Any) -> Iterator[Serve]:
    """A function that starts a model server with an empty cache."""
    started: list[ModelServer] = []

    def one(template: Template = "open") -> ModelServer:
        started.append(ModelServer(tmp_path, template=template))
        return started[-1]

    yield one
    for server in started:
        server.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A stored turn, and the record of its model call."""

    turn: StoredTurn
    call: NewCall


class Talk:
    """A conversation of Anna with an NPC whose model is on `server`."""

    def __init__(self, server: ModelServer, **profile: Any) -> None:
        self.server = server
        self.stage = Stage(Clock())
        self._reactor = Handover()
        asked = {
            "base_url": server.base_url,
            "model": "tiny",
            "temperature": 0.0,
            "seed": 7,
            "reply_tokens": REPLY_TOKENS,
            "context_tokens": 16_000,
            **profile,
        }
        settings = replace(conf(), cooldown_seconds=0.0, given_profiles={"default": asked})
        self._models = Models(settings, clock=self.stage.clock, bridge=AsyncBridge(self._reactor))
        self._reactor.outcome_of(self._models.prepare(), within_seconds=30)
        live = running.runtime_of(settings, clock=self.stage.clock, models=self._models)
        running.install(live)

    @property
    def npc_ref(self) -> str:
        ref: str = self.stage.npc.ai.ref
        return ref

    def says(self, text: str, *, while_it_answers: Callable[[], None] = lambda: None) -> str:
        """Let Anna say a line, and return the last line on her screen after the reply."""
        self.stage.says(self.stage.anna, text)
        ends = time.monotonic() + ANSWER_SECONDS
        while running.runtime().scheduler.in_flight(self.npc_ref):
            assert time.monotonic() < ends, "the turn did not end"
            while_it_answers()
            self._reactor.make_next_call(within_seconds=ANSWER_SECONDS)
            self.stage.passes()
        return self.stage.screen_of(self.stage.anna)[-1]

    def taken(self) -> list[Taken]:
        """Return all turns of the NPC, oldest first."""
        stored = list(turns_in_order(self.npc_ref))
        calls = model_calls.calls_of_turns(self.npc_ref, [turn.number for turn in stored])
        return [Taken(turn=turn, call=call) for turn, call in zip(stored, calls, strict=True)]

    def read_by_the_model(self, turn: StoredTurn) -> str:
        """Return the text that the server's template makes of the replayed prompt."""
        records = record_rows.records(turn.manifest.sent_ids)
        sent = replay_turn(turn.manifest, records)
        assert sent.is_same
        roles = running.runtime().access.roles
        messages = adapt_messages(chat_messages(sent.messages), profile=roles)
        return self.server.prompt_of({"role": it.role, "content": it.content} for it in messages)

    def close(self) -> None:
        running.install(None)
        self._models.close()
        self._reactor.make_waiting_calls()


@pytest.fixture
def talking(serve: Serve, db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable]:
    """A function that starts a conversation with a server of its own."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    forget_everything()
    opened: list[Talk] = []

    def one(template: Template = "open", **profile: Any) -> Talk:
        opened.append(Talk(serve(template), **profile))
        return opened[-1]

    yield one
    for talk in opened:
        talk.close()
    forget_everything()


# One turn


@pytest.fixture
def turn(talking: Callable) -> tuple[Talk, str]:
    """A conversation with one answered turn, and the line that Anna read."""
    talk = talking()
    return talk, talk.says(LINES[0])


def test_reply_of_a_real_model_is_shown_and_recorded(turn: tuple[Talk, str]) -> None:
    talk, screen = turn
    (taken,) = talk.taken()
    kinds = [(kind, body) for kind, _, body in talk.stage.records()]
    (reply,) = [body for kind, body in kinds if kind == "assistant"]
    assert screen == f'Oren says, "{reply}"'
    assert ("user", LINES[0]) in kinds
    assert (taken.turn.state, taken.turn.outcome) == ("done", "answered")


def test_model_call_records_the_token_usage_of_the_server(turn: tuple[Talk, str]) -> None:
    (taken,) = turn[0].taken()
    call = taken.call
    assert (call.outcome, call.role, call.profile, call.turn) == (
        "answered",
        "speaker",
        "default",
        1,
    )
    assert not call.is_estimated
    assert (call.output_tokens, call.cached_tokens) == (REPLY_TOKENS, 0)
    assert call.first_piece_seconds is not None  # the reply was streamed


def test_replayed_prompt_has_the_token_count_of_the_server(turn: tuple[Talk, str]) -> None:
    talk, _ = turn
    (taken,) = talk.taken()
    text = talk.read_by_the_model(taken.turn)
    assert text.endswith(f"<|im_start|>user\nAnna: {LINES[0]}<|im_end|>\n<|im_start|>assistant\n")
    assert talk.server.tokens_of(text) == taken.call.input_tokens


def test_streamed_reply_is_said_sentence_by_sentence(talking: Callable) -> None:
    talk = talking(speaks_early=True, reply_tokens=200, extra={"grammar": SENTENCES})
    begun: list[int] = []
    talk.says(LINES[0], while_it_answers=lambda: begun.append(len(_spoken(talk))))
    assert 0 < max(begun) < len(_spoken(talk))
    (reply,) = [body for kind, _, body in talk.stage.records() if kind == "assistant"]
    assert " ".join(_spoken(talk)) == reply


def _spoken(talk: Talk) -> list[str]:
    """Return the lines that Oren said aloud."""
    screen = talk.stage.screen_of(talk.stage.anna)
    return [line.split('"')[1] for line in screen if line.startswith("Oren says")]


def test_instruct_model_answers_with_its_own_chat_template(
    talking: Callable,
) -> None:
    talk = talking("instruct", reply_tokens=60, context_tokens=4_096)
    screen = talk.says(LINES[0])
    (taken,) = talk.taken()
    assert (taken.turn.state, taken.turn.outcome) == ("done", "answered")
    assert re.fullmatch(r'Oren says, "[A-Z][^<|]{8,}[.!?…]"', screen), screen
    read = talk.read_by_the_model(taken.turn)
    assert read.startswith("<|im_start|>system\n")
    assert read.endswith("<|im_start|>assistant\n")
    assert f"Anna: {LINES[0]}<|im_end|>" in read
    assert taken.call.input_tokens == talk.server.tokens_of(read)


# The cache


def _rule(key: str, content: str, **fields: Any) -> None:
    components.create(PromptComponent(key=key, content=content, **fields), by=trusted("builder"))


def _talked(talk: Talk, *, edits_before: int | None = None) -> list[Taken]:
    """Play six turns, with a builder's edit of the creed before one of them."""
    for number, line in enumerate(LINES):
        if number == edits_before:
            components.update(
                "creed", content=f"Of late he is gruff. {CREED}", by=trusted("builder")
            )
        talk.says(line)
    return talk.taken()


def _shares(taken: list[Taken]) -> list[tuple[float, float]]:
    """For each prompt after the first: which share of the previous prompt it begins with.

    The first number is from our cache account, the second from the server's cache. The server's
    cache may also contain a part of the reply.
    """
    return [
        (
            (now.turn.manifest.shared_tokens or 0) / before.turn.manifest.tokens,
            min(1.0, (now.call.cached_tokens or 0) / before.call.input_tokens),
        )
        for before, now in pairwise(taken)
    ]


def _agree(shares: list[tuple[float, float]]) -> bool:
    return all(abs(ours - theirs) <= TOLERANCE for ours, theirs in shares)


def test_cache_account_matches_the_server_in_a_continued_conversation(talking: Callable) -> None:
    _rule("creed", CREED, id=1201)
    shares = _shares(_talked(talking()))
    assert len(shares) == TURNS - 1
    assert _agree(shares), shares
    assert min(theirs for _, theirs in shares) >= 0.85


def test_cache_account_matches_the_server_after_an_edit_at_the_start(talking: Callable) -> None:
    _rule("creed", CREED, id=1201)
    shares = _shares(_talked(talking(), edits_before=3))
    assert _agree(shares), shares
    assert [theirs < 0.5 for _, theirs in shares] == [False, False, True, False, False]


def test_cache_account_matches_the_server_with_an_injected_component(talking: Callable) -> None:
    _rule("creed", CREED, id=1201)
    _rule("mood", f"Oren is cold. {CREED}", id=1202, injection_depth=2)
    shares = _shares(_talked(talking()))
    assert _agree(shares), shares
    assert [theirs < 0.7 for _, theirs in shares] == [False, True, True, True, True]


# Structured answers, chat templates and Anthropic's protocol


class Act(BaseModel):
    """An answer schema without free text, which a random model could continue endlessly."""

    act: Literal["wait", "row", "ring the bell"]
    again: bool


@pytest.fixture
def asked(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable]:
    """A function that sends a request with a client of this server, and returns the answer."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    reactor = Handover()
    bridge = AsyncBridge(reactor)

    def one(server: ModelServer, client: Any, do: Callable, *, path: str = "/v1") -> Any:
        endpoint = Endpoint(name="tiny", model="tiny", base_url=f"{server.address}{path}")
        chat = client(endpoint, bridge)
        return reactor.outcome_of(do(chat), within_seconds=30)

    yield one
    bridge.stop()


def test_structured_answer_matches_its_schema(serve: Serve, asked: Callable) -> None:
    question = (a_message("system", "You are Oren."), a_message("user", "What now?"))
    messages, schema = request_for(question, Act, native=True)

    def do(chat: OpenAIChat) -> Any:
        def ask(said: Any) -> Any:
            return chat.complete(a_request(messages=said, schema=schema, max_tokens=400))

        return ask_for_answer(ask, messages, Act)

    assert isinstance(asked(serve(), OpenAIChat, do), Act)


def test_tool_call_works_through_a_schema_on_a_server_without_tools(
    talking: Callable,
) -> None:
    talk = talking(tools="schema", reply_tokens=600, extra={"logit_bias": QUOTES})
    change_settings(talk.stage.npc, tools=("look",), by=THE_GAME)
    talk.says(LINES[0])
    outcomes = [(one.turn.state, one.turn.outcome) for one in talk.taken()]
    assert set(outcomes) <= {("done", "used look"), ("done", "answered")}


@pytest.mark.parametrize(("template", "strict_roles"), [("strict", True), ("open", False)])
def test_turns_succeed_with_strict_and_open_chat_templates(
    talking: Callable, template: Template, strict_roles: bool
) -> None:
    _rule("mood", "Oren is cold.", id=1202, injection_depth=2)
    talk = talking(template, strict_roles=strict_roles)
    talk.stage.says(talk.stage.anna, "The fog is thick.")  # no answer: user twice in a row
    taken = _talked(talk)
    assert [one.turn.state for one in taken] == ["done"] * TURNS
    last = taken[-1]
    assert talk.server.tokens_of(talk.read_by_the_model(last.turn)) == last.call.input_tokens


def test_strict_template_refuses_messages_without_strict_roles(talking: Callable) -> None:
    _rule("mood", "Oren is cold.", id=1202, injection_depth=2)
    talk = talking("strict", strict_roles=False)
    assert "lost in thought" in talk.says(LINES[0])
    (taken,) = talk.taken()
    assert (taken.turn.state, taken.call.outcome) == ("failed", "failed:refused")


def test_anthropic_client_reports_cached_tokens(serve: Serve, asked: Callable) -> None:
    server = serve()
    messages = (a_message("system", CREED), a_message("user", "What now?"))

    def do(chat: AnthropicChat) -> Any:
        return chat.complete(a_request(messages=messages, max_tokens=REPLY_TOKENS))

    first: ChatReply = asked(server, AnthropicChat, do, path="")
    again: ChatReply = asked(server, AnthropicChat, do, path="")
    assert first.text
    assert first.usage is not None and again.usage is not None
    assert again.usage.input_tokens == first.usage.input_tokens
    assert first.usage.cached_tokens == 0
    assert again.usage.cached_tokens >= 0.95 * again.usage.input_tokens
