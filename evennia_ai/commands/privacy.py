"""Players' commands about NPCs and themselves: `ai off`, `ai me`, `ai language` and others.

`ai off` is a command of its own, with a blank in its name, because `ai` belongs to builders.
Evennia picks the command with the longest name that fits, so `ai off` means the player and
`ai/off oren` means an NPC.
"""

import time
from collections.abc import Callable, Generator
from functools import partial
from typing import Any, Final

from evennia.utils import logger

from evennia_ai.commands.base import (
    CommandError,
    PlayersCommand,
    Run,
    day_and_time,
    name_of,
    titled,
)
from evennia_ai.commands.forgetting import forget_player
from evennia_ai.commands.naming import npc_here
from evennia_ai.engine.prompt.language import language_named
from evennia_ai.engine.text.columns import escape_controls, wrap_hanging
from evennia_ai.engine.text.phrases import Phrase
from evennia_ai.npc.mind.own_data import OwnData, kept_in_words, newest_words_to, own_data
from evennia_ai.npc.runtime import runtime
from evennia_ai.npc.senses import choices
from evennia_ai.npc.senses.languages import (
    catalogue_languages,
    game_language,
    has_catalogue,
    language_name,
)
from evennia_ai.npc.senses.presence import object_of
from evennia_ai.npc.senses.text import one_line, plain_name, strip_markup
from evennia_ai.store.history.reports import add_report, reports_by
from evennia_ai.store.personal_data import npcs_keeping, personal_data

_WHOLE_WORD: Final = r"[ /=]|$"
_DAY_SECONDS: Final = 24 * 60 * 60
_MOST_A_DAY: Final = 20
"""The most reports of one character in 24 hours."""
_MOST_WHY: Final = 500
"""The most characters of what a player writes in a report."""
NOTHING_KEPT: Final = Phrase("No NPC keeps anything of you.")


class CmdPrivacy(PlayersCommand):
    """
    Decide what NPCs hear of you

    Usage:
      ai off         - no NPC hears or sees you
      ai on          - they hear and see you again

    Examples:
      ai off
      ai on

    This holds for all your characters. After ai off, nothing that you say or do
    reaches a model, a record, a memory or a log of the NPCs. What they remember
    from before stays. To hide what an NPC says from you, see help ignore.
    """

    key = "ai off"
    aliases = ("ai on",)
    arg_regex = _WHOLE_WORD
    verbs = {"": "choose"}
    without_value = frozenset({""})

    def choose(self) -> None:
        """Switch NPCs off or on for the player."""
        word = str(self.cmdstring).removeprefix("ai ").lower()
        if self.args.strip():
            raise CommandError(
                Phrase(
                    "The command {command} is about yourself and takes no name. Nothing was"
                    " changed.",
                    command=f"ai {word}",
                ),
                instead=f"ai/{word} {self.args.strip()}" if "ai" in self._other_commands() else "",
            )
        if word == "on":
            choices.opt_in(self.player)
            self.say(Phrase("NPCs hear and see you again. To be left alone: ai off"))
            return
        choices.opt_out(self.player)
        self.say(
            Phrase(
                "From now on no NPC hears or sees you: nothing that you say or do is kept or sent"
                " to a model. What NPCs remember from before stays. To be heard again: ai on"
            )
        )


class CmdLanguage(PlayersCommand):
    """
    Choose the language of the lines about NPCs

    Usage:
      ai language              - which language you read
      ai language <language>   - choose one, by its code or its English name
      ai language game         - read the language of the game

    Examples:
      ai language de
      ai language French
      ai language game

    You then read the lines of the game about NPCs, and the help of commands such
    as ai off, in this language. NPCs that you whisper to are asked to speak it.
    In a room they speak the language of the game. A builder may have given an
    NPC a language of its own, which it always speaks.
    """

    key = "ai language"
    arg_regex = _WHOLE_WORD
    verbs = {"": "choose"}
    without_value = frozenset({""})

    def choose(self) -> None:
        """Show the player's language, or change it."""
        player, typed = self.player, self.args.strip()
        if not typed:
            chosen = choices.chosen_language(player)
            code = chosen or game_language()
            language = language_name(code)
            there = ", ".join(catalogue_languages())
            self.say(
                Phrase(
                    "You chose {language}. There are texts in: {there}.",
                    language=language,
                    there=there,
                )
                if chosen
                else Phrase(
                    "You read the language of the game, {language}. There are texts in: {there}.",
                    language=language,
                    there=there,
                )
            )
            return
        code = "" if typed.casefold() in ("game", "default") else language_named(typed)
        if not code and typed.casefold() not in ("game", "default"):
            raise CommandError(
                Phrase(
                    "'{typed}' is no language that is known here; write its code, such as de or"
                    " fr. Nothing was changed.",
                    typed=typed,
                )
            )
        choices.choose_language(player, code)
        if not code:
            self.say(Phrase("You read the language of the game from now on."))
            return
        self.say(
            Phrase(
                "From now on your language is {language}. NPCs that you whisper to are asked to"
                " speak it.",
                language=language_name(code),
            )
        )
        if not has_catalogue(code):
            self.say(
                Phrase(
                    "The game has no texts in {language} yet, so its own lines stay in {game}.",
                    language=language_name(code),
                    game=language_name(game_language()),
                )
            )


class CmdOwnData(PlayersCommand):
    """
    See what NPCs keep of you, and erase it

    Usage:
      ai me                      - which NPCs keep something of you
      ai me/export               - read all of it, in pages
      ai me/forget [<npc>]       - erase it, after a question

    Examples:
      ai me
      ai me/export
      ai me/forget oren

    This is about the character that you play. ai me/forget erases what NPCs
    remember of you, what you whispered and their answers, your persona and the
    words of your reports. What you said aloud belongs to the room: ask the
    staff to erase it.
    """

    key = "ai me"
    arg_regex = _WHOLE_WORD
    verbs = {"": "summary", "export": "export", "forget": "forget"}
    without_value = frozenset({"", "export", "forget"})
    whole_words = frozenset({"forget"})

    def summary(self) -> None:
        """Show which NPCs keep how much of the player."""
        self._read(self._show_summary)

    def export(self) -> None:
        """Show everything that NPCs keep of the player."""
        self._read(self._show_everything)

    def forget(self) -> Run:
        """Ask, then erase what one NPC or all NPCs keep of the player."""
        npc = self._npc_that_keeps(self.args.strip()) if self.args.strip() else None
        return self._forgotten(npc)

    def _forgotten(self, npc: Any) -> Generator[Any, Any, None]:
        by, ref = self.actor, str(self.caller.id)
        self.say((yield from forget_player(ref, npc, by=by, agreed=self.agreed)))

    def _npc_that_keeps(self, name: str) -> Any:
        """Return the NPC of this name among those that keep something of the player."""
        keep = [object_of(ref) for ref in npcs_keeping(str(self.caller.id))]
        found = [one for one in keep if one is not None and one.key.lower() == name.lower()]
        if len(found) != 1:
            raise CommandError(
                Phrase(
                    "Several NPCs called '{name}' keep something of you. Nothing was erased. To see"
                    " which do: ai me",
                    name=name,
                )
                if found
                else Phrase(
                    "No NPC called '{name}' keeps anything of you. Nothing was erased. To see which"
                    " do: ai me",
                    name=name,
                )
            )
        return found[0]

    def _read(self, show: Callable[[OwnData], None]) -> None:
        reading = runtime().writer.read(partial(personal_data, str(self.caller.id)))
        reading.addCallback(partial(own_data, self.caller))
        self.tell_of(reading, by=show, waiting=Phrase("What NPCs keep of you is being read."))

    def _show_summary(self, data: OwnData) -> None:
        if not (data.npcs or data.persona or data.reports):
            self.say(NOTHING_KEPT)
            return
        lines = [self.words(Phrase("What NPCs keep of you:"))]
        for npc in data.npcs:
            lines += titled(npc.name, self.words(kept_in_words(npc)))
        if data.persona is not None:
            about = Phrase("the text that you wrote; see help persona")
            lines += titled(self.words(Phrase("persona")), self.words(about))
        if data.reports:
            reports = Phrase("{number} report", plural="{number} reports", number=len(data.reports))
            lines += titled(self.words(Phrase("reports")), self.words(reports))
        more = Phrase("To read all of it: ai me/export. To erase it: ai me/forget [<npc>]")
        self.show([*lines, more])

    def _show_everything(self, data: OwnData) -> None:
        lines: list[str] = []
        for npc in data.npcs:
            lines.append(self.words(Phrase("{npc} keeps of you:", npc=npc.name)))
            for text in npc.memories:
                memory = self.words(Phrase("memory: {text}", text=text))
                lines += wrap_hanging(escape_controls(f"    {memory}"))
            private, aloud = Phrase("private"), Phrase("aloud")
            for place, said in ((private, npc.private), (aloud, npc.aloud)):
                for line in said:
                    when = f"{day_and_time(line.said_at)}, {self.words(place)}"
                    lines += wrap_hanging(escape_controls(f"    {when}: {line.name}: {line.text}"))
        if data.persona is not None:
            persona = self.words(Phrase("Your persona: {text}", text=data.persona.text))
            lines += wrap_hanging(escape_controls(persona))
        for report in data.reports:
            about = Phrase(
                "Your report of {when}: {why}: {words}",
                when=day_and_time(report.reported_at),
                why=report.why,
                words=report.words,
            )
            lines += wrap_hanging(escape_controls(self.words(about)))
        self.show(lines or [NOTHING_KEPT])


class CmdReport(PlayersCommand):
    """
    Tell the staff about something that an NPC said

    Usage:
      ai report [<npc>] = <why>

    Examples:
      ai report oren = He asked for my password.
      ai report = That was rude.

    The staff gets the newest words that you could hear of this NPC, or of any
    NPC here, and the prompt behind them. They also read what you write.
    """

    key = "ai report"
    arg_regex = _WHOLE_WORD
    verbs = {"": "report"}

    def report(self) -> None:
        """Store a report about the newest words of an NPC."""
        if not self.rhs:
            raise CommandError(Phrase("Usage: ai report [<npc>] = <why>. Nothing was reported."))
        ref, why = str(self.caller.id), one_line(strip_markup(self.rhs))[:_MOST_WHY]
        day = [one for one in reports_by(ref) if one.reported_at > time.time() - _DAY_SECONDS]
        if len(day) >= _MOST_A_DAY:
            raise CommandError(
                Phrase(
                    "You reported {number} times today; ask the staff directly.", number=len(day)
                )
            )
        npc = npc_here(self.caller, self.lhs) if self.lhs else None
        found = newest_words_to(self.caller, npc)
        if found is None:
            raise CommandError(
                Phrase("No NPC here has said anything that you could hear. Nothing was reported.")
                if npc is None
                else Phrase("This NPC has said nothing that you could hear. Nothing was reported.")
            )
        turn, said = found
        number = add_report(turn, words=said.body, why=why, reporter_ref=ref)
        logger.log_msg(f"evennia_ai: report {number} of a player is new; ai/reports shows it")
        words = Phrase(
            "The staff can read it as report {number}: {words}", number=number, words=said.body
        )
        self.say(words)


class CmdIgnore(PlayersCommand):
    """
    Hide what an NPC says from you

    Usage:
      ignore            - list the NPCs that you ignore
      ignore <npc>      - ignore it, or no longer ignore it

    Examples:
      ignore oren
      ignore

    You no longer read what it says and does. It still hears you; see help ai off.
    """

    key = "ignore"
    verbs = {"": "ignore"}
    without_value = frozenset({""})

    def ignore(self) -> None:
        """List the ignored NPCs, or change whether one of them is ignored."""
        player, name = self.player, self.args.strip()
        ignored = {ref: self._name(ref) for ref in choices.ignored_npcs(player)}
        if not name:
            names = ", ".join(ignored.values())
            self.say(
                Phrase("You ignore {npcs}.", npcs=names)
                if names
                else Phrase("You ignore nobody: ignore <npc>")
            )
            return
        found = [ref for ref, known in ignored.items() if known.lower() == name.lower()]
        if len(found) == 1:
            choices.stop_ignoring(player, found[0])
            self.say(Phrase("You read what {npc} says again.", npc=ignored[found[0]]))
            return
        npc = npc_here(self.caller, name)
        ref, shown = str(npc.id), plain_name(npc.get_display_name(self.caller))
        if ref in ignored:
            choices.stop_ignoring(player, ref)
            self.say(Phrase("You read what {npc} says again.", npc=shown))
            return
        choices.ignore(player, ref)
        self.say(
            Phrase(
                "You no longer read what {npc} says and does. To change it: {command}",
                npc=shown,
                command=f"ignore {name}",
            )
        )

    def _name(self, ref: str) -> str:
        npc = object_of(ref)
        return name_of(ref) if npc is None else plain_name(npc.get_display_name(self.caller))
