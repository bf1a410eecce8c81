"""The command `ai`: what an NPC's mind is doing and why its prompt was what it was."""

from typing import Any

from evennia_ai.commands.naming import npc_named
from evennia_ai.commands.setup.listing import day_and_time
from evennia_ai.commands.setup.lore_hidden import seen_by
from evennia_ai.commands.setup.lore_trial import why_lines
from evennia_ai.commands.strict import BUILDER_LOCK, CommandError, StrictCommand
from evennia_ai.game.handler import LastTurn
from evennia_ai.game.npc import AIMixin
from evennia_ai.prompt.report import trace_lines


class CmdAI(StrictCommand):
    """
    Look into the mind of an NPC

    Usage:
      ai
      ai <npc>
      ai/context <npc>
      ai/why <npc> = <component, entry or message>
      ai/on <npc>
      ai/off <npc>

    Switches:
      context - the prompt the NPC was last given: its tokens, its messages in
                their order, what was kept, what was left out and why
      why     - everything about one item of that prompt, by its key, the label
                or name of an entry (harbour#7, the ferry) or the number of a
                message
      on      - let the NPC answer
      off     - let it be silent; it still remembers what it hears

    Examples:
      ai oren
      ai/context oren
      ai/why oren = mood
      ai/why oren = the ferry
      ai/why oren = 4
      ai/off oren

    To see what would be sent now, use component/preview <npc>.
    """

    key = "ai"
    locks = BUILDER_LOCK.format(key="ai")
    help_category = "Building"
    auto_help = True
    verbs = {"": "status", "context": "context", "why": "why", "on": "on", "off": "off"}

    def status(self) -> None:
        """How one NPC is doing, or which NPCs are here."""
        if not self.lhs:
            self._who_is_here()
            return
        npc = self._npc("ai <npc>")
        self.show("\n".join(status_lines(npc)))

    def context(self) -> None:
        """The prompt the NPC was last given."""
        npc = self._npc("ai/context <npc>")
        report = npc.ai.last_report()
        if report is None:
            self.say(
                f"{npc.key} was not asked anything yet; component/preview {npc.key} shows what"
                " it would be told now."
            )
            return
        self.show(
            "\n".join(
                [f"What {npc.key} was last told:", *trace_lines(seen_by(self.caller, report))]
            )
        )

    def why(self) -> None:
        """Everything about one item of the last prompt."""
        name, item = self.both("ai/why <npc> = <component, entry or message>")
        npc = npc_named(self.caller, name)
        self.show("\n".join(why_lines(self.caller, npc, item)))

    def on(self) -> None:
        """Let the NPC answer."""
        npc = self._npc("ai/on <npc>")
        npc.ai.enable()
        self.say(f"{npc.key} answers from now on.")

    def off(self) -> None:
        """Let the NPC be silent."""
        npc = self._npc("ai/off <npc>")
        npc.ai.disable()
        self.say(f"{npc.key} is silent from now on, and still remembers what it hears.")

    def _npc(self, usage: str) -> Any:
        if self.rhs is not None:
            raise CommandError(f"Usage: {usage}, without '='. Nothing was changed.")
        return npc_named(self.caller, self.wanted(usage))

    def _who_is_here(self) -> None:
        here = self.caller.location.contents if self.caller.location else []
        npcs: list[Any] = [npc for npc in here if isinstance(npc, AIMixin)]
        if not npcs:
            self.say("There is no NPC with a mind here; name one: ai <npc>")
            return
        lines = [f"{npc.key}: {'on' if npc.ai.enabled else 'off'}" for npc in npcs]
        self.show("\n".join(lines))


def status_lines(npc: Any) -> list[str]:
    """How an NPC is doing, one line each."""
    status = npc.ai.status()
    busy = "answering now" if status.in_flight else "idle"
    breaker = f", breaker {status.breaker}" if status.breaker else ""
    where = "no model is asked" if status.offline else "a model is asked"
    talks = ", ".join(f"{count} {kind}" for kind, count in status.conversations.items())
    state = f"{'on' if status.enabled else 'off'}, {busy}, {status.waiting} waiting"
    lines = [
        f"{npc.key} (#{npc.id}): {state}",
        f"  answers by     {status.endpoint} ({where}){breaker}",
        f"  card           {status.card or f'none; card/assign {npc.key} = <card> gives one'}",
        f"  conversations  {talks or 'none'}",
        f"  last turn      {_turn_in_words(status.last_turn)}",
    ]
    if status.unrecorded:
        lines.append(f"  not recorded   {status.unrecorded}: the database is away")
    return lines + [f"  problem        {problem}" for problem in status.problems]


def _turn_in_words(last: LastTurn | None) -> str:
    if last is None:
        return "none yet"
    outcome = f": {last.outcome}" if last.outcome else ""
    return f"{last.number}, {last.state}{outcome}, {day_and_time(last.created_at)}"
