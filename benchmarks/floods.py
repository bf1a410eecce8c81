"""Measure what a hostile reply costs, and how much longer other requests wait meanwhile.

    python -m benchmarks.floods [--check]

A server on this machine sends each flood of `tests/services/llm/clients/floods.py`. Meanwhile the
same bridge asks another server for one short reply after the other. All times are processor time of
this process, so the work of other programs is not counted:

    processor  from the request for the flood to its refusal, both servers included
    slowest    the longest time from one of the other requests to its reply
    alone      the same without a flood

`--check` ends with status 1 if the other requests wait over a second longer, or if a flood costs
more than eight seconds of processor time.
"""

import argparse
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from time import process_time
from typing import Final, NamedTuple

from evennia_ai.services.llm.chat import ChatReply
from evennia_ai.services.llm.clients.openai import OpenAIChat
from evennia_ai.services.llm.profiles import Endpoint
from evennia_ai.services.net.bridge import AsyncBridge
from tests.services.llm.builders import a_message, a_request
from tests.services.llm.clients.floods import OPENAI, Flood
from tests.services.llm.clients.stub_server import StubServer
from tests.services.net.handover import Handover

MOST_SECONDS_MORE: Final = 1.0
MOST_PROCESSOR_SECONDS: Final = 8.0
TIMES: Final = 20
"""How often the other server is asked before the flood begins."""

A_LONG_PROMPT: Final = a_request(
    messages=tuple(a_message("user", "word " * 100) for _ in range(200))
)


class Cost(NamedTuple):
    """The cost of one flood, in seconds of processor time."""

    processor: float
    alone: float
    slowest: float

    @property
    def is_met(self) -> bool:
        more = self.slowest - self.alone
        return more <= MOST_SECONDS_MORE and self.processor <= MOST_PROCESSOR_SECONDS


class Asking:
    """Two models behind one bridge. The server of one of them sends floods."""

    def __init__(self, reactor: Handover, bridge: AsyncBridge) -> None:
        self._reactor, self._bridge = reactor, bridge
        self.hostile, self.kind = StubServer(), StubServer()
        self._flooded, self._other = self._model(self.hostile), self._model(self.kind)

    def cost(self, flood: Flood) -> Cost:
        """Let one server send the flood, and ask the other one until the flood is refused."""
        alone = max(self._reply_seconds() for _ in range(TIMES))
        self.hostile.behaves(flood.sent())
        before, slowest = process_time(), 0.0
        listener = (lambda _: None) if flood.heard else None
        asked = self._flooded.complete(A_LONG_PROMPT, listener=listener)
        ended = asked.addErrback(lambda failure: failure.value)
        while not ended.called:
            slowest = max(slowest, self._reply_seconds())
        return Cost(process_time() - before, alone, slowest)

    def close(self) -> None:
        """Stop both servers."""
        self.hostile.close()
        self.kind.close()

    def _reply_seconds(self) -> float:
        began = process_time()
        outcome = self._reactor.outcome_of(self._other.complete(a_request()), within_seconds=60)
        if not isinstance(outcome, ChatReply):
            raise SystemExit(f"the other server gave no reply: {outcome}")
        return process_time() - began

    def _model(self, server: StubServer) -> OpenAIChat:
        endpoint = Endpoint(
            name="stub",
            model="tiny",
            base_url=server.base_url,
            max_retries=0,
            timeout_seconds=60,
            idle_seconds=50,
        )
        model = OpenAIChat(endpoint, self._bridge)
        self._reactor.outcome_of(model.prepare(), within_seconds=60)
        return model


@contextmanager
def asking() -> Iterator[Asking]:
    """Yield the two models with their servers running."""
    os.environ["NO_PROXY"] = "127.0.0.1"
    reactor = Handover()
    bridge = AsyncBridge(reactor)
    try:
        with closing(Asking(reactor, bridge)) as models:
            yield models
    finally:
        bridge.stop()


def main() -> None:
    """Measure each flood and print a line about it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="end with status 1 if a limit is exceeded"
    )
    options = parser.parse_args()
    print(f"{'flood':36} {'processor':>9} {'alone':>7} {'slowest':>7}")
    missed = []
    with asking() as models:
        for name, flood in OPENAI.items():
            cost = models.cost(flood)
            print(
                f"{name:36} {cost.processor:9.2f} {cost.alone:7.3f} {cost.slowest:7.3f}"
                f"{'' if cost.is_met else '  MISSED'}"
            )
            missed += [] if cost.is_met else [name]
    if options.check and missed:
        raise SystemExit(
            f"other requests waited too long, or the flood cost too much: {', '.join(missed)}"
        )


if __name__ == "__main__":
    main()
