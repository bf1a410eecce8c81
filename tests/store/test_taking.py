"""Test how workers use the token limits of NPCs and of the game, minute by minute."""

import pytest

from evennia_ai.store import model_calls
from evennia_ai.store.model_calls import GAME_REF, NewCall
from evennia_ai.store.work import taking
from evennia_ai.store.work.taking import Taken

NOW = 60_000_030.0
MINUTE = 1_000_000
ENDLESS = Taken()


def lease(npc_ref: str, *, tokens: int = 10, game: Taken = ENDLESS, npc: Taken = ENDLESS):
    return taking.take_tokens(NOW, tokens=tokens, most={GAME_REF: game, npc_ref: npc})


def called(npc_ref: str, *, seconds_ago: float) -> None:
    """Record that the game called a model for an NPC."""
    model_calls.add_call(
        NewCall(
            npc_ref=npc_ref,
            role="speaker",
            started_at=NOW - seconds_ago,
            seconds=1.0,
            input_tokens=10,
            outcome="answered",
        )
    )


@pytest.mark.parametrize("npc", [Taken(calls=2), Taken(tokens=25)], ids=["calls", "tokens"])
def test_exhausted_npc_limit_leaves_other_npcs_their_tokens(npc):
    assert [lease("12", npc=npc) for _ in range(3)] == [None, None, "12"]
    assert lease("13", npc=npc) is None


def test_refused_tokens_count_for_nobody():
    lease("12", npc=Taken(calls=1))
    lease("12", npc=Taken(calls=1))

    assert taking.report_game_use(MINUTE, {}) == {
        GAME_REF: Taken(tokens=10, calls=1),
        "12": Taken(tokens=10, calls=1),
    }


def test_exhausted_game_limit_refuses_every_npc():
    assert lease("12", game=Taken(calls=1)) is None
    assert lease("13", game=Taken(calls=1)) == GAME_REF


def test_games_own_calls_for_the_npc_in_the_last_minute_count():
    called("12", seconds_ago=20)
    called("12", seconds_ago=70)
    called("13", seconds_ago=20)

    assert [lease("12", npc=Taken(calls=2)) for _ in range(2)] == [None, "12"]


def test_game_reports_its_own_use():
    lease("12")
    used = {GAME_REF: Taken(tokens=5, calls=1), "12": Taken(tokens=5, calls=3)}
    taking.report_game_use(MINUTE, used)

    assert lease("12", npc=Taken(calls=4)) == "12"
    assert lease("12", npc=Taken(calls=5)) is None


def test_new_minute_has_new_tokens():
    most = {"12": Taken(calls=1)}
    taken = [taking.take_tokens(when, tokens=1, most=most) for when in (NOW, NOW, NOW + 60)]

    assert taken == [None, "12", None]
