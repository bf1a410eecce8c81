"""Random games: records, screens and prompts agree after any steps in any order.

To run more games by hand, set EVENNIA_AI_GAMES=500. EVENNIA_AI_SHRINK=1 finds the smallest game
that fails.
"""

import gc
import os
from typing import Any
from unittest.mock import create_autospec

import pytest
from django.db import transaction
from django.test import override_settings
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from twisted.internet.task import Clock
from twisted.logger import globalLogPublisher

from evennia_ai.npc import service
from evennia_ai.npc.runtime import install
from evennia_ai.services.llm.quotas import Quota, Quotas
from evennia_ai.store.core.snapshots import forget_everything
from tests.conftest import forget_objects
from tests.npc.conftest import Stage
from tests.npc.wild_checks import check_end, check_step
from tests.npc.wild_games import NPCS, PLAYERS, Game
from tests.npc.wild_models import TOOLS, Errand, Note

GAMES = int(os.environ.get("EVENNIA_AI_GAMES", "12"))
SHRINK = [Phase.shrink] if "EVENNIA_AI_SHRINK" in os.environ else []

EARLY = {"client": "openai", "model": "m", "base_url": "http://127.0.0.1:9", "speaks_early": True}

PLAYER, NPC = st.sampled_from(PLAYERS), st.sampled_from(NPCS)
NAMED = st.sampled_from([[], ["Oren"], ["Oren"], ["Brida"], ["Ismay"], ["Oren", "Ismay"]])
SET = st.sampled_from(
    [
        {"tools": ()},
        {"tools": TOOLS},
        {"profile": "spare"},
        {"mode": "always"},
        {"mode": "decide"},
        {"cooldown_seconds": 3.0},
    ]
)


def one(name: str, *options: Any) -> Any:
    return st.tuples(st.just(name), *options)


STEPS = st.one_of(
    one("say", PLAYER, NAMED),
    one("say", PLAYER, NAMED),
    one("say", PLAYER, NAMED),
    one("whisper", PLAYER, NPC),
    one("whisper", PLAYER, st.just("Oren")),
    one("wait", st.sampled_from([0.1, 0.3, 0.6, 1.0, 3.0, 6.0, 30.0])),
    one("wait", st.sampled_from([0.1, 0.3, 0.6, 1.0, 3.0, 6.0, 30.0])),
    one("answer"),
    one("hand", PLAYER, NPC),
    one("move", PLAYER),
    st.one_of(
        one("log_out", PLAYER),
        one("delete", NPC),
        one("switch", NPC),
        one("pause", NPC),
        one("resume", NPC),
        one("stop_all"),
        one("start_all"),
        one("set", NPC, SET),
    ),
    st.one_of(one("forget", PLAYER), one("erase", NPC), one("compact", NPC)),
    one("end_errand", st.booleans()),
    st.one_of(one("conflict", NPC), one("conflict", st.just("Oren"))),
    one("fail", st.integers(0, 8), st.booleans(), st.sampled_from([1.0, 4.0, 12.0, 99.0])),
    st.one_of(one("crash"), one("reload")),
)
HABITS = st.lists(
    st.sampled_from(
        [
            *("say", "say", "slow say", "never", "stream say", "stream timeout", "stream bug"),
            *("silence", "empty", "timeout", "unavailable", "refused", "rubbish", "bug"),
            *("stream :note", "stream say:note", ":say", ":pose+note", "say:look", ":whisper"),
            *(":move", ":say+move+say", ":give", ":errand", ":errand", ":errand_result", ":fly"),
            *(":end_conversation", "slow :note+errand", "+".join([":note"] + ["note"] * 17)),
        ]
    ),
    min_size=1,
    max_size=8,
)


@pytest.fixture
def own_tools(db, logged, monkeypatch):
    """Give the game its own tools and two profiles that are asked in order.

    Its starts run no garbage collections, which would search the memory of all tests.
    """
    monkeypatch.setattr(service, "_garbage", create_autospec(service.Garbage, instance=True))
    own = {
        "EVENNIA_AI_TOOLS": ["tests.npc.wild_models.Errand", "tests.npc.wild_models.Note"],
        "EVENNIA_AI_PROFILES": {"default": EARLY, "spare": EARLY},
        "EVENNIA_AI_MODEL_ROLES": {"speaker": ["default", "spare"]},
    }
    with override_settings(**own):
        yield logged


@pytest.mark.long
@given(
    steps=st.lists(STEPS, min_size=10, max_size=40),
    habits=HABITS,
    calls=st.sampled_from([None, None, 1, 3]),
    cooldown_seconds=st.sampled_from([0.0, 2.0]),
    context_tokens=st.sampled_from([1000, 1400, 4000]),
    mode=st.sampled_from(["always", "decide"]),
)
@settings(
    max_examples=GAMES,
    deadline=None,
    print_blob=True,
    phases=[Phase.explicit, Phase.generate, *SHRINK],
    suppress_health_check=list(HealthCheck),
)
def test_records_screens_and_prompts_agree_after_random_steps(
    own_tools, steps, habits, calls, cooldown_seconds, context_tokens, mode
):
    limits = Quotas(player=Quota(calls_per_minute=calls), npc=Quota(), game=Quota())
    conf = {
        "limits": limits,
        "cooldown_seconds": cooldown_seconds,
        "context_tokens": context_tokens,
    }
    play(own_tools, steps, habits, mode, conf)


def play(logged: list[str], steps: Any, habits: list[str], mode: str, conf: Any) -> None:
    """Play one game, and remove everything that it left."""
    logged.clear()
    Note.ran.clear()
    Errand.sent.clear()
    failures: list[Any] = []
    observer = failures.append
    globalLogPublisher.addObserver(observer)
    try:
        forget_everything()
        with transaction.atomic():
            game = Game(Stage(Clock()), habits, conf, mode)
            try:
                for name, *options in steps:
                    getattr(game, name)(*options)
                    check_step(game)
                game.ends()
                check_end(game, logged)
            finally:
                game.closes()
            gc.collect(0)
            assert not [one for one in failures if one.get("log_failure")]
            raise _UndoneError
    except _UndoneError:
        pass
    finally:
        globalLogPublisher.removeObserver(observer)
        install(None)
        forget_everything()
        forget_objects()


class _UndoneError(Exception):
    """Raised to roll back what an example wrote."""
