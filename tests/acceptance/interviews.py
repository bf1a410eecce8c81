"""Run a real server in which a player asks an NPC for the secret that it guards."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from server.evennia_process import Evennia
from server.newcomer import read_demo
from server.telnet import Connection
from tests.acceptance.games import builder_beside_npc, logged_in, running_game, shown
from tests.services.llm.clients.stub_server import StubServer

NPC = "brida"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interview:
    """A game with the demo's builder and player in the room of the NPC."""

    game: Evennia
    builder: Connection
    player: Connection

    def ask(self, question: str) -> str:
        """Ask a question, and return what the player's client shows up to the answer."""
        self.player.send(f"talk {NPC} = {question}")
        heard = self.player.wait_for(rf'(?i){NPC}[^\n]* says?, "', seconds=60)
        return heard + self.player.wait_for_quiet(quiet_seconds=0.3)


@contextmanager
def interview(
    folder: Path, models: Callable[[Any], None], *, settings: str = ""
) -> Iterator[Interview]:
    """Run a game in the empty `folder`. `models` answers the requests to every model."""
    stub = StubServer()
    stub.behaves(models)
    settings = f"""
EVENNIA_AI_PROFILES = {{
    "default": {{"base_url": {stub.base_url!r}, "model": "tiny", "stream": False}}
}}
EVENNIA_AI_COOLDOWN_SECONDS = 0.0
EVENNIA_AI_LOG_LLM_REQUESTS = "full"
EVENNIA_AI_CONTEXT_TOKENS = 32768
{settings}
"""
    with ExitStack() as stack:
        stack.callback(stub.close)
        game = stack.enter_context(running_game(folder, settings=settings))
        builder = stack.enter_context(builder_beside_npc(game))
        shown(builder, f"@teleport/loc {NPC}")
        demo = read_demo(game.root / "world" / "build_demo.py")
        player = stack.enter_context(logged_in(game, *demo.player))
        shown(builder, f"@teleport {demo.player[0]} = here")
        yield Interview(game=game, builder=builder, player=player)
