"""The command `ai`: what an NPC's mind is doing and why its prompt was what it was."""

from collections.abc import Callable, Generator, Iterable
from typing import Any, Final

from evennia_ai.commands.ai.history import (
    cache_lines,
    exported,
    files,
    history_lines,
    imported,
    replay_lines,
    verify_lines,
)
from evennia_ai.commands.ai.memory import (
    forgetting,
    memory_lines,
    memory_written,
    player_named,
)
from evennia_ai.commands.ai.operating import OperatingSwitches
from evennia_ai.commands.ai.settings import (
    mode_lines,
    mode_set,
    profile_lines,
    profile_of,
    profile_told,
    set_lines,
    set_told,
    tools_chosen,
    tools_lines,
)
from evennia_ai.commands.ai.status import compacting, overview_lines, status_lines
from evennia_ai.commands.base import BUILDER_LOCK, CommandError, Run, alike
from evennia_ai.commands.naming import (
    counted_number,
    npc_and_number,
    npc_named,
    turn_of,
    turn_or_newest,
)
from evennia_ai.commands.setup.lore.shown import item_to_explain
from evennia_ai.commands.turn_shown import debug_lines, item_lines, turn_lines, why_lines
from evennia_ai.game.mind.viewers import seer_for
from evennia_ai.game.senses.presence import NPC
from evennia_ai.prompt.report import trace_lines

ADMIN_LOCK: Final = "perm(Admin)"


class CmdAI(OperatingSwitches):
    """
    Look into the mind of an NPC

    Usage:
      ai
      ai/list [<part of a name>][/<page>]
      ai <npc>
      ai/context <npc>
      ai/why <npc> = <component, entry or message>
      ai/why <npc>/<turn> [= <component, entry or message>]
      ai/history <npc>[/<page>]
      ai/replay <npc> = <turn>
      ai/cache <npc>
      ai/debug <npc>[/<turn>]
      ai/compact <npc>
      ai/memory <npc>[/<page>]
      ai/memory <npc> = [about <player>:] <text>
      ai/memory <npc>/#<id> [= <text> | importance <1-10> | remove]
      ai/mode <npc> [= <mode>]
      ai/tools <npc> [= <tools>]
      ai/set <npc> [= <setting> [<value>]]
      ai/profile [<npc> [= <profile>]]
      ai/verify <npc>
      ai/export <npc>[/<conversation>]
      ai/import <npc> [= <file>]
      ai/forget [<npc>] = <player>
      ai/on <npc>
      ai/off <npc>
      ai/log <npc>[/<page>]
      ai/limits [<npc>]
      ai/pause <npc> [= <reason>]
      ai/resume <npc>
      ai/stopall [= <reason>]
      ai/startall

    Switches:
      list    - all NPCs of the game and how each is doing, or those with a word
                in their name or in that of their room
      context - the prompt the NPC was last given: its tokens, its messages in
                their order, what was kept, what was left out and why
      why     - everything about one item of that prompt, by its key, the label
                or name of an entry (harbour#7, the ferry) or the number of a
                message; with a turn, what the NPC knew then, since when, and
                where each line of it is recorded
      history - what is recorded of the NPC, the newest page first, and nothing
                that is not recorded; what was whispered to it is marked
      replay  - the prompt of a past turn, rebuilt from its records, and whether
                these are the bytes that were sent
      cache   - how much of each of the last prompts was there already in the
                one before, and what ended it
      debug   - four steps through the newest turn: were the facts of the
                moment in the request, was the knowledge base searched, was a
                safe summary begun, what was decided and why
      compact - summarise the older part of what the NPC remembers of its room,
                or say why there is nothing to gain; all of it stays recorded
      memory  - what the NPC remembers and how much each memory counts now, by
                recency, importance and what was said last; with a text one is
                added, with #id one is shown with its changes, or changed
      mode    - what the NPC listens to, and what it made of what it heard last;
                with name_match, always, whisper_only or decide it listens so
      tools   - what the NPC may do beside answering, with what there is; with
                names it may do these alone, +name and -name change one, none
                takes all away; dangerous ones change the world
      set     - what is set for the NPC and where it comes from; with a name
                and a value that is set, with a name alone it is as usual again
      profile - the models there are and which the NPC speaks with; with a name
                it speaks with that one
      verify  - whether the records are what was written, by their hashes
      export  - write a conversation into a new file in the card folder, with all
                that was said in it, whispers too
      import  - take over a conversation from such a file (Admins); without a
                file, list those there are
      forget  - erase what a player whispered, with this NPC or with every NPC,
                what was answered, and what is remembered of the player (Admins);
                what was said aloud stays
      on      - let the NPC answer
      off     - let it be silent; it still remembers what it hears
      log     - the newest turns of the NPC and calls of models for it: when, for
                whom, tokens, time, what came of it; and what was set for it
      limits  - what players, NPCs and the game may ask of models, and have used
      pause   - have the NPC ask no model for now, behind the scenes neither
      resume  - let it go on
      stopall - EMERGENCY: stop all NPCs of the game at once; what waits for an
                answer is dropped, no model is asked for anything
      startall - let them answer again

    Examples:
      ai oren
      ai/context oren
      ai/why oren = mood
      ai/why oren = the ferry
      ai/why oren = 4
      ai/why oren/2
      ai/why oren/2 = mood
      ai/history oren
      ai/history oren/1
      ai/replay oren = 2
      ai/debug oren
      ai/memory oren = about anna: Anna owes Oren a rope.
      ai/memory oren/#1 = importance 8
      ai/mode oren = decide
      ai/tools oren = say, look
      ai/tools oren = +give, -say
      ai/set oren
      ai/set oren = temperature 0.7
      ai/set oren = temperature
      ai/profile oren = default
      ai/verify oren
      ai/forget = anna
      ai/off oren
      ai/list landing
      ai/log oren
      ai/pause oren = says strange things
      ai/stopall = the bill

    To see what would be sent now, use component/preview <npc>.
    """

    key = "ai"
    locks = BUILDER_LOCK.format(key="ai")
    help_category = "Building"
    auto_help = True
    verbs = {
        "": "status",
        "list": "list_all",
        **alike("context why history replay cache debug compact memory mode tools"),
        "set": "set_one",
        **alike("profile verify export"),
        "import": "import_file",
        **alike("forget on off log limits pause resume"),
        "stopall": "stop_all",
        "startall": "start_all",
    }

    def status(self) -> None:
        if not self.lhs:
            self.show(overview_lines("", 1))
            return
        npc = self._npc("ai <npc>")
        self.show(status_lines(npc))

    def context(self) -> None:
        npc = self._npc("ai/context <npc>")
        report = npc.ai.last_report()
        if report is None:
            self.say(
                f"{npc.key} was not asked anything yet; component/preview {npc.key} shows what"
                " it would be told now."
            )
            return
        seen = seer_for(self.caller, npc.ai.ref).report(report)
        self.show([f"What {npc.key} was last told:", *trace_lines(seen)])

    def why(self) -> None:
        """Everything about one item of the last prompt, or what was known in a past turn."""
        usage = "ai/why <npc> = <component, entry or message>, or ai/why <npc>/<turn>"
        npc, number = npc_and_number(self.caller, self.wanted(usage), what="turn")
        if number is None:
            _, item = self.both(usage)
            lines = why_lines(self.caller, npc, item_to_explain(self.caller, npc, item))
        elif self.rhs:
            turn = turn_of(npc, number)
            item = item_to_explain(self.caller, npc, self.rhs)
            lines = item_lines(self.caller, npc, turn, item)
        else:
            lines = turn_lines(self.caller, npc, turn_of(npc, number))
        self.show(lines)

    def history(self) -> None:
        usage = "ai/history <npc>[/<page>]"
        self._refuse_right_side(usage)
        npc, page = npc_and_number(self.caller, self.wanted(usage), what="page")
        self.show(history_lines(self.caller, npc, page or 1))

    def replay(self) -> None:
        name, number = self.both("ai/replay <npc> = <turn>")
        npc = npc_named(self.caller, name)
        turn = turn_of(npc, counted_number(number, what="turn"))
        self.show(replay_lines(self.caller, npc, turn))

    def cache(self) -> None:
        npc = self._npc("ai/cache <npc>")
        self.show(cache_lines(npc))

    def debug(self) -> None:
        usage = "ai/debug <npc>[/<turn>]"
        self._refuse_right_side(usage)
        npc, number = npc_and_number(self.caller, self.wanted(usage), what="turn")
        self.show(debug_lines(self.caller, npc, turn_or_newest(npc, number)))

    def compact(self) -> None:
        npc = self._npc("ai/compact <npc>")
        done = compacting(npc, by=self.typed_by)
        if not done.called:
            self.say(f"What {npc.key} remembers of its room is being summarised; please wait.")
        done.addCallback(self.say)

    def memory(self) -> None:
        wanted = self.wanted("ai/memory <npc>[/<page> | /#<id>] [= <text>]")
        if self.rhs is None:
            self.show(memory_lines(self.caller, wanted))
        else:
            self.say(memory_written(self.caller, wanted, self.rhs, by=self.typed_by))

    def tools(self) -> None:
        npc = npc_named(self.caller, self.wanted("ai/tools <npc> [= <tools>]"))
        if self.rhs is None:
            self.show(tools_lines(npc))
        else:
            self.say(tools_chosen(npc, self.rhs, by=self.typed_by))

    def mode(self) -> None:
        self._looked_or_set("ai/mode <npc> [= <mode>]", mode_lines, mode_set)

    def set_one(self) -> None:
        self._looked_or_set("ai/set <npc> [= <setting> [<value>]]", set_lines, set_told)

    def profile(self) -> None:
        if not self.args:
            self.show(profile_lines())
            return
        self._looked_or_set("ai/profile [<npc> [= <profile>]]", profile_of, profile_told)

    def verify(self) -> None:
        self.show(verify_lines(self._npc("ai/verify <npc>")))

    def export(self) -> None:
        usage = "ai/export <npc>[/<conversation>]"
        self._refuse_right_side(usage)
        npc, number = npc_and_number(self.caller, self.wanted(usage), what="conversation")
        self.say(exported(self.caller, npc, number))

    def import_file(self) -> None:
        self._refuse_all_but_admins("import")
        npc = npc_named(self.caller, self.wanted("ai/import <npc> [= <file>]"))
        if self.rhs:
            self.say(imported(npc, self.rhs))
        else:
            self.show(files())

    def forget(self) -> Run:
        self._refuse_all_but_admins("forget")
        if not self.rhs:
            raise CommandError("Usage: ai/forget [<npc>] = <player>. Nothing was erased.")
        player = player_named(self.caller, self.rhs)
        npc = npc_named(self.caller, self.lhs) if self.lhs else None
        return self._forgotten(player, npc)

    def on(self) -> None:
        npc = self._npc("ai/on <npc>")
        npc.ai.enable()
        self.say(f"{npc.key} answers from now on.")

    def off(self) -> None:
        npc = self._npc("ai/off <npc>")
        npc.ai.disable()
        self.say(f"{npc.key} is silent from now on, and still remembers what it hears.")

    def _looked_or_set(
        self,
        usage: str,
        look: Callable[[NPC], Iterable[str]],
        write: Callable[..., str],
    ) -> None:
        npc = npc_named(self.caller, self.wanted(usage))
        if self.rhs is None:
            self.show(look(npc))
            return
        if not self.rhs:
            raise CommandError(f"Usage: {usage}. Nothing was changed.")
        self.say(write(npc, self.rhs, by=self.typed_by))

    def _npc(self, usage: str) -> Any:
        self._refuse_right_side(usage)
        return npc_named(self.caller, self.wanted(usage))

    def _refuse_right_side(self, usage: str) -> None:
        if self.rhs is not None:
            raise CommandError(f"Usage: {usage}, without '='. Nothing was changed.")

    def _refuse_all_but_admins(self, switch: str) -> None:
        if not self.caller.locks.check_lockstring(self.caller, ADMIN_LOCK):
            raise CommandError(f"ai/{switch} is for Admins. Nothing was changed.")

    def _forgotten(self, player_ref: str, npc: NPC | None) -> Generator[Any, Any, None]:
        by = self.typed_by
        self.say((yield from forgetting(player_ref, npc, by=by, agreed=self.agreed)))
