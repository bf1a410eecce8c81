"""A real server with a model endpoint that misbehaves: players are answered, the game goes on."""

import time
from collections.abc import Iterator

import pytest

from server.evennia_process import Evennia, is_running
from server.newcomer import read_demo
from server.ports import HOST
from server.telnet import Connection
from tests.acceptance.games import copied_game
from tests.llm.stub_server import (
    Behaviour,
    StubServer,
    answers,
    closes_early,
    fails,
    hangs_up,
    sends,
    stalls,
)

pytestmark = pytest.mark.server

TIMEOUT_SECONDS = 2
KEY = "sk-a-key-that-nobody-may-see"
FALLBACK = "The water is loud today."
"""Of the ferryman's own fallback line."""


@pytest.fixture(scope="module")
def stub() -> Iterator[StubServer]:
    server = StubServer()
    yield server
    server.close()


@pytest.fixture(scope="module")
def game(stub: StubServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evennia]:
    """The demo game with the stub as its model, and a key in its environment."""
    settings = f"""
EVENNIA_AI_BASE_URL = {stub.base_url!r}
EVENNIA_AI_MODEL = "tiny"
EVENNIA_AI_MODEL_TIMEOUT_SECONDS = {TIMEOUT_SECONDS}
EVENNIA_AI_COOLDOWN_SECONDS = 0.0
"""
    evennia = copied_game(tmp_path_factory.mktemp("game"), settings=settings)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("EVENNIA_AI_API_KEY", KEY)
        evennia.prepare()
        evennia.start()
    yield evennia
    if is_running(evennia.root):
        evennia.stop()


@pytest.fixture(scope="module")
def builder(game: Evennia) -> Iterator[Connection]:
    """The demo builder beside the ferryman."""
    demo = read_demo(game.root / "world" / "build_demo.py")
    with Connection(HOST, game.ports.telnet) as connection:
        connection.wait_for("connect <name> <password>", seconds=20)
        connection.send(f"connect {demo.builder[0]} {demo.builder[1]}")
        connection.wait_for("You become|Exits", seconds=30)
        connection.wait_for_quiet()
        connection.send(f"@teleport/loc {demo.npc}")
        connection.wait_for_quiet()
        yield connection


def asked(builder: Connection, stub: StubServer, *behaviours: Behaviour) -> str:
    """What Oren says while the endpoint behaves so."""
    stub.behaves(*behaviours)
    builder.send("say Oren, what of the tide?")
    return builder.wait_for(r'^Oren says, ".*$', seconds=20)


def test_the_model_answers_and_is_sent_the_whole_prompt(builder, stub):
    assert 'Oren says, "The tide turns at six."' in asked(
        builder, stub, answers("Oren: The tide turns at six.")
    )
    request = stub.requests[-1]
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body["model"] == "tiny"
    first, *_, last = request.body["messages"]
    assert first["role"] == "system"
    assert (last["role"], last["content"]) == ("user", "Tamsin: Oren, what of the tide?")


@pytest.mark.parametrize(
    "behaviour",
    [
        pytest.param(sends(b"<html>Bad gateway</html>"), id="rubbish"),
        pytest.param(answers("<think>What tide?</think>"), id="nothing but reasoning"),
        pytest.param(fails(400), id="a refusal"),
        pytest.param(closes_early, id="a connection that closes early"),
    ],
)
def test_a_bad_answer_gives_the_fallback_line_and_the_next_turn_works(builder, stub, behaviour):
    assert FALLBACK in asked(builder, stub, behaviour)
    assert "Well asked." in asked(builder, stub, answers("Well asked."))


def test_what_a_model_writes_is_shown_and_never_interpreted(builder, stub):
    hostile = "|rRed|n {you.__class__} a } b $eval(1+1) |lclook|ltcome in|le\x1b[2J"
    shown = asked(builder, stub, answers(hostile))
    assert "{you.__class__} a } b $eval(1+1)" in shown
    assert "|rRed|n" in shown


def test_a_stalling_endpoint_holds_nobody_up(builder, stub):
    stub.behaves(stalls)
    builder.send("say Oren, are you there?")
    builder.wait_for("You say", seconds=5)
    start = time.monotonic()
    builder.send("look")
    builder.wait_for("Exits", seconds=5)
    assert time.monotonic() - start < TIMEOUT_SECONDS / 2
    builder.wait_for(FALLBACK, seconds=TIMEOUT_SECONDS + 10)
    assert "I am here." in asked(builder, stub, answers("I am here."))


def test_an_endpoint_that_dies_is_left_alone_and_the_status_says_so(builder, stub):
    for behaviour in (hangs_up, fails(500), hangs_up):
        assert FALLBACK in asked(builder, stub, behaviour)
    before = len(stub.requests)
    assert FALLBACK in asked(builder, stub, answers("Nobody hears this."))
    assert len(stub.requests) == before
    builder.send("ai oren")
    assert "open" in builder.wait_for_quiet()


def test_the_log_tells_what_happened_and_never_the_key(game, builder):
    logs = "".join(
        path.read_text(encoding="utf-8", errors="replace")
        for path in (game.root / "server" / "logs").glob("*.log")
    )
    assert "the reply is not JSON" in logs
    assert f"was still answering after {TIMEOUT_SECONDS} seconds" in logs
    assert KEY not in logs
    assert "Traceback" not in logs
