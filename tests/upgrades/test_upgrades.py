"""A game of each released version is migrated; its turns replay and its NPCs answer.

Each file beside this module is a database of a released version, compressed. `playing.py` says
how such a file is made.
"""

import lzma
from collections.abc import Iterator
from pathlib import Path

import pytest

from evennia_ai.cli.game import SETTINGS
from server.evennia_process import Evennia, is_running
from tests.acceptance.games import (
    DATABASE,
    QUICK_LOGINS,
    builder_beside_npc,
    logs_of,
    rows_of,
    shown,
    untouched_game,
)
from tests.cli.forked_games import ForkedGame
from tests.cli.processes import environment

HERE = Path(__file__).parent
TURNS = """
SELECT npc_ref, number FROM evennia_ai_turn WHERE state = 'done' AND npc_ref NOT LIKE '%~%'
ORDER BY id
"""
"""The branch in the fixture was closed, which erased its turn."""

pytestmark = [pytest.mark.server, pytest.mark.minutes(2)]


@pytest.fixture(
    scope="module", params=sorted(HERE.glob("played-*.db3.xz")), ids=lambda path: path.name[7:-7]
)
def game(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Evennia]:
    """The game of this checkout with the database of an older version, migrated, not started."""
    evennia = untouched_game(tmp_path_factory.mktemp("game"), settings=QUICK_LOGINS)
    (evennia.root / DATABASE).write_bytes(lzma.decompress(request.param.read_bytes()))
    evennia.prepare()
    yield evennia
    if is_running(evennia.root):
        evennia.end()


def test_every_record_and_turn_of_an_older_version_verifies_and_replays(game: Evennia) -> None:
    turns = rows_of(game, TURNS)
    assert len(turns) >= 8
    here = ("--game", str(game.root))
    forked = ForkedGame(game.root, environment=environment(DJANGO_SETTINGS_MODULE=SETTINGS))
    try:
        verified = forked.call("history", "verify", *here, cwd=game.root)
        assert verified.status == 0, verified.out + verified.err
        for npc_ref, number in turns:
            words = ("replay", "--npc", f"#{npc_ref}", "--turn", str(number), *here)
            replayed = forked.call(*words, cwd=game.root)
            assert replayed.status == 0, f"{words}: {replayed.out}{replayed.err}"
    finally:
        forked.close()


def test_what_builders_wrote_in_an_older_version_is_shown(game: Evennia) -> None:
    game.start()
    with builder_beside_npc(game) as builder:
        assert "Mira sells herbs" in shown(builder, "card mira/description")
        assert "Oren has a bad cold" in shown(builder, "note oren/cold")
        assert "fenbane" in shown(builder, "lore herbs")
        assert "by the demo world" in shown(builder, "component/revisions mood")
        builder.send("say Oren, what is your name?")
        assert builder.wait_for("Oren says")
    assert "Traceback" not in logs_of(game)
