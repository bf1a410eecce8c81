"""The command `ai` and the switches that look into one NPC."""

from collections.abc import Callable, Generator, Iterable, Sequence
from functools import partial
from typing import Any, Final

from twisted.internet.defer import Deferred

from evennia_ai.commands.ai.branches import BranchSwitches
from evennia_ai.commands.ai.chats import FileSwitches, refuse_all_but_admins
from evennia_ai.commands.ai.control import ControlSwitches
from evennia_ai.commands.ai.forecast import ForecastSwitch
from evennia_ai.commands.ai.history import (
    cache_lines,
    history_lines,
    replay_lines,
    verify_lines,
)
from evennia_ai.commands.ai.kept import KeptSwitches
from evennia_ai.commands.ai.memory import (
    FORGET_USAGE,
    forget_room_after_yes,
    memory_lines,
    player_named,
    write_memory,
)
from evennia_ai.commands.ai.operating import OperatingSwitches
from evennia_ai.commands.ai.reports import report_lines
from evennia_ai.commands.ai.request import write_request
from evennia_ai.commands.ai.settings import (
    change_setting,
    choose_profile,
    choose_tools_typed,
    mode_lines,
    profile_lines,
    profile_of,
    set_lines,
    set_mode,
    tools_lines,
)
from evennia_ai.commands.ai.status import compact_room, overview_lines, status_lines
from evennia_ai.commands.base import BUILDER_LOCK, CommandError, Run, alike
from evennia_ai.commands.forgetting import forget_player
from evennia_ai.commands.naming import (
    counted_number,
    is_npc_name,
    npc_and_number,
    npc_named,
    turn_of,
    turn_or_newest,
)
from evennia_ai.commands.prompt_shown import part_called
from evennia_ai.commands.screens import Row
from evennia_ai.commands.setup.lore.shown import item_to_explain
from evennia_ai.commands.turn_shown import (
    context_lines,
    debug_lines,
    item_lines,
    turn_lines,
    turn_with_words,
    why_lines,
)
from evennia_ai.engine.foreign.fields import suggest_name
from evennia_ai.engine.text.columns import escape_controls, wrap_hanging
from evennia_ai.npc.model_calls.examining import examine_profile
from evennia_ai.npc.runtime import runtime
from evennia_ai.npc.senses.presence import NPC
from evennia_ai.services.llm.doctor import Finding
from evennia_ai.store.history import turns

FULL: Final = "full"
"""The value of a switch that shows a screen with nothing folded."""


class CmdAI(
    ControlSwitches, OperatingSwitches, BranchSwitches, FileSwitches, KeptSwitches, ForecastSwitch
):
    """
    Look into the NPCs of the game and control them

    Usage:
      ai [<npc>]
      ai/<switch> [<npc>] [= <value>]

    The text that a model gets is called the prompt, and one answer a turn.

    Switches:
      start    - a list of tasks, and the command for each
      context  - <npc>[/<turn>]: the newest prompt on one screen
      why      - <npc> [= <item>]: each text of the newest prompt, and who wrote
                 it; or why something is in it or not. Name it by its key, by
                 an entry's name (the ferry) or by a message's number (#12).
                 With words that the NPC said: the prompt behind them
      history  - <npc>[/<page>]: what was said and done, the newest last
      undo     - <npc> [= <how many>]: its newest exchanges no longer count
      retry    - <npc> [= <hint>]: let it answer the last event again; the hint
                 is only for this answer
      reset    - <npc>: start the conversation in its room over; what it learnt
                 stays
      off      - <npc>: let it be silent; it still hears and remembers
      on       - <npc>: let it answer
      set      - <npc> [= <setting> [<value>]]: its own settings; a setting
                 without a value gets its usual value again
      profile  - [<npc> [= <profile>]]: list the models, or choose one for an NPC
      limits   - [<npc>]: how much models may be used and cost, and how much they
                 were used and cost
      stopall  - [= <reason>]: EMERGENCY: stop all NPCs of the game at once
      startall - let them answer again

    Examples:
      ai oren
      ai/context oren
      ai/why oren = the ferry
      ai/why oren = she sails at dusk
      ai/undo oren
      ai/set oren = temperature 0.7

    For more, type help ai/prompts, or another of the topics below.

    # subtopics

    ## prompts

    See what an NPC was told, and why. component/preview <npc> shows the prompt
    that it would get now.

    Switches:
      context  - <npc>[/<turn>] [= full | history | lore | left out | changes]:
                 the prompt of a turn, or one part of it; changes: what differs
                 from the turn before
      why      - <npc>[/<turn>] = <item>: why something is in the prompt or not;
                 <npc>/<turn> [= full]: who wrote each text of a turn, and since
                 when the NPC knew it
      replay   - <npc> = <turn> [full]: the exact prompt of a past turn; full:
                 also what was said before it
      cache    - <npc>: how much of each prompt was the same as in the one
                 before; a provider may charge less for that part
      debug    - <npc>[/<turn>]: four steps of a turn: were the facts of the
                 moment in the prompt, was knowledge searched, was a safe
                 summary made, and how the turn ended
      request  - <npc>[/<turn>]: write everything that the prompt was made from
                 into a file of the card folder; you can send it with a bug
                 report, and evennia-ai compose --request makes the same prompt
      watch    - [<npc>]: open a pane of the web client that follows the newest
                 prompt of an NPC, or of the one who answered you last

    Examples:
      ai/context oren = changes
      ai/why oren = mood
      ai/why oren = #4
      ai/why oren/2
      ai/why oren/2 = mood
      ai/replay oren = 2
      ai/debug oren
      ai/request oren
      ai/watch oren

    ## kept

    Keep good answers, and see whether a later change gives them another prompt.

    Switches:
      keep     - <npc>[/<turn>] [= <what it is about>]: keep a good answer, to be
                 told when its prompt becomes another one
      kept     - [<case>]: list the kept answers and their states, or show what
                 differs in one
      kept/accept - <case>: the prompt that it gets now is right

    Examples:
      ai/keep oren = asks about the night ferry
      ai/kept

    ## branches

    Try out a conversation from a past turn. The game hears nothing of it.

    Switches:
      branch   - <npc>/<turn>: continue from a past turn; then <npc> = <text>:
                 say something; <npc>: show what was said
      branch/prompt - <npc>[/<turn of the branch>] [= <part>]: show its prompt
      branch/close - <npc>: erase your branch

    Examples:
      say Oren, does the ferry run tonight?
      ai/branch oren/1
      ai/branch oren = What if I had paid?
      ai/branch/close oren

    ## memory

    See and change what an NPC remembers.

    Switches:
      memory   - <npc>[/<page>]: its memories, those that fit best now first;
                 <npc> = [about <player>:] <text>: add one;
                 <npc>/#<id> [= <text> | importance <1-10> | remove]: show,
                 change or remove one
      compact  - <npc>: replace the older part of the conversation in its room by
                 a summary, if that makes prompts shorter; nothing is lost

    Examples:
      ai/memory oren = about anna: Anna owes Oren a rope.
      ai/memory oren
      ai/compact oren

    ## records

    See, check, move and erase what was said. Nothing is erased by undo, retry,
    correct and reset: what was taken back no longer counts, and ai/history still
    shows it. All four take <npc>/<conversation> for another conversation, such
    as a whispered one.

    Switches:
      history  - <npc>[/<page>] [= full]: what is recorded, the newest last;
                 whispers are marked; full: also the texts of prompts
      correct  - <npc>/#<number> = <text>: from now on it said this instead
      verify   - <npc>: check that nobody changed the records in the database
      export   - <npc>[/<conversation>] [= <name>]: write a conversation, also a
                 whispered one, into a file of the card folder; with a name: as
                 a chat that SillyTavern can read
      import   - <npc> [= <file> [with <player>] [as <name>]]: import such a file
                 or a chat of SillyTavern (Admins); without a file: list them
      forget   - [<npc>] = <player>: erase what a player whispered, the answers,
                 and what NPCs remember of the player (Admins); what was said
                 aloud stays; here or room:<room>: erase what was said aloud in
                 a room and what NPCs learnt from it

    Examples:
      ai/history oren/1
      ai/verify oren
      ai/export oren = evening
      ai/import oren
      ai/forget = anna
      ai/forget here

    ## behaviour

    Choose how an NPC behaves.

    Switches:
      mode     - <npc> [= name_match | always | whisper_only | decide]: what it
                 listens to
      tools    - <npc> [= <tools>]: what it may do besides talking; +name adds a
                 tool, -name takes one, none takes all; dangerous ones change
                 the world

    Examples:
      ai/mode oren = decide
      ai/tools oren = say, look
      ai/tools oren = +give, -say
      ai/set oren
      ai/set oren = temperature
      ai/profile oren = default

    ## operating

    Keep an eye on all NPCs of the game and on what they cost.

    Switches:
      list     - [<part of a name>][/<page>]: all NPCs of the game, or those with
                 this in their name or in the name of their room
      log      - <npc>[/<page>]: its newest turns: when, for whom, what they cost
                 and how they ended; also changes of its settings
      reports  - [<page>]: what players reported with ai report, the newest first
      tell     - [on | off]: get a message when a call of a model fails, a limit
                 is reached, or a prompt shares less with the one before
      check    - [<profile>]: test its server in ten seconds: address, key, model,
                 streaming, tools, window, speed, and what to do (Admins)
      forecast - <npc> [= <edit>, ...]: what a turn costs with the texts of today
                 instead of those of its newest turns, or with an edit that you
                 have not made
      pause    - <npc> [= <reason>]: stop all calls of models for this NPC
      resume   - <npc>: end the pause

    Examples:
      ai/list landing
      ai/log oren
      ai/reports
      ai/tell on
      ai/check default
      ai/pause oren = says strange things
      ai/resume oren
      ai/limits
      ai/forecast oren
      ai/forecast oren = component:mood.off=yes
      ai/stopall = the bill
      ai/startall
    """

    key = "ai"
    locks = BUILDER_LOCK.format(key="ai")
    help_category = "Building"
    auto_help = True
    verbs = {
        "": "status",
        "start": "start",
        "list": "list_all",
        "tell": "tell",
        **alike("context why history replay cache debug compact memory mode tools"),
        "set": "set_one",
        **alike("profile check verify export request undo retry correct reset"),
        "import": "import_file",
        **alike("keep kept forecast"),
        "kept/accept": "kept_accept",
        "branch": "branch",
        "branch/prompt": "branch_prompt",
        "branch/close": "branch_close",
        **alike("forget on off log limits pause resume watch"),
        "stopall": "stop_all",
        "startall": "start_all",
        "reports": "reports",
    }
    whole_words = frozenset({"stopall", "startall", "forget", "reset"})
    without_value = frozenset(
        {
            *("", "start", "list", "log", "on", "off", "cache", "debug", "compact", "check"),
            *(
                "verify",
                "request",
                "reset",
                "branch/close",
                "watch",
                "limits",
                "resume",
                "startall",
                "reports",
                "kept",
                "kept/accept",
            ),
        }
    )

    def names_something(self, text: str) -> bool:
        return is_npc_name(self.caller, text.partition("/")[0].strip())

    def status(self) -> None:
        if not self.lhs:
            self.show(overview_lines("", 1))
            return
        npc = self._npc("ai <npc>")
        self.show(status_lines(npc))

    def context(self) -> None:
        """Show the prompt of a past turn, by default the newest: folded, or one part of it."""
        usage = "ai/context <npc>[/<turn>] [= <part>]"
        npc, number = npc_and_number(self.caller, self.wanted(usage), what="turn")
        part = part_called(self.rhs or "")
        if number is None and turns.last_turn(npc.ai.ref) is None:
            self.say(
                f"{npc.key} had no turn yet; component/preview {npc.key} shows the prompt that it"
                " would get now."
            )
            return
        self.show(context_lines(self.caller, npc, turn_or_newest(npc, number), part))

    def why(self) -> None:
        """Explain one item of a past prompt, or everything that an NPC knew in one turn."""
        usage = "ai/why <npc>[/<turn>] [= <component, entry or message>]"
        npc, number = npc_and_number(self.caller, self.wanted(usage), what="turn")
        lines: Iterable[str | Row]
        if number is None and self.rhs is None:
            turn = turn_or_newest(npc, None)
            lines = turn_lines(self.caller, npc, turn, is_full=False)
        elif number is None:
            _, item = self.both(usage)
            said = turn_with_words(self.caller, npc, item)
            if said is not None:
                lines = turn_lines(self.caller, npc, said, is_full=False)
            else:
                lines = why_lines(self.caller, npc, item_to_explain(self.caller, npc, item))
        elif self.rhs and self.rhs.lower() != FULL:
            turn = turn_of(npc, number)
            item = item_to_explain(self.caller, npc, self.rhs)
            lines = item_lines(self.caller, npc, turn, item)
        else:
            is_full = bool(self.rhs)
            lines = turn_lines(self.caller, npc, turn_of(npc, number), is_full=is_full)
        self.show(lines)

    def history(self) -> None:
        usage = "ai/history <npc>[/<page>] [= full]"
        if self.rhs is not None and self.rhs.lower() != FULL:
            raise CommandError(f"Usage: {usage}. Nothing was changed.")
        npc, page = npc_and_number(self.caller, self.wanted(usage), what="page")
        self.show(history_lines(self.caller, npc, page or 1, is_full=bool(self.rhs)))

    def replay(self) -> None:
        name, wanted = self.both("ai/replay <npc> = <turn> [full]")
        npc = npc_named(self.caller, name)
        number, _, how = wanted.partition(" ")
        if how.strip().lower() not in ("", FULL):
            raise CommandError("Usage: ai/replay <npc> = <turn> [full]")
        turn = turn_of(npc, counted_number(number, what="turn"))
        self.show(replay_lines(self.caller, npc, turn, is_full=bool(how)))

    def cache(self) -> None:
        npc = self._npc("ai/cache <npc>")
        self.show(cache_lines(self.caller, npc))

    def debug(self) -> None:
        usage = "ai/debug <npc>[/<turn>]"
        npc, number = npc_and_number(self.caller, self.wanted(usage), what="turn")
        self.show(debug_lines(self.caller, npc, turn_or_newest(npc, number)))

    def compact(self) -> None:
        npc = self._npc("ai/compact <npc>")
        waiting = f"The conversation in the room of {npc.key} is being summarised; please wait."
        self.tell_of(compact_room(npc, by=self.actor), by=self.say, waiting=waiting)

    def memory(self) -> None:
        wanted = self.wanted("ai/memory <npc>[/<page> | /#<id>] [= <text>]")
        if self.rhs is None:
            self.show(memory_lines(self.caller, wanted))
        else:
            self.say(write_memory(self.caller, wanted, self.rhs, by=self.actor))

    def tools(self) -> None:
        npc = npc_named(self.caller, self.wanted("ai/tools <npc> [= <tools>]"))
        if self.rhs is None:
            self.show(tools_lines(npc))
        else:
            self.say(choose_tools_typed(npc, self.rhs, by=self.actor))

    def mode(self) -> None:
        self._looked_or_set("ai/mode <npc> [= <mode>]", partial(mode_lines, self.caller), set_mode)

    def set_one(self) -> None:
        self._looked_or_set("ai/set <npc> [= <setting> [<value>]]", set_lines, change_setting)

    def profile(self) -> None:
        if not self.args:
            self.show(profile_lines())
            return
        self._looked_or_set("ai/profile [<npc> [= <profile>]]", profile_of, choose_profile)

    def check(self) -> None:
        refuse_all_but_admins(self.caller, "check")
        live, name = runtime(), self.args.strip()
        access = live.access
        if name:
            profiles = {one.profile.name: one for one in live.models.accesses()}
            if name not in profiles:
                meant = suggest_name(name, profiles) or "."
                raise CommandError(f"There is no profile '{name}'{meant} ai/profile lists them.")
            access = profiles[name]
        done = Deferred.fromCoroutine(examine_profile(live.calls, access))
        server = f"The server of '{access.profile.name}'"
        waiting = f"{server} is being tested; this takes ten seconds at most."
        self.tell_of(done, by=self._show_findings, waiting=waiting)

    def _show_findings(self, findings: Sequence[Finding]) -> None:
        self.show(line for one in findings for line in wrap_hanging(escape_controls(one.line())))

    def verify(self) -> None:
        self.show(verify_lines(self._npc("ai/verify <npc>")))

    def reports(self) -> None:
        page = counted_number(self.args.strip(), what="page") if self.args.strip() else 1
        self.show(report_lines(self.caller, page))

    def request(self) -> None:
        usage = "ai/request <npc>[/<turn>]"
        npc, number = npc_and_number(self.caller, self.wanted(usage), what="turn")
        self.say(write_request(self.caller, npc, turn_or_newest(npc, number)))

    def forget(self) -> Run:
        refuse_all_but_admins(self.caller, "forget")
        if self.lhs and self.rhs is None:
            return self._room_forgotten()
        if not self.rhs:
            raise CommandError(f"Usage: {FORGET_USAGE}. Nothing was erased.")
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
        self.say(write(npc, self.rhs, by=self.actor))

    def _npc(self, usage: str) -> Any:
        return npc_named(self.caller, self.wanted(usage))

    def _forgotten(self, player_ref: str, npc: NPC | None) -> Generator[Any, Any, None]:
        by = self.actor
        self.say((yield from forget_player(player_ref, npc, by=by, agreed=self.agreed)))

    def _room_forgotten(self) -> Generator[Any, Any, None]:
        by, asked = self.actor, self.agreed
        self.say((yield from forget_room_after_yes(self.caller, self.lhs, by=by, agreed=asked)))
