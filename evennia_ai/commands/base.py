"""StrictCommand: a MuxCommand that changes nothing if its switch is not understood.

Evennia runs a command without its switch if the switch is misspelt or ambiguous. A StrictCommand
refuses such a switch with one line and changes nothing. Errors of evennia_ai become one line too.
Text that other people wrote is shown literally: markup in it has no effect.
"""

import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from inspect import cleandoc
from types import GeneratorType
from typing import Any, ClassVar, Final

from django.conf import settings
from evennia.commands.default.muxcommand import MuxCommand
from evennia.utils import logger
from evennia.utils.search import search_object
from evennia.utils.utils import class_from_module
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from evennia_ai.commands.corrections import meant_verb, nearest_verb, verbs_elsewhere
from evennia_ai.commands.kept_cases import edits_made, foresee_revert, note_edit
from evennia_ai.commands.screens import Row, diffed, in_pages, shown_rows
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import (
    ComponentValueError,
    DuplicateComponentError,
    EvenniaAIError,
    on_one_line,
)
from evennia_ai.engine.history.records import make_storable
from evennia_ai.engine.prompt.names import guise_in, wearer_of
from evennia_ai.engine.text.columns import WIDTH, clip_text, escape_controls, pad_text, wrap_text
from evennia_ai.engine.text.phrases import Phrase, translatable
from evennia_ai.npc.mind.actors import actor_of, addresses_of
from evennia_ai.npc.senses.languages import ENGLISH, read_by, translate
from evennia_ai.npc.senses.text import plain_name
from evennia_ai.npc.speech.output import escape_block
from evennia_ai.store.history.chats import is_of_name_alone
from evennia_ai.store.history.record_rows import ConversationRef

MAX_LINE: Final = 600
YES: Final = translatable("y yes")
"""The answers that mean yes, apart by blanks."""
_MOST_SWITCHES: Final = 16
_MOST_TYPED: Final = 60
_MOST_WHY: Final = 200
_MOST_INSTEAD: Final = 240
_MOST_NAME_WORDS: Final = 8
"""The most words of a name that is searched in a line without "=". A search asks the database."""
MOST_ASKED: Final = 60
"""The most lines above a question. With more, the question would scroll out of sight."""


def shown_line(text: str) -> str:
    """Return `text` for `msg`, as one line of bounded length."""
    line = " ".join(text.split())
    return escape_block(line if len(line) <= MAX_LINE else line[: MAX_LINE - 3] + "...")


def day_and_time(seconds: float) -> str:
    """Return a time as builders read it, in UTC."""
    return datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%d %H:%M UTC")


def in_words(conversation: ConversationRef) -> str:
    """Describe a conversation in words. Whispered and imported ones are marked."""
    if is_of_name_alone(conversation):
        return f"conversation {conversation.id}: an IMPORTED chat, with no player of the game"
    if conversation.kind == "private":
        who = name_of(conversation.partner_ref)
        return f"conversation {conversation.id}: WHISPERED, with {who}"
    return f"conversation {conversation.id}: in the room {name_of(conversation.place_ref)}"


def name_of(ref: str) -> str:
    """Return the present name and number of an object, or only its number if it was deleted."""
    person, guise = wearer_of(ref), guise_in(ref)
    found = search_object(f"#{person}") if person.isdecimal() else ()
    named = f"{plain_name(found[0].key)} (#{person})" if found else f"#{person}"
    return f"{named} in guise {guise}" if guise else named


def revision_in_words(change: Any) -> str:
    """Describe a revision in one line: its number, when, what and by whom."""
    when = day_and_time(change.changed_at)
    return f"{change.number:5}  {when}  {change.action} by {change.changed_by}"


def and_more(lines: Sequence[str], *, most: int, more: str = "  and {} more") -> list[str]:
    """Return at most `most` lines, and one line that says how many more there are."""
    rest = len(lines) - most
    return [*lines[:most], *([more.format(rest)] if rest > 0 else [])]


def counted(number: int, what: str, plural: str = "") -> str:
    """Return a number with its noun, such as "1 page" or "2 pages"."""
    return f"{number} {what if number == 1 else plural or f'{what}s'}"


def titled(title: str, text: str) -> list[str]:
    """Return lines with a title in the left column and a text next to it."""
    first, *others = wrap_text(text, WIDTH - 16)
    return [
        f"  {pad_text(escape_controls(title), 13)} {first}",
        *(f"{'':16}{line}" for line in others),
    ]


def alike(switches: str) -> dict[str, str]:
    """Return verbs whose methods have the same names as the switches."""
    return {switch: switch for switch in switches.split()}


_GAMES_OWN: Any = class_from_module(settings.COMMAND_DEFAULT_CLASS)
# Use the game's own command class, with its hooks, if it parses switches and "=" as Evennia's
# MuxCommand does.
COMMAND_CLASS: Any = _GAMES_OWN if issubclass(_GAMES_OWN, MuxCommand) else MuxCommand
BUILDER_LOCK: Final = "cmd:perm({key}) or perm(Builder)"

# Fields of components that are called otherwise where builders type them.
FIELD_WORDS: Final = {"id": "ID", "injection_depth": "depth", "injection_order": "order"}
_WORD: Final = re.compile(r"[a-z]+ ")

# What `func` returns to Evennia: nothing, or a generator that asks questions.
Run = Generator[Any, Any, None] | None


class CommandError(EvenniaAIError):
    """A typed command cannot be done. The message says why and what to type instead.

    `instead` is a whole line that may be typed. A phrase is shown in the language of its reader.
    """

    def __init__(self, message: str | Phrase, *, instead: str = "") -> None:
        self.instead = instead
        self.message = message
        super().__init__(str(message))


class StrictCommand(COMMAND_CLASS):
    """The base class of all commands here.

    `verbs` maps each switch to the name of its method; "" is the command without a switch.
    """

    auto_help = False
    language: str = ENGLISH
    """The code of the language in which the caller reads phrases. Builders read English."""
    # The session in which the command was typed. Evennia's command handler sets it.
    session: Any = None
    verb: str | None = None
    """The switch that was typed, "" for none; None if the command has no such switch."""
    _edits_before = 0
    verbs: ClassVar[Mapping[str, str]] = {}
    thing: ClassVar[str] = ""
    """What the switches `assign` and `unassign` assign, such as "card"."""
    without_value: ClassVar[frozenset[str]] = frozenset()
    """Switches that take no "=". With one, the command changes nothing."""
    whole_words: ClassVar[frozenset[str]] = frozenset()
    """Switches that must be typed in full, because what they do cannot be undone by a switch."""

    def parse(self) -> None:
        """Keep the switches as they were typed; `func` resolves them."""
        self.switch_options = None
        # A client may send characters that no database can store.
        self.args: str = make_storable(self.args)
        super().parse()

    def func(self) -> Run:
        """Run the switch, or say in one line why not."""
        self._edits_before = edits_made()
        try:
            self.verb = self._verb()
            if self.verb in self.without_value and self.rhs is not None:
                self.refuse_value(instead="" if self.verb else self.line_for_value())
            done = getattr(self, self.verbs[self.verb])()
        except EvenniaAIError as error:
            self.say_error(error)
            return None
        if isinstance(done, GeneratorType):
            return self._asked(done)
        self._note_edit()
        return None

    def get_help(self, caller: Any, cmdset: Any) -> str:
        """Return the help text with its braces escaped. A hook of Evennia."""
        return str(self.__doc__).replace("{", "{{")

    def wanted(self, usage: str) -> str:
        """Return what was typed left of "=". Without it, raise CommandError with `usage`."""
        if not self.lhs:
            raise CommandError(Phrase("Usage: {usage}", usage=usage))
        return self.lhs

    def both(self, usage: str) -> tuple[str, str]:
        """Return what was typed left and right of "=". CommandError if either is missing."""
        if not self.lhs or not self.rhs:
            raise CommandError(Phrase("Usage: {usage}", usage=usage))
        return self.lhs, self.rhs

    def refuse_value(self, *, instead: str = "") -> None:
        """Raise CommandError if "=" was typed: a switch that takes no value must not ignore one.

        `instead` is the line that was probably meant, by default the same without "=".
        """
        if self.rhs is not None:
            what = "/".join((self.key, *self.switches))
            raise CommandError(
                Phrase("{command} takes no '='. Nothing was changed.", command=what)
                if self.switches
                else Phrase(
                    "Without a switch, {command} takes no '='. Nothing was changed.", command=what
                ),
                instead=instead or f"{what} {self.lhs}".strip(),
            )

    def turned_round(self, switch: str) -> CommandError:
        """Return the error for a place left of "=" and a thing right of it."""
        return CommandError(
            f"{self.key}/{switch} takes the {self.thing} first, then the place. Nothing was"
            " changed.",
            instead=f"{self.key}/{switch} {self.rhs} = {self.lhs}",
        )

    def refuse_empty(self, *, off: str) -> None:
        """Raise CommandError if nothing follows "=". `off` is the command that removes the text."""
        if self.rhs == "":
            raise CommandError(
                "There is no text after '='. Nothing was changed.", instead=f"{off} {self.lhs}"
            )

    def line_for_value(self) -> str:
        """Return the line that was probably meant by "=" without a switch, or ""."""
        return ""

    def names_something(self, text: str) -> bool:
        """True if `text` is what this command may be given left of "=".

        A command uses it to find a forgotten "=".
        """
        return False

    def agreed(self, question: str | Phrase) -> Generator[str, Any, bool]:
        """Ask the caller a question. Return True if the answer is yes."""
        answer = yield shown_line(self.words(Phrase("{question} yes/[no]", question=question)))
        meant = {*YES.split(), *self.words(YES).split()}
        return str(answer).strip().casefold() in meant

    def goes_back(
        self,
        what: str,
        number: int,
        *,
        changes: Sequence[str],
        revert: Callable[[], object] | None = None,
    ) -> Generator[str, Any, bool]:
        """Show what going back to a revision would change, and ask. True if the answer is yes.

        With `revert`, which goes back, also say how many kept answers would get another prompt.

        The caller passes the store the number of the revision that was newest before the question,
        and the store refuses if there is a newer one. The lines are not paged: the answer would
        turn the pages. In a script the next line is the answer.
        """
        if not changes:
            self.say(f"Nothing was changed: {what} is the same as at revision {number}.")
            return False
        more = f"and {{}} more lines; {self.key}/revisions tells what each revision changed"
        told = [f"What going back to revision {number} of {what} would change:", *changes]
        self.msg(shown_rows(diffed(and_more(told, most=MOST_ASKED, more=more))))
        if revert is not None:
            foresee_revert(revert, self.say)
        if not (yield from self.agreed(f"Make {what} what it was at revision {number}?")):
            self.say(f"Nothing was changed: {what} stays as it is.")
            return False
        return True

    @property
    def actor(self) -> Actor:
        """Return the actor who typed this.

        The right to use this command is checked at each change.
        """
        return self.acting_under(self.locks)

    def acting_under(self, locks: str) -> Actor:
        """Return the caller as an actor with the right that the command lock `cmd` requires."""
        return actor_of(self.caller, locks, addresses=addresses_of(self.session))

    def words(self, text: str | Phrase) -> str:
        """Return a text of the game in the language of the caller."""
        return translate(text, self.language)

    def say(self, text: str | Phrase) -> None:
        """Tell the caller one line. Markup in it has no effect."""
        self.msg(shown_line(self.words(text) if isinstance(text, Phrase) else text))

    def say_error(self, error: EvenniaAIError) -> None:
        """Tell the caller in one line why something was not done, and what to type instead."""
        told = _told(error)
        if isinstance(error, CommandError) and isinstance(error.message, Phrase):
            told = self.words(error.message)
        instead = clip_text(self._line_instead(error), _MOST_INSTEAD)
        if not instead:
            self.say(_sentence(told))
            return
        self.say(
            Phrase("{problem} Type this instead: {line}", problem=_sentence(told), line=instead)
        )

    def _line_instead(self, error: EvenniaAIError) -> str:
        """Return the line that was probably meant, or ""."""
        args = self.args.strip()
        first, _, rest = args.partition(" ")
        if not self.switches and first and not self.names_something(self.lhs):
            word = first.lower()
            verb = word if word in self.verbs else meant_verb(word, self.verbs)
            if verb:
                return f"{self.key}/{verb} {rest.strip()}".strip()
        if isinstance(error, CommandError) and error.instead:
            return error.instead
        takes_value = self.verb is not None and self.verb not in self.without_value
        if not takes_value or self.rhs is not None or self.names_something(args):
            return ""
        blanks = [at for at, letter in enumerate(args) if at and letter == " "]
        for at in reversed(blanks[:_MOST_NAME_WORDS]):
            if self.names_something(args[:at].strip()):
                what = "/".join((self.key, *self.switches))
                return f"{what} {args[:at].strip()} = {args[at:].strip()}"
        return ""

    def tell_of(
        self, done: "Deferred[Any]", *, by: Callable[[Any], None], waiting: str | Phrase = ""
    ) -> None:
        """Pass the result of `done` to `by`, or tell the caller why there is none.

        `waiting` is shown first if there is no result yet.
        """
        if waiting and not done.called:
            self.say(waiting)
        done.addCallback(by).addErrback(self.failed).addCallback(lambda _: self._note_edit())

    def failed(self, failure: Failure) -> None:
        """Tell the caller why a switch that waited for something failed."""
        if isinstance(failure.value, EvenniaAIError):
            self.say_error(failure.value)
            return
        typed = clip_text(escape_controls(getattr(self, "raw_string", "") or self.key), _MOST_TYPED)
        self.say(
            Phrase(
                "'{typed}' went wrong: {problem}. Check whether it was done before you type it"
                " again; the server's log has the details.",
                typed=typed,
                problem=unexpected(failure),
            )
        )

    def show(self, lines: Iterable[str | Row | Phrase]) -> None:
        """Show the caller several lines, in pages. Markup in their texts has no effect."""
        text = shown_rows(self.words(one) if isinstance(one, Phrase) else one for one in lines)
        if not in_pages(self.caller, text, session=self.session):
            self.msg(text)

    def _verb(self) -> str:
        """Return the switch that was typed: exactly, or the only one with this beginning."""
        if not self.switches:
            if self.args.startswith("/") and self.args.strip(" /"):
                line = f"{self.key}{self.args}"
                raise CommandError(
                    Phrase("Write the switch directly after the command: {line}", line=line)
                )
            if not self.args.startswith("/"):
                return ""
        both = "/".join(self.switches).lower()
        if both and both in self.verbs:
            # A verb may have two words, such as import/run.
            return both
        if len(self.switches) > 1:
            raise CommandError(
                Phrase(
                    "{command} takes one switch at a time, not /{switches}; nothing was changed.",
                    command=self.key,
                    switches="/".join(self.switches),
                )
            )
        return self._matching("".join(self.switches).lower())

    def _matching(self, typed: str) -> str:
        """Return the switch that `typed` is, or the only one that begins so."""
        known = [verb for verb in self.verbs if verb]
        found = [verb for verb in known if typed and verb.startswith(typed)]
        if typed in known or len(found) == 1:
            verb = typed if typed in known else found[0]
            if verb != typed and verb in self.whole_words:
                raise CommandError(
                    Phrase(
                        "There is no {command}; if you mean /{switch}, write the whole word."
                        " Nothing was changed.",
                        command=f"{self.key}/{typed}",
                        switch=verb,
                    )
                )
            return verb
        if found:
            could = ", ".join(f"/{verb}" for verb in found)
            raise CommandError(
                Phrase(
                    "/{typed} could be several switches: {switches}. Nothing was changed.",
                    typed=typed,
                    switches=could,
                )
            )
        raise self._no_switch(typed, known)

    def _no_switch(self, typed: str, known: Sequence[str]) -> CommandError:
        """Return the error for an unknown switch, with the line that was probably meant."""
        problem = Phrase(
            "There is no {command}. Nothing was changed.", command=f"{self.key}/{typed}"
        )
        elsewhere = verbs_elsewhere(typed, self._other_commands()) if typed else []
        meant = meant_verb(typed, self.verbs)
        if meant is None and not any(one.endswith(f"/{typed}") for one in elsewhere):
            meant = nearest_verb(typed, known)
        if meant is not None or not known:
            what = f"{self.key}/{meant}" if meant else self.key
        elif len(elsewhere) == 1:
            what = elsewhere[0]
        else:
            if elsewhere:
                hint = Phrase("Say what you mean: {commands}.", commands=", ".join(elsewhere))
            elif len(known) > _MOST_SWITCHES:
                hint = Phrase("'help {command}' lists the switches.", command=self.key)
            else:
                has = ", ".join(f"/{verb}" for verb in known)
                hint = Phrase("It has {switches}.", switches=has)
            return CommandError(Phrase("{problem} {hint}", problem=problem, hint=hint))
        return CommandError(problem, instead=f"{what} {self.args.strip()}".strip())

    def _other_commands(self) -> dict[str, Mapping[str, str]]:
        """Return the verbs of the other commands of this package that the caller may use."""
        there = getattr(getattr(self, "cmdset", None), "commands", ())
        return {
            command.key: command.verbs
            for command in sorted(there, key=lambda one: str(one.key))
            if isinstance(command, StrictCommand)
            and command.key != self.key
            and command.access(self.caller, "cmd")
        }

    def _asked(self, questions: Generator[Any, Any, None]) -> Generator[Any, Any, None]:
        try:
            yield from questions
        except EvenniaAIError as error:
            self.say_error(error)
        self._note_edit()

    def _note_edit(self) -> None:
        """Say how many kept cases get another prompt, if this command has edited something."""
        before, self._edits_before = self._edits_before, edits_made()
        note_edit(before, self.say)


class PlayersCommand(StrictCommand):
    """A command for every player. The player reads its texts and its help in their language."""

    locks = "cmd:all()"
    help_category = "General"
    auto_help = True

    @property
    def language(self) -> str:  # type: ignore[override]
        """Return the code of the language that the player reads."""
        return read_by(self.caller)

    def get_help(self, caller: Any, cmdset: Any) -> str:
        """Return the help text in the language of the caller. A hook of Evennia."""
        text = translate(cleandoc(str(self.__doc__)), read_by(caller))
        return text.replace("{", "{{")

    @property
    def player(self) -> Any:
        """Return the account of the player.

        Raises:
            CommandError: A script typed this for a character that nobody plays.
        """
        account = self.caller.account
        if account is None:
            raise CommandError(Phrase("Only the player of a character can decide this."))
        return account


def unexpected(failure: Failure) -> str:
    """Describe an unexpected error in a few words, and write its traceback to the server's log."""
    logger.log_err(f"evennia_ai: a command failed\n{failure.getTraceback()}")
    why = clip_text(on_one_line(failure.value), _MOST_WHY)
    return f"{type(failure.value).__name__}{f': {why}' if why else ''}"


def _told(error: EvenniaAIError) -> str:
    """Return an error's text. Fields of components are named as builders type them."""
    if isinstance(error, ComponentValueError | DuplicateComponentError):
        return error.in_words(FIELD_WORDS.get(error.field, error.field))
    return str(error)


def _sentence(text: str) -> str:
    """Return an error's text as a sentence. A first word that may be a name keeps its case."""
    begin = text[:1].upper() + text[1:] if _WORD.match(text) else text
    return begin if begin.endswith((".", "!", "?", ":")) else f"{begin}."
