"""The switches of `ai` that operate the game's NPCs: pause, stop, limits, list and log."""

import time
from collections.abc import Iterator
from typing import Any, Final

from django.urls import NoReverseMatch, reverse

from evennia_ai.commands.ai.settings import change_in_words
from evennia_ai.commands.ai.status import limit_in_words, limit_lines, overview_lines
from evennia_ai.commands.base import CommandError, StrictCommand, day_and_time
from evennia_ai.commands.naming import counted_number, npc_and_number, npc_named
from evennia_ai.commands.screens import Row, Span, head, is_web_client
from evennia_ai.engine.text.columns import escape_controls, first_line, wrap_hanging
from evennia_ai.npc.mind import emergency
from evennia_ai.npc.mind.emergency import Stopped
from evennia_ai.npc.mind.news import has_news, switch_news
from evennia_ai.npc.mind.status import LoggedTurn, npc_log
from evennia_ai.npc.model_calls.limits import is_stopped
from evennia_ai.npc.senses.presence import NPC
from evennia_ai.services.llm.money import describe_cost
from evennia_ai.services.llm.odd_replies import ODD
from evennia_ai.store.model_calls import ANSWERED, OFFLINE, UNSENT, NewCall

PAGE_TURNS: Final = 10
PANE: Final = "evennia_ai_mind"
"""The name under which the web client's plugin `mind_pane.js` receives an address."""
_WHY_UNSENT: Final = {
    OFFLINE: "answered offline, no model was asked",
    f"{UNSENT}unavailable": "not asked: it rests after failures, is too busy or is not set up",
    f"{UNSENT}timeout": "not asked: it was busy too long",
}


INDEX: Final = (
    ("make a character", "card/create Mira = Mira sells herbs."),
    ("let it live here", "card/spawn Mira"),
    ("see its card, change it", "card Mira, card/edit"),
    ("talk to it", "say Mira, hello    or: talk mira hello"),
    ("give it lore", "lore/create, lore/assign"),
    ("try which lore is active", "lore/test does the ferry run?"),
    ("tell it something for now", "note mira = She has a cold."),
    ("change what all NPCs are told", "component, component/edit house_rules"),
    ("bring a SillyTavern preset", "preset/import, preset/assign quay = game"),
    ("see what it would be told", "component/preview mira"),
    ("see what it was told, the news", "ai/context mira, ai/context mira = changes"),
    ("ask why something is in it", "ai/why mira = mood"),
    ("read what was said", "ai/history mira"),
    ("take back what went wrong", "ai/undo, ai/retry, ai/correct, ai/reset"),
    ("try what would have been", "ai/branch mira/2"),
    ("see what it remembers", "ai/memory mira"),
    ("let it look things up", "kb, kb/assign"),
    ("let it do things", "ai/tools mira = say, look"),
    ("choose its model, try it", "ai/profile mira = default, ai/check"),
    ("see who is busy, what it cost", "ai, ai mira, ai/limits"),
    ("stop it, stop everything", "ai/off mira, ai/pause mira, ai/stopall"),
)
"""What a builder wants to do, and what to type for it."""


def index_rows() -> Iterator[str | Row]:
    """Yield the table of tasks and commands for builders, on one screen."""
    yield head("What you want to do            what you type (help <command> explains it)")
    for wish, command in INDEX:
        yield (Span(f"{wish:31}"), Span(command, "component"))


def log_lines(npc: NPC, number: int) -> list[str]:
    """Return one page of what the NPC did. Page 1 is the newest."""
    log = npc_log(npc.ai.ref, number, size=PAGE_TURNS)
    told = [(one.turn.created_at, list(_turn(one))) for one in log.turns]
    for call in log.other_calls:
        when = f"    {day_and_time(call.started_at)}"
        told.append((call.started_at, [when, f"    {_call(call)}"]))
    for one in log.refused:
        what = f"{escape_controls(one.event) or 'something'}{_by(one.speaker)}"
        when = f"    {day_and_time(one.at)}  refused: {what}, record #{one.record}"
        told.append((one.at, [when, f"    {limit_in_words(one.limit)}"]))
    if log.more_refused:
        told.append((log.refused[-1].at, ["    and more was refused before that"]))
    for change in log.changes:
        when = day_and_time(change.at)
        told.append((change.at, [f"    {when}  set {change_in_words(change)}"]))
    if not told and number == 1:
        raise CommandError(
            f"{npc.key} did nothing yet: it answered nobody and no setting was changed."
        )
    if not told:
        raise CommandError(
            f"There is no page {number}: {npc.key} had fewer turns. ai/log {npc.key} is page 1"
        )
    told.sort(key=lambda one: one[0], reverse=True)
    lines = [line for _, some in told for line in some]
    for model, outcome, times in log.odd_replies:
        kinds = outcome.removeprefix(ODD).replace("+", ", ")
        lines.insert(
            0, f"    odd replies of {escape_controls(model or 'the model')}: {times} ({kinds})"
        )
    head = f"What {npc.key} did, page {number}, the newest first:"
    more = [f"Older: ai/log {npc.key}/{number + 1}"] if log.has_older else []
    return [shown for line in (head, *lines, *more) for shown in wrap_hanging(line)]


def _by(speaker: str) -> str:
    return f" by {escape_controls(speaker)}" if speaker else ""


def _turn(logged: LoggedTurn) -> Iterator[str]:
    turn = logged.turn
    what = f"{escape_controls(turn.event) or 'its own accord'}{_by(turn.speaker)}"
    yield f"#{turn.number}  {day_and_time(turn.created_at)}  {what}"
    seconds = (turn.ended_at or time.time()) - turn.created_at
    outcome = f": {first_line(turn.outcome)}" if turn.outcome else ""
    state = "under way for" if turn.ended_at is None else f"{turn.state} in"
    cost = describe_cost(logged.nanodollars) if len(logged.calls) > 1 else ""
    yield f"    {state} {max(0.0, seconds):.1f} s{f', {cost}' if cost else ''}{outcome}"
    yield from (f"    {_call(call)}" for call in logged.calls)
    if not logged.calls:
        yield f"    {escape_controls(turn.model)}: prompt of {turn.tokens} tokens"


def _call(call: NewCall) -> str:
    """Return one call of a model as a line."""
    role = "" if call.role == "speaker" else f"{escape_controls(call.role)}, "
    if call.outcome.startswith(UNSENT):
        why = _WHY_UNSENT.get(call.outcome, escape_controls(call.outcome))
        return f"{role}{escape_controls(_model(call))}: {why}; not counted"
    about = "about " if call.is_estimated else ""
    whole = f" of about {call.whole_tokens} (CUT)" if call.whole_tokens else ""
    cached = f" ({call.cached_tokens} cached)" if call.cached_tokens else ""
    cost = describe_cost(call.nanodollars)
    first = f", begun after {call.first_piece_seconds:.1f}" if call.first_piece_seconds else ""
    outcome = "" if call.outcome == ANSWERED else f", {escape_controls(call.outcome)}"
    return (
        f"{role}{escape_controls(_model(call))}: {about}{call.input_tokens}{whole} in{cached},"
        f" {call.output_tokens} out, {f'{cost}, ' if cost else ''}{call.seconds:.1f} s"
        f"{first}{outcome}"
    )


def _model(call: NewCall) -> str:
    """Return the name of the model, or of the profile if the profile names no model."""
    return call.model or call.profile or "no model"


class OperatingSwitches(StrictCommand):
    """The switches of `ai` that operate NPCs."""

    def start(self) -> None:
        if self.args:
            raise CommandError("Usage: ai/start")
        self.show(index_rows())

    def tell(self) -> None:
        wanted = self.args.strip().lower()
        if wanted not in ("", "on", "off"):
            raise CommandError("Usage: ai/tell [on | off]. Nothing was changed.")
        if wanted:
            switch_news(self.caller, wanted == "on")
        if has_news(self.caller):
            self.say(
                "You are told when a call of a model fails, a limit is reached or a cache breaks;"
                " ai/tell off ends it."
            )
        else:
            self.say("You get no messages about problems with models; ai/tell on switches them on.")

    def watch(self) -> None:
        name = self.args.strip()
        of_npc = f"?npc={npc_named(self.caller, name).ai.ref}" if name else ""
        try:
            address = f"{reverse('evennia_ai:last')}{of_npc}"
        except NoReverseMatch as error:
            raise CommandError(
                "The game's site has no pages for builders; docs/build/web.md says how to add them."
            ) from error
        if not is_web_client(self.session):
            self.say(f"Only the web client has panes; open {address} on the game's site instead.")
            return
        self.session.msg(**{PANE: ((address,), {})})
        self.say(f"The pane shows what {name or 'the NPC who answers you'} is told.")

    def list_all(self) -> None:
        part, _, page = (self.args or "").strip().partition("/")
        number = counted_number(page.strip(), what="page") if page else 1
        self.show(overview_lines(part.strip(), number))

    def log(self) -> None:
        usage = "ai/log <npc>[/<page>]"
        npc, page = npc_and_number(self.caller, self.wanted(usage), what="page")
        self.show(log_lines(npc, page or 1))

    def limits(self) -> None:
        npc = npc_named(self.caller, self.lhs) if self.lhs else None
        self.show(limit_lines(npc))

    def pause(self) -> None:
        npc = npc_named(self.caller, self.wanted("ai/pause <npc> [= <reason>]"))
        done = emergency.pause(npc, by=self.actor, reason=self.rhs or "")
        self.say(
            f"{npc.key} is paused until ai/resume {npc.key}; it still hears and remembers."
            f"{_in_words(done)}"
        )

    def resume(self) -> None:
        npc = npc_named(self.caller, self.wanted("ai/resume <npc>"))
        if not emergency.resume(npc, by=self.actor):
            raise CommandError(f"{npc.key} is not paused.")
        self.say(f"The pause of {npc.key} is over.{_still_stopped()}")

    def stop_all(self) -> None:
        reason = self._reason("ai/stopall [= <reason>]")
        done = emergency.stop_all(by=self.actor, reason=reason)
        self.say(
            "ALL NPCs of the game are stopped until ai/startall: no model is asked for anything."
            f" They still hear and remember.{_in_words(done)}"
        )

    def start_all(self) -> None:
        if (self.args or "").strip():
            raise CommandError("Usage: ai/startall, and nothing else. Nothing was changed.")
        if not emergency.start_all(by=self.actor):
            raise CommandError("The game's NPCs are not stopped.")
        self.say("The game's NPCs answer again. Paused NPCs stay paused: see ai/list.")

    def _reason(self, usage: str) -> str:
        """Return the reason typed after "=". CommandError if something was typed before "="."""
        if self.lhs:
            raise CommandError(f"Usage: {usage}. Nothing was stopped; ai/pause stops one NPC.")
        return self.rhs or ""


def _in_words(done: Stopped) -> str:
    """Return sentences that count what a stop ended, or "" if it ended nothing."""
    counts = {"Answers dropped": done.dropped, "Calls of models given up": done.given_up}
    return "".join(f" {what}: {count}." for what, count in counts.items() if count)


def _still_stopped() -> Any:
    return " The whole game is stopped, though: ai/startall." if is_stopped() else ""
