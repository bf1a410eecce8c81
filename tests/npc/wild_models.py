"""The model and the tools of random games (`wild_games`)."""

import json
from dataclasses import dataclass
from typing import Any, Final

from pydantic import Field
from twisted.internet.defer import Deferred, succeed

from evennia_ai.engine.errors import ModelRefused, ModelRubbish, ModelTimeout, ModelUnavailable
from evennia_ai.engine.history.records import RecordKind
from evennia_ai.engine.prompt.messages import ToolCall
from evennia_ai.npc.tools.tool import Tool, ToolArguments, Use
from evennia_ai.services.llm.chat import ChatReply
from evennia_ai.store.history import record_rows
from tests.npc.upkeep.compacting_games import GOOD, is_for_summary

TOOLS: Final = (
    *("end_conversation", "errand", "errand_result", "give", "look", "move", "note", "pose"),
    *("say", "whisper"),
)


class Errand(Tool):
    """A tool whose errand ends when the test ends it."""

    name = "errand"
    description = "Send the boy."
    later = True
    sent: list[Deferred] = []

    def run(self, use: Use, arguments: Any) -> Any:
        self.sent.append(Deferred())
        return self.sent[-1]


class Note(Tool):
    """A tool that checks that its call is committed, and remembers that it ran."""

    name = "note"
    description = "Take a note."
    ran: list[str] = []

    class Arguments(ToolArguments):
        text: str = Field(description="what to note")

    def run(self, use: Use, arguments: Arguments) -> str:
        last = record_rows.records_of(use.conversation, limit_records=20)
        calls = [record for record in last if record.kind is RecordKind.TOOL_CALL]
        assert arguments.text in str(calls[-1].meta["tool_calls"]), "it ran before it was committed"
        self.ran.append(arguments.text)
        return "Noted."


@dataclass
class Request:
    """A request to the model, with the reply that it will get."""

    npc_ref: str
    request: Any
    answer: Deferred[ChatReply]
    listener: Any
    reply: Any
    is_open: bool = True


class Model:
    """A model that follows its `habits` in turn: answers, calls, errors, streams or silence."""

    name, offline = "wild", False

    def __init__(self, game: Any, habits: list[str]) -> None:
        self._game = game
        self._habits = habits
        self._words = 0
        self.asked: list[Request] = []

    def complete(self, request: Any, *, listener: Any = None) -> Deferred[ChatReply]:
        if not request.cache_key:
            return self._beside(request)
        habit = self._habits[len(self.asked) % len(self._habits)]
        one = Request(request.cache_key.removeprefix("npc-"), request, None, listener, None)
        one.answer = Deferred(lambda _: self._cancelled(one))
        self._game.check_request(one)
        self.asked.append(one)
        one.reply = self._made(habit)
        if habit.startswith("stream"):
            self._game.clock.callLater(0.5, self._writes, one)
        elif habit != "never":
            self._game.clock.callLater(2.0 if "slow" in habit else 0.1, self.ends, one)
        return one.answer

    def _beside(self, request: Any) -> Deferred[ChatReply]:
        """Return a summary, or a decider's answer after a moment."""
        if is_for_summary(request):
            return succeed(ChatReply(text=GOOD, model=self.name))
        self._words += 1
        told = '{"answer": false}' if self._words % 3 == 0 else '{"answer": true}'
        answer: Deferred[ChatReply] = Deferred(lambda _: call.cancel())
        reply = ChatReply(text=told, model=self.name)
        call = self._game.clock.callLater(0.2, answer.callback, reply)
        return answer

    def ends(self, one: Request) -> None:
        """Give the reply, unless nobody waits for it any longer."""
        if not one.is_open:
            return
        one.is_open = False
        if isinstance(one.reply, Exception):
            one.answer.errback(one.reply)
        else:
            one.answer.callback(one.reply)

    def _writes(self, one: Request) -> None:
        if one.listener is not None:  # stream even when nobody waits any longer
            text = one.reply.text if isinstance(one.reply, ChatReply) else self._sentences(2)
            one.listener(text[: len(text) * 3 // 4])
        self._game.clock.callLater(0.5, self.ends, one)

    def _cancelled(self, one: Request) -> None:
        one.is_open = False

    def close(self) -> None:
        for one in self.asked:
            if one.is_open:
                one.answer.cancel()

    # What the model says.

    def _made(self, habit: str) -> Any:
        errors = {
            "timeout": ModelTimeout(self.name, 5),
            "unavailable": ModelUnavailable(self.name, "is away"),
            "refused": ModelRefused(self.name, 400, "no"),
            "rubbish": ModelRubbish(self.name, "is rubbish"),
            "bug": ValueError("a bug"),
        }
        what = habit.removeprefix("stream ").removeprefix("slow ")
        if what in errors:
            return errors[what]
        if what in ("silence", "empty"):
            return ChatReply(text="-" if what == "silence" else "", model=self.name)
        text, _, names = what.partition(":")
        return ChatReply(
            text=self._sentences(3) if text == "say" else self._sentences(1) if text else "",
            model=self.name,
            tool_calls=tuple(map(self._call, names.split("+"))) if names else (),
        )

    def _sentences(self, count: int) -> str:
        self._words += 1
        names = "abc"[:count]
        return " ".join(f"The word is w{self._words}{name} in all." for name in names)

    def _call(self, name: str) -> ToolCall:
        text = self._sentences(1)
        arguments: dict[str, dict[str, Any]] = {
            "say": {"text": text},
            "note": {"text": text},
            "pose": {"action": text.replace("The word", "nods; the word")},
            "whisper": {"to": "Anna", "text": text},
            "move": {"exit": "path"},
            "give": {"item": "coin", "to": "Anna"},
            "errand_result": {"number": 1},
            "fly": {"where": 5},
        }
        return ToolCall(id="call_0", name=name, arguments=json.dumps(arguments.get(name, {})))
