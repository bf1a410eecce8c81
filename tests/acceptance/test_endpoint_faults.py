"""Test a real server whose model endpoint misbehaves: players get answers, the game goes on.

The table `FAULTS` has each fault and how its turns must end. Each fault is played once by a builder
next to the ferryman, and the tests read what was observed.
"""

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass

import pytest

from server.evennia_process import Evennia
from server.newcomer import read_demo
from server.telnet import Connection
from tests.acceptance.games import (
    builder_beside_npc,
    copied_game,
    logged_in,
    logs_of,
    rows_of,
    shown,
    started,
)
from tests.services.llm.clients.stub_server import (
    Behaviour,
    Seen,
    StubServer,
    answers,
    calls,
    closes_early,
    delta,
    drips,
    event,
    fails,
    hangs_up,
    sends,
    stalls_in_the_body,
    stalls_until_left,
    streams,
    streams_and_stalls,
)

pytestmark = pytest.mark.server

TIMEOUT_SECONDS = 1.5
QUICK_SECONDS = 1.0
"""The longest time for `look` in another player's client during a fault."""

MORE_LOOKS = 2
"""How often a fault is played again if `look` was slow, since the machine may be busy."""

KEY = "sk-a-key-that-nobody-may-see"
FALLBACK = "Give me a moment. The water is loud today."
"""The ferryman's fallback line."""

ANSWER = "Back again, and dry."
TEN_MEGABYTES = json.dumps({"choices": [{"message": {"content": "x" * 10_000_000}}]}).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """The behaviour of the endpoint, with what the player reads and how the turns end."""

    behaviours: tuple[Behaviour, ...]
    reads: str = FALLBACK
    turns: tuple[tuple[str, str], ...]
    """For each prompt, the state of its turn and a pattern of the outcome."""


def ends_in(why: str, *behaviours: Behaviour, reads: str = FALLBACK) -> Fault:
    return Fault(behaviours=behaviours, reads=reads, turns=(("failed", why),))


def said(behaviour: Behaviour, *, reads: str) -> Fault:
    """Return a fault after which the NPC says the incomplete stream up to its last sentence."""
    return Fault(behaviours=(behaviour,), reads=reads, turns=(("done", "answered"),))


def goes_on(*behaviours: Behaviour, act: str = "") -> Fault:
    """Return a fault after which the client retries and gets the right answer."""
    acts = (("done", act),) if act else ()
    done = ("done", "answered")
    return Fault(behaviours=(*behaviours, answers(ANSWER)), reads=ANSWER, turns=(*acts, done))


SILENT = "was still silent after 0.75 seconds"
BROKE_OFF = "the connection broke off in the reply"
DRIPPED = b"".join(event(delta("The tide. ")) for _ in range(100))
BEGUN = event(delta("The tide turns. It "))
EVENT_STREAM = "text/event-stream"
REFUSED = "refused"
FAULTS = {
    REFUSED: ends_in("Connection refused"),
    "hanging up": ends_in("no connection", hangs_up),
    "hanging up once": goes_on(hangs_up),
    "stalling before the headers": ends_in(SILENT, stalls_until_left),
    "stalling after the headers": ends_in(SILENT, stalls_in_the_body),
    "stalling in a stream": ends_in(SILENT, streams_and_stalls(event(delta("The")))),
    "dripping": ends_in(
        "was still answering after 1.5 seconds",
        drips(DRIPPED, pause=0.1, content_type=EVENT_STREAM),
    ),
    "too many requests once": goes_on(fails(429, retry_after="0.2")),
    "too many requests for an hour": ends_in("status 429", fails(429, retry_after="3600")),
    "broken": ends_in("status 500", fails(500)),
    "broken once": goes_on(fails(500)),
    "turned down": ends_in("status 400", fails(400)),
    "no JSON": ends_in("not a JSON object", sends(b"<html>Bad gateway</html>")),
    "no JSON in a stream": ends_in(
        "a piece of the stream is not a JSON object", streams(event("{"))
    ),
    "an end too early": ends_in(BROKE_OFF, closes_early),
    "half a stream": said(streams(event(delta("The"))), reads="The…"),
    "half a stream that was begun to be said": said(streams(BEGUN), reads="The tide turns."),
    "no choices": ends_in("the reply has no choices", sends(b'{"choices": []}')),
    "another form": ends_in("the text is empty", sends(b'{"choices": [{"message": [1, 2]}]}')),
    "a list": ends_in("not a JSON object", sends(b"[1, 2]")),
    "nothing but reasoning": ends_in("said aloud", answers("<think>What tide?</think>")),
    "ten megabytes": ends_in("larger than 1000000 bytes", sends(TEN_MEGABYTES)),
    "an unknown tool": goes_on(calls("fly to the moon", "{}"), act="used fly_to_the_moon"),
    "arguments of wrong types": goes_on(calls("look", '{"at": [1, null]}'), act="used look"),
    "arguments that are no JSON": goes_on(calls("look", '{"at": '), act="used look"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What was observed during one fault."""

    read: str
    look_seconds: float
    requests: list[Seen]
    turns: list[tuple[str, str]]
    log: str
    recovered: str


@pytest.fixture(scope="module")
def stub() -> Iterator[StubServer]:
    server = StubServer()
    yield server
    server.close()


@pytest.fixture(scope="module")
def game(stub: StubServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evennia]:
    """The demo game with the stub as its model, and an API key in the environment."""
    profile = {
        "base_url": stub.base_url,
        "model": "tiny",
        "timeout_seconds": TIMEOUT_SECONDS,
        "idle_seconds": TIMEOUT_SECONDS / 2,
        "max_retries": 1,
        "speaks_early": True,
    }
    settings = f"""
EVENNIA_AI_PROFILES = {{"default": {profile!r}}}
EVENNIA_AI_COOLDOWN_SECONDS = 0.0
EVENNIA_AI_LIMITS = {{"player": {{"calls_per_minute": 1000}}, "npc": {{"calls_per_minute": 1000}}}}
"""
    evennia = copied_game(tmp_path_factory.mktemp("game"), settings=settings)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("EVENNIA_AI_API_KEY", KEY)
        with started(evennia):
            yield evennia


@pytest.fixture(scope="module")
def builder(game: Evennia) -> Iterator[Connection]:
    """The demo builder, in the room of the ferryman, who has the tool `look`."""
    with builder_beside_npc(game) as connection:
        shown(connection, "ai/tools oren = look")
        yield connection


@pytest.fixture(scope="module")
def bystander(game: Evennia) -> Iterator[Connection]:
    demo = read_demo(game.root / "world" / "build_demo.py")
    with logged_in(game, *demo.player) as connection:
        yield connection


@pytest.fixture(scope="module")
def played(
    game: Evennia, stub: StubServer, builder: Connection, bystander: Connection
) -> Callable[[str], Played]:
    """A function that plays a fault at its first use, and returns what was observed."""
    known: dict[str, Played] = {}

    def seen(name: str) -> Played:
        fault = FAULTS[name]
        newest, before = newest_turn(game), len(stub.requests)
        stub.behaves(*(fault.behaviours or (answers("Nobody hears this."),)))
        with stub.away() if name == REFUSED else nullcontext():
            builder.send("say Oren, what of the tide?")
            look_seconds = seconds_to_look(bystander)
            read = builder.wait_for(r'^Oren says, ".*$', seconds=TIMEOUT_SECONDS + 60)
        return Played(
            read=read,
            look_seconds=look_seconds,
            requests=stub.requests[before:],
            turns=ended_turns(game, after=newest),
            log=logged(builder),
            recovered=asked(builder, stub, answers(ANSWER)),
        )

    def played_once(name: str) -> Played:
        if name not in known:
            known[name] = seen(name)
            for _ in range(MORE_LOOKS):  # another process may have used the processor
                if known[name].look_seconds >= QUICK_SECONDS:
                    known[name] = seen(name)
        return known[name]

    return played_once


def asked(builder: Connection, stub: StubServer, *behaviours: Behaviour) -> str:
    """Return what Oren says while the endpoint has these behaviours."""
    stub.behaves(*behaviours)
    builder.send("say Oren, what of the tide?")
    return builder.wait_for(r'^Oren says, ".*$', seconds=60)


def logged(builder: Connection) -> str:
    builder.send("ai/log oren")
    builder.wait_for("page 1", seconds=60)
    return builder.wait_for_quiet(quiet_seconds=0.2)


def seconds_to_look(bystander: Connection) -> float:
    begun = time.monotonic()
    bystander.send("look")
    bystander.wait_for("Exits", seconds=60)
    return time.monotonic() - begun


def newest_turn(game: Evennia) -> int:
    ((newest,),) = rows_of(game, "SELECT coalesce(max(id), 0) FROM evennia_ai_turn")
    return newest


def ended_turns(game: Evennia, *, after: int) -> list[tuple[str, str]]:
    """Wait until all turns after an ID have ended, and return their states and outcomes."""
    query = f"SELECT state, outcome FROM evennia_ai_turn WHERE id > {after} ORDER BY id"
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        turns = rows_of(game, query)
        if turns and all(state != "open" for state, _ in turns):
            return [(state, outcome) for state, outcome in turns]
        time.sleep(0.05)
    raise AssertionError(f"the turns did not end: {turns}")


every_fault = pytest.mark.parametrize("name", FAULTS)
Playing = Callable[[str], Played]


@every_fault
def test_player_reads_the_expected_line_for_each_endpoint_fault(played: Playing, name: str) -> None:
    assert f'Oren says, "{FAULTS[name].reads}' in played(name).read


@every_fault
def test_look_command_stays_fast_during_each_endpoint_fault(played: Playing, name: str) -> None:
    assert played(name).look_seconds < QUICK_SECONDS


@every_fault
def test_turns_record_state_and_outcome_of_each_endpoint_fault(played: Playing, name: str) -> None:
    turns = played(name).turns
    assert [state for state, _ in turns] == [state for state, _ in FAULTS[name].turns], turns
    for (_, outcome), (_, wanted) in zip(turns, FAULTS[name].turns, strict=True):
        assert re.search(wanted, outcome), outcome


@every_fault
def test_npc_log_shows_the_outcome_of_each_endpoint_fault(played: Playing, name: str) -> None:
    _, outcome = played(name).turns[-1]
    assert outcome[:30] in played(name).log


@every_fault
def test_next_question_is_answered_after_each_endpoint_fault(played: Playing, name: str) -> None:
    assert f'Oren says, "{ANSWER}"' in played(name).recovered


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("an unknown tool", "There is no tool 'fly_to_the_moon'; there are: look."),
        ("arguments of wrong types", "at"),
        ("arguments that are no JSON", "JSON"),
    ],
)
def test_model_receives_an_explanation_of_its_invalid_tool_call(
    played: Playing, name: str, told: str
) -> None:
    _, again = played(name).requests
    message = again.body["messages"][-1]
    assert message["role"] == "tool"
    assert told in message["content"]


def test_model_request_contains_the_prompt_and_the_api_key(
    builder: Connection, stub: StubServer
) -> None:
    assert 'Oren says, "The tide turns at six."' in asked(
        builder, stub, answers("Oren: The tide turns at six.")
    )
    request = stub.requests[-1]
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body["model"] == "tiny"
    first, *_, last = request.body["messages"]
    assert first["role"] == "system"
    said, minute = last["content"].split("\n")
    assert (last["role"], said) == ("user", "Tamsin: Oren, what of the tide?")
    assert re.fullmatch(r" *\[Now: [\d-]+ \d\d:\d\d\]", minute)


def test_markup_in_a_reply_is_shown_literally(builder: Connection, stub: StubServer) -> None:
    hostile = "|rRed|n {you.__class__} a } b $eval(1+1) |lclook|ltcome in|le\x1b[2J"
    read = asked(builder, stub, answers(hostile))
    assert "{you.__class__} a } b $eval(1+1)" in read
    assert "|rRed|n" in read


def test_breaker_opens_after_three_failed_calls_and_is_shown_in_the_status(
    builder: Connection, stub: StubServer
) -> None:
    for behaviour in (hangs_up, fails(500), hangs_up):
        assert FALLBACK in asked(builder, stub, behaviour)
    before = len(stub.requests)
    assert FALLBACK in asked(builder, stub, answers("Nobody hears this."))
    assert len(stub.requests) == before
    assert "open" in shown(builder, "ai oren")


def test_logs_explain_a_fault_and_never_contain_the_api_key(
    game: Evennia, played: Playing, builder: Connection
) -> None:
    played("no JSON")
    logs = logs_of(game)
    assert "the reply is not a JSON object" in logs
    assert KEY not in logs
    assert "Traceback" not in logs
