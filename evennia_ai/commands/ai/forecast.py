"""`ai/forecast`: what edits change about the cost of an NPC's turns."""

import time
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from evennia_ai.commands import kept_cases
from evennia_ai.commands.base import CommandError, StrictCommand
from evennia_ai.commands.naming import npc_named
from evennia_ai.engine.text.columns import escape_controls, wrap_hanging
from evennia_ai.npc.mind.viewers import seer_for
from evennia_ai.npc.senses.presence import NPC
from evennia_ai.npc.views.edits import AsOfToday
from evennia_ai.npc.views.forecast import MOST_TURNS, Forecaster
from evennia_ai.npc.views.looking import visible_past
from evennia_ai.npc.views.recomposing import Edit, PastReader, compare_turn
from evennia_ai.npc.views.trials import read_trial
from evennia_ai.npc.views.visibility import Seer
from evennia_ai.store.history import past_turns, turns

MOST_SECONDS: Final = 1.0
"""After so long in the reactor's thread the game forecasts no further turn."""


class ForecastSwitch(StrictCommand):
    """The switch `ai/forecast`."""

    def forecast(self) -> None:
        """Say what an edit, or all edits since, change about the cost of the newest turns."""
        npc = npc_named(self.caller, self.wanted("ai/forecast <npc> [= <edit>, ...]"))
        if turns.last_turn(npc.ai.ref) is None:
            raise CommandError(f"{npc.key} had no turn yet, so there is nothing to compare.")
        given = [line.strip() for line in (self.rhs or "").split(",") if line.strip()]
        edit: Edit = read_trial(given) if given else AsOfToday()
        forecaster = Forecaster(npc.ai.ref)
        steps = _forecast_each(npc, edit, seer_for(self.caller, npc.ai.ref), forecaster)
        done = kept_cases.in_steps(steps)
        what = "with this edit" if given else "with the texts of today"
        done.addCallback(lambda _: f"{npc.key}, {what}: {forecaster.found}")
        self.tell_of(done, by=self._show_line, waiting=f"The turns of {npc.key} are composed.")

    def _show_line(self, line: Any) -> None:
        self.show(wrap_hanging(escape_controls(str(line))))


def _forecast_each(npc: NPC, edit: Edit, seer: Seer, forecaster: Forecaster) -> Iterator[None]:
    """Compose one turn in each step, from the newest on, until the time is over."""
    reader, spent, ref = PastReader(), 0.0, npc.ai.ref
    numbers = past_turns.newest_numbers(ref, most=MOST_TURNS)
    for number in numbers:
        if spent > MOST_SECONDS:
            return
        begun = time.monotonic()
        turn = turns.get_turn(ref, number)
        forecaster.add(compare_turn(turn, edit, reader, partial(visible_past, seer)))
        spent += time.monotonic() - begun
        yield
