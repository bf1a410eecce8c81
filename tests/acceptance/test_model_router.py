"""Test prompt caches of three real model servers behind a real router.

Our client sends the requests, with its session keys. The servers report how many tokens their
caches had. `python -m tests.acceptance.test_model_router` prints the shares.
"""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

import pytest
from twisted.internet.defer import Deferred

from evennia_ai.services.llm.chat import ChatMessage, ChatReply, ChatRequest
from evennia_ai.services.llm.clients.openai import OpenAIChat
from evennia_ai.services.llm.profiles import Endpoint
from evennia_ai.services.net.bridge import AsyncBridge
from tests.acceptance.model_router import Router
from tests.acceptance.model_server import ModelServer
from tests.services.llm.builders import a_message, a_request
from tests.services.net.handover import Handover

pytestmark = [pytest.mark.service, pytest.mark.minutes(1)]

REPLICAS: Final = 3
NPCS: Final = 10
"""Not a multiple of the replicas. Otherwise taking turns would reach the same replica by chance."""
TURNS: Final = 6
REPLY_TOKENS: Final = 8
LONG_REPLY_TOKENS: Final = 1000
"""Takes the model a second or more, so that the test can kill it while it writes."""
ANSWER_SECONDS: Final = 300.0
"""The longest wait for an answer. Only a hanging server takes so long."""
NEAR: Final = 0.03
"""How far the cached share behind the router may be below the share of one server."""
FAR: Final = 0.1
"""How far the cached share by session key must be above the share when servers take turns."""


@dataclass
class Talks:
    """Conversations of NPCs with the model at one address. `used` has input and cached tokens."""

    base_url: str
    used: list[tuple[int, int]] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._reactor = Handover()
        self._bridge = AsyncBridge(self._reactor)
        self.endpoint = Endpoint(
            name="tiny",
            model="tiny",
            base_url=self.base_url,
            game_id="a game",
            session_header="x-session-id",
            timeout_seconds=ANSWER_SECONDS,
        )
        self._chat = OpenAIChat(self.endpoint, self._bridge)
        self._said: dict[int, list[ChatMessage]] = {}
        return self

    def __exit__(self, *_: object) -> None:
        self._bridge.stop()

    def key_of(self, npc: int) -> str:
        """Return the session key that the router gets for the NPC."""
        return self.endpoint.session_key(f"npc-{npc}")

    def says(self, npc: int, text: str) -> ChatReply:
        """Send one more line of the conversation, and return the reply."""
        reply = self._outcome_of(self._chat.complete(self._request(npc, text)))
        self._said[npc].append(a_message("assistant", reply.text or "aye"))
        assert reply.usage is not None
        self.used.append((reply.usage.input_tokens, reply.usage.cached_tokens))
        return reply

    def says_and(self, npc: int, text: str, do: Callable[[], None]) -> ChatReply:
        """Request a long reply, call `do` while it is written, and return the outcome."""
        deferred = self._chat.complete(self._request(npc, text, max_tokens=LONG_REPLY_TOKENS))
        do()
        return self._outcome_of(deferred)

    def all_say(self) -> None:
        """Play `TURNS` rounds, in each of which every NPC gets one line."""
        for turn in range(TURNS):
            for npc in range(NPCS):
                self.says(npc, f"And on day {turn}, what of the tide and of boat {turn * npc}?")

    @property
    def share(self) -> float:
        """The share of all prompt tokens that a cache had."""
        return sum(cached for _, cached in self.used) / sum(tokens for tokens, _ in self.used)

    def _request(self, npc: int, text: str, *, max_tokens: int = REPLY_TOKENS) -> ChatRequest:
        whole = f"You are number {npc}, who keeps boat {npc}. " * 30
        said = self._said.setdefault(npc, [a_message("system", whole)])
        said.append(a_message("user", text))
        return a_request(
            messages=tuple(said),
            max_tokens=max_tokens,
            timeout_seconds=ANSWER_SECONDS,
            cache_key=f"npc-{npc}",
        )

    def _outcome_of(self, deferred: Deferred[ChatReply]) -> ChatReply:
        reply = self._reactor.outcome_of(deferred, within_seconds=ANSWER_SECONDS)
        assert isinstance(reply, ChatReply), reply
        return reply


@contextmanager
def replicas(root: Path, count: int) -> Iterator[list[ModelServer]]:
    """Run `count` model servers with empty caches."""
    root.mkdir()
    with ExitStack() as stack:
        started = []
        for number in range(count):
            folder = root / str(number)
            folder.mkdir()
            started.append(ModelServer(folder))
            stack.callback(started[-1].close)
        yield started


def _places(servers: list[ModelServer]) -> list[str]:
    return [one.address.removeprefix("http://") for one in servers]


def share_of_one(root: Path) -> float:
    """Return the cached share if one server gets all requests."""
    with replicas(root, 1) as (server,), Talks(server.base_url) as talks:
        talks.all_say()
    return talks.share


def share_behind(root: Path, *, by_key: bool) -> float:
    """Return the cached share of three servers behind the router."""
    with (
        replicas(root, REPLICAS) as servers,
        Router(root / "router", _places(servers), by_key=by_key) as router,
        Talks(router.base_url) as talks,
    ):
        talks.all_say()
    return talks.share


@pytest.fixture(autouse=True)
def _direct(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def test_routing_by_session_key_reaches_the_cache_share_of_one_server(tmp_path: Path) -> None:
    one = share_of_one(tmp_path / "one")
    by_key = share_behind(tmp_path / "by_key", by_key=True)
    in_turn = share_behind(tmp_path / "in_turn", by_key=False)
    assert by_key > one - NEAR
    assert by_key > in_turn + FAR


def test_router_moves_only_sessions_of_a_dead_server(tmp_path: Path) -> None:
    with (
        replicas(tmp_path / "models", REPLICAS) as servers,
        Router(tmp_path / "router", _places(servers)) as router,
        Talks(router.base_url) as talks,
    ):
        for npc in range(NPCS):
            talks.says(npc, "Are you there?")
        at_first = {key: tried[-1] for key, tried in router.routed}
        assert len(at_first) == NPCS
        dying = servers[_places(servers).index(at_first[talks.key_of(0)])]
        (place,) = _places([dying])
        assert set(at_first.values()) - {place}

        def dies() -> None:
            dying.wait_until_writing()
            dying.kill()

        talks.says_and(0, "Tell me of the sea, at length.", dies)
        key, tried = router.routed[-1]
        assert key == talks.key_of(0)
        assert tried[0] == place != tried[-1]

        for npc in range(1, NPCS):
            talks.says(npc, "And now?")
        later = {key: tried[-1] for key, tried in router.routed[NPCS + 1 :]}
        assert place not in later.values()
        for key, before in at_first.items():
            if key in later and before != place:
                assert later[key] == before


if __name__ == "__main__":
    os.environ["NO_PROXY"] = "127.0.0.1"
    with tempfile.TemporaryDirectory() as folder:
        figures = {
            "one server": share_of_one(Path(folder, "one")),
            f"{REPLICAS} servers, by the session key": share_behind(
                Path(folder, "by_key"), by_key=True
            ),
            f"{REPLICAS} servers in turn": share_behind(Path(folder, "in_turn"), by_key=False),
        }
    for name, share in figures.items():
        sys.stdout.write(f"{name}: {share:.1%} of all prompt tokens were found in a cache\n")
