"""The tools of one NPC in one turn, with checks of what a model calls.

A turn puts `specs` into its request. For each call of the model it uses `find`, commits the call as
`recorded`, and then uses `run`. Nothing that a model writes makes these raise an error.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from evennia.utils import logger
from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from evennia_ai.engine.prompt.messages import ToolCall, ToolSpec
from evennia_ai.npc.senses.events import Event
from evennia_ai.npc.senses.presence import NPC
from evennia_ai.npc.senses.text import one_line
from evennia_ai.npc.senses.utterance import acting_npc, because_of
from evennia_ai.npc.tools.targets import guesses_of_tool
from evennia_ai.npc.tools.tool import (
    Refused,
    Tool,
    ToolArguments,
    Use,
    WrongArgumentsError,
    arguments_of,
    is_object,
    result_text,
)

MOST_CALLS: Final = 8
"""The most calls of a turn that are run. Further calls are refused."""

FAILED: Final = "That did not work."
GIVEN_UP: Final = "That was given up."

UNKNOWN: Final = "unknown"
"""The recorded name of a call if no request may contain the name that the model wrote."""

_MAX_UNKNOWN: Final = 40
_SENDABLE_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """A tool and its description in requests."""

    tool: Tool
    spec: ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A call that can be run. `recorded` is the call in the form that the conversation stores."""

    tool: Tool
    arguments: ToolArguments
    recorded: ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """A call that cannot be run. The model reads `text`, which says why."""

    text: str
    recorded: ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """The result of a call. `ok` is True if the action was done.

    `text` is what the model reads. `spoke` is True if the NPC has answered by the action. If the
    action only began, `later` is a Deferred of its result, which never fails. If `waits`, the turn
    waits for `later` and ignores `text`.
    """

    text: str
    ok: bool
    ends_turn: bool = False
    spoke: bool = False
    later: "Deferred[Ran] | None" = None
    waits: bool = False


class Toolbox:
    """The tools of an NPC in one turn, which count what the NPC did with them."""

    def __init__(self, tools: Sequence[Registered], *, npc: NPC, event: Event) -> None:
        self._tools: Final = {one.tool.name: one for one in tools}
        self._npc: Final = npc
        self._event: Final = event
        self._calls = 0
        self._dangerous = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the tools, sorted."""
        return tuple(sorted(self._tools))

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the tools for requests, sorted by name, so that all turns send the same bytes."""
        return tuple(self._tools[name].spec for name in self.names)

    def find(self, call: ToolCall) -> Found | Wrong:
        """Return the called tool with its parsed arguments, or what is wrong with the call."""
        known = self._tools.get(call.name)
        if known is None:
            return _wrong_call(call, self._unknown_tool_text(call.name))
        try:
            arguments = arguments_of(known.tool, call.arguments)
            return self._found(call, known.tool, arguments)
        except WrongArgumentsError as error:
            return _wrong_call(call, str(error))
        except Exception:  # the code of a game checks the arguments, too
            _log(known.tool, "its arguments could not be checked", Failure())
            return _wrong_call(call, FAILED)

    def run(self, found: Found, use: Use) -> Ran:
        """Run a call, if the game and the limits of the turn allow it."""
        refused = self._limit_refusal(found.tool)
        if refused:
            return Ran(text=refused, ok=False)
        with guesses_of_tool() as guesses:
            ran = self._run_safely(found, use)
        return _with_guesses(ran, guesses)

    def _run_safely(self, found: Found, use: Use) -> Ran:
        tool = found.tool
        try:
            with acting_npc(use.npc, hops=use.hops), because_of(use.event):
                return self._run_allowed(found, use)
        except Refused as error:
            return Ran(text=result_text(error), ok=False)
        except Exception:  # locks, hooks and tools of a game may raise anything
            self._remember(tool)  # part of the action may have been done
            _log(tool, "failed", Failure())
            return Ran(text=FAILED, ok=False)

    def _found(self, call: ToolCall, tool: Tool, arguments: ToolArguments) -> Found:
        kept = tool.recorded(arguments, npc=self._npc, event=self._event)
        text = call.arguments.strip() or "{}"
        if kept is not arguments:
            text = kept.model_dump_json(exclude_unset=True)
        return Found(tool=tool, arguments=arguments, recorded=replace(call, arguments=text))

    def _run_allowed(self, found: Found, use: Use) -> Ran:
        tool = found.tool
        refused = tool.refusal(use, found.arguments)
        if refused:
            return Ran(text=result_text(refused), ok=False)
        result = tool.run(use, found.arguments)
        self._remember(tool)
        if isinstance(result, Deferred):
            later: Deferred[Ran] = result.addCallbacks(
                lambda told: _success(tool, told), lambda failure: _late_failure(tool, failure)
            )
            begun = _success(tool, f"You begin: {tool.name}. It takes a while.")
            return replace(begun, later=later, waits=tool.waits)
        return _success(tool, result)

    def _remember(self, tool: Tool) -> None:
        self._dangerous = tool.name if tool.dangerous else self._dangerous

    def _limit_refusal(self, tool: Tool) -> str:
        """Return why the limits of the turn forbid the call, "" if they allow it."""
        self._calls += 1
        if self._calls > MOST_CALLS:
            return f"Not done: you did {MOST_CALLS} things already; wait until somebody speaks."
        if tool.dangerous and self._dangerous:
            return (
                f"Not done: you did {self._dangerous} just now; only one such thing at a time,"
                " wait until somebody speaks."
            )
        return ""

    def _unknown_tool_text(self, name: str) -> str:
        there_are = f"there are: {', '.join(self.names)}" if self._tools else "you have none"
        return f"There is no tool '{one_line(name)[:_MAX_UNKNOWN]}'; {there_are}."


def _wrong_call(call: ToolCall, text: str) -> Wrong:
    """Return the problem, with a call in a form that any provider accepts in later requests."""
    arguments = call.arguments.strip() if is_object(call.arguments) else "{}"
    name = call.name if _SENDABLE_NAME.fullmatch(call.name) else UNKNOWN
    return Wrong(text=text, recorded=replace(call, name=name, arguments=arguments or "{}"))


def _success(tool: Tool, told: object) -> Ran:
    return Ran(text=result_text(told), ok=True, ends_turn=tool.ends_turn, spoke=tool.speaks)


def _with_guesses(ran: Ran, guesses: Sequence[str]) -> Ran:
    """Add the guesses that the tool made about names, before the result."""
    if not guesses:
        return ran
    told = result_text("\n".join(guesses))
    later = ran.later and ran.later.addCallback(lambda end: _with_guesses(end, guesses))
    return replace(ran, text=f"{told}\n{ran.text}", later=later)


def _late_failure(tool: Tool, failure: Failure) -> Ran:
    """Return the result of an action that began and then failed."""
    if failure.check(CancelledError):
        return Ran(text=GIVEN_UP, ok=False)
    if failure.check(Refused):
        return Ran(text=result_text(failure.value), ok=False)
    _log(tool, "failed", failure)
    return Ran(text=FAILED, ok=False)


def _log(tool: Tool, problem: str, failure: Failure) -> None:
    logger.log_err(f"evennia_ai: tool {tool.name} {problem}\n{failure.getTraceback()}")
