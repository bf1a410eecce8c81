"""Find tool calls that a model wrote as text, and remove them from its speech.

A server turns the output of its model into calls. If it does not know the model's format, the calls
arrive as text. `evennia_ai.engine.text.chat_markup` lists the marks around them. Between the marks
is a call in a format of `call_forms`, a name followed by JSON, or tags with parameters. The same
formats may be in a code fence, or without any marks.

A call that cannot be read must not be spoken either: it is removed up to its end mark, or to the
end of the text. The text is read once from start to end, so the cost of a hostile text is linear in
its length.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from evennia_ai.engine.text.chat_markup import MARK_START, mark_pattern
from evennia_ai.services.llm.call_forms import (
    ARGUMENTS,
    NAME,
    NAMES,
    WRAPPERS,
    Call,
    Offered,
    balanced_end,
    calls_in,
    colon_at,
    is_python,
    json_at,
    known_name,
    python_at,
    value_of,
)

MOST_BEGINNINGS: Final = 64
"""How many possible calls of one text are read. The text after them is dropped."""

_KEYS: Final = "|".join(dict.fromkeys((*NAMES, *ARGUMENTS, *WRAPPERS, "id", "type")))
_PYTHON: Final = rf"{NAME}\(\s{{0,8}}(?:\w{{1,40}}\s{{0,8}}=|[)\"'])"
_FENCE: Final = r"^[ \t]{0,8}```[ \t]{0,8}"

_BEGIN: Final = re.compile(
    rf"(?P<fence>{_FENCE}(?:tool_code|tool_calls?|tool_use|function_calls?)\b)"
    rf"|{MARK_START}(?P<mark>{mark_pattern('call_begins')})"
    rf"|(?P<json>(?:{_FENCE}\w{{0,12}}\s{{0,8}})?(?:\[\s{{0,8}})?"
    rf"\{{\s{{0,8}}[\"'](?:{_KEYS})[\"']\s{{0,8}}:)"
    rf"|(?P<list>\[\s{{0,8}}{_PYTHON})"
    rf"|(?P<line>(?:{_FENCE}\w{{0,12}}\n)?^[ \t]{{0,8}}{_PYTHON})"
    rf"|(?P<colon>\bcall:{NAME}\{{)"
    # Calls of Gemini, and of Kimi if the server removed the marks around them.
    rf"|(?P<gemini>(?:\bprint\(\s{{0,8}})?\bdefault_api\.{NAME}\()"
    rf"|(?P<kimi>\bfunctions\.{NAME}:\d{{1,4}}(?=\s{{0,8}}[{{<]))",
    re.IGNORECASE | re.MULTILINE,
)
_BEGIN_MARK: Final = re.compile(f"{MARK_START}(?:{mark_pattern('call_begins')})", re.IGNORECASE)
_END_MARK: Final = re.compile(f"{MARK_START}(?:{mark_pattern('call_ends')})", re.IGNORECASE)
_OPENED_FENCE: Final = re.compile(rf"{_FENCE}\w{{0,12}}\s{{0,8}}")
_END_FENCE: Final = re.compile(rf"{_FENCE}$", re.MULTILINE)
_BETWEEN: Final = re.compile(
    rf"\[CALL_ID\][\w-]{{0,40}}|{MARK_START}(?:{mark_pattern('tokens')})|[\s,;\[\]]+|```\w{{0,12}}",
    re.IGNORECASE,
)
_NAME_IN_MARK: Final = re.compile(
    rf"(?:function|invoke)\s?(?:=|\s.{{0,20}}?name\s?=)\s?[\"']?({NAME})", re.IGNORECASE
)
_KEY_IN_MARK: Final = re.compile(
    rf"parameter\s?(?:=|\s.{{0,20}}?name\s?=)\s?[\"']?({NAME})", re.IGNORECASE
)
_TEXT_IN_MARK: Final = re.compile(r"string\s?=\s?[\"']?true", re.IGNORECASE)
_HEADER: Final = re.compile(rf"({NAME})(?::\d{{1,4}})?")
# Labels that some models write directly before a call, or the start of a code fence around a call.
_LABEL: Final = re.compile(
    r"(?:(?:\bfunctools|^[ \t]{0,8}(?:action|tool|(?:tool|function)[ _]calls?):)\s{0,8})?"
    r"(?:```\w{0,12}\s{0,8})?\Z",
    re.IGNORECASE | re.MULTILINE,
)
_MOST_LABEL_CHARACTERS: Final = 80
_CLOSED_FENCE: Final = re.compile(r"[\s\]]{0,8}```[ \t]{0,8}$", re.MULTILINE)
# A message of gpt-oss to a tool, in a channel that is not spoken.
_TO_TOOL: Final = re.compile(
    rf"\bto=({NAME})[^{{}}\n]{{0,120}}<\|message\|>\s{{0,8}}(?=\{{)", re.IGNORECASE
)
_BLANKS: Final = re.compile(r"\s*")
_LIST_END: Final = re.compile(r"\s*\]")
_OPENING: Final = re.compile(r"[\[{(]")
# At the end of a text that was cut: the start of a mark, or of a call without marks.
_CUT: Final = re.compile(
    r"(?:<(?:[/|｜][\w▁:｜|]{0,40}|[a-zA-Z]\w{0,20}(?:[:=\s][^<>\n]{0,80})?)?"
    rf"|\[/?\w{{0,40}}|(?:\[\s{{0,8}}|^[ \t]{{0,8}}){NAME}\([^()\n]{{0,40}}"
    rf"|(?:{_FENCE}\w{{0,12}}\s{{0,8}})?(?:\[\s{{0,8}})?"
    r"\{\s{0,8}(?:[\"']\w{0,20}[\"']?\s{0,8})?|\bcall:\w{1,64}"
    r"|\bprint\([\w.]{0,80}(?:\([^()\n]{0,80})?|\bdefault_api\.[\w.]{0,80}(?:\([^()\n]{0,80})?"
    r"|\bfunctions\.[\w.-]{0,80}(?::\d{0,4})?"
    rf"|^[ \t]{{0,8}}`{{1,2}}|{_FENCE}\w{{1,12}}\s{{0,8}}"
    rf"|{_FENCE}(?:python|py|json|xml|tool_\w{{1,12}})\b[^`]*)\Z",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextCall:
    """A call that a model wrote as text: an offered tool, and its arguments as unchecked JSON."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TextCalls:
    """The calls found in a text, and `rest`, the text without them.

    `dropped` contains names of tools that were not offered, and the starts of calls that could not
    be read.
    """

    rest: str
    calls: tuple[TextCall, ...] = ()
    dropped: tuple[str, ...] = ()


def read_calls(
    text: str, offered: Offered, *, is_cut: bool = False, bare_json: bool = True
) -> TextCalls:
    """Return the calls in a text from which hidden reasoning was removed.

    Args:
        is_cut: True if the length limit cut the text. A last call without an end mark is then
            incomplete.
        bare_json: False if JSON without marks is not a call and stays in the text.
    """
    walk = _Walk(text, offered, is_cut)
    at = kept_from = 0
    parts: list[str] = []
    while begun := _BEGIN.search(text, at):
        if begun["json"] is not None and not bare_json:
            at = begun.end()
            continue
        at, is_call = walk.read(begun)
        if is_call:
            label_from = max(kept_from, begun.start() - _MOST_LABEL_CHARACTERS)
            label = _LABEL.search(text, label_from, begun.start())
            parts.append(text[kept_from : label.start() if label else begun.start()])
            is_fenced = label is not None and "```" in label[0]
            closed = _CLOSED_FENCE.match(text, at) if is_fenced else None
            kept_from = at = closed.end() if closed else at
        if len(walk.calls) + len(walk.dropped) >= MOST_BEGINNINGS:
            kept_from = len(text)
            break
    parts.append(text[kept_from:])
    # A space joins the parts, so that the texts around a call cannot form a new call.
    rest = _CUT.sub("", " ".join(parts))
    if rest.count("```") % 2:  # The last fence was opened and not closed.
        rest = rest.rstrip().removesuffix("```")
    return TextCalls(rest=rest, calls=tuple(walk.calls), dropped=tuple(walk.dropped))


def channel_calls(text: str, offered: Offered) -> TextCalls:
    """Return the calls that a raw reply has in its channels.

    Channels are a format of OpenAI's gpt-oss models (harmony); those with calls are never spoken.
    """
    walk = _Walk(text, offered, is_cut=True)
    at = 0
    while (begun := _TO_TOOL.search(text, at)) and len(walk.calls) < MOST_BEGINNINGS:
        found = json_at(text, begun.end())
        at = found[1] if found else begun.end()
        if found:
            walk.keep((begun[1], found[0]), at)
    return TextCalls(rest="", calls=tuple(walk.calls), dropped=tuple(walk.dropped))


def without_calls(text: str) -> str:
    """Return the text without tool calls, whatever tools the game has."""
    return read_calls(text, {}).rest


@dataclass(slots=True)
class _Walk:
    """A reader of possible calls in a text.

    `name` and `arguments` belong to the call that is not complete yet.
    """

    text: str
    offered: Offered
    is_cut: bool
    calls: list[TextCall] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    name: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    is_fenced: bool = False
    read_to: int = 0
    """Where the last complete call of the current match ends, or 0."""

    def read(self, begun: re.Match[str]) -> tuple[int, bool]:
        """Read the possible call that begins at a match.

        Return where to continue, and True if the text up to there belongs to a call.
        """
        self.name, self.arguments, self.read_to = "", {}, 0
        is_marked = begun["mark"] is not None or begun["fence"] is not None
        if not is_marked and (past := self._is_something_else(begun)):
            return past, False
        opened = _OPENED_FENCE.match(begun[0])
        at = begun.end() if begun["fence"] else begun.start() + (opened.end() if opened else 0)
        self.is_fenced = not begun["mark"] and "```" in begun[0]
        # Each step reads one format. It returns where that ends, or 0 if the text has another
        # format.
        steps: tuple[Callable[[int], int], ...]
        steps = (self._mark, self._between, self._json, self._python, self._header)
        while at < len(self.text) and not self._end(at):
            after = next(filter(None, (step(at) for step in steps)), 0)
            if not after:
                break
            at = after
        is_ended = not self.is_cut if at == len(self.text) else self._end(at) is not None
        if self.name and is_marked and is_ended:
            self._whole_call(at)
        is_broken = at < len(self.text) and not is_ended and self._is_broken(at)
        if self.read_to and not (is_marked and (self.name or is_broken)):
            listed = None if is_ended else _LIST_END.match(self.text, self.read_to)
            behind = listed.end() if listed else self.read_to
            return self._behind_ends(at if is_ended else behind), True
        # A call that cannot be read is removed up to its end.
        self.dropped.append(self.name or begun[0].strip()[:80])
        if is_marked:
            end = (_END_FENCE if self.is_fenced else _END_MARK).search(self.text, at)
            return self._behind_ends(end.end() if end else len(self.text)), True
        opening = _OPENING.search(self.text, begun.start())
        end_of_it = balanced_end(self.text, opening.start()) if opening else 0
        return end_of_it or len(self.text), True

    def _is_something_else(self, begun: re.Match[str]) -> int:
        """Return the end of a text that only looks like a call, or 0 if it is a call."""
        if begun["json"] is not None:
            brace = self.text.index("{", begun.start())
            found = json_at(self.text, brace)
            return found[1] if found and not calls_in(found[0], self.offered) else 0
        if begun["line"] is None:
            return 0
        start = begun.end() - len(begun[0].rpartition("\n")[2].lstrip())
        name = _HEADER.match(self.text, start)
        has_names = "=" in begun[0]  # No prose has `give(item=`.
        if name is None or not (has_names or known_name(name[1], self.offered)):
            return begun.end()
        found_call = python_at(self.text, start, self.offered)
        rest = self.text[found_call[1] :].partition("\n")[0] if found_call else ""
        return begun.end() if rest.strip(" \t.;") and not has_names else 0

    def _is_broken(self, at: int) -> bool:
        """True if the unreadable text at `at` still belongs to the call."""
        return self.text[at] in "{<" or is_python(self.text, at)

    def _end(self, at: int) -> re.Match[str] | None:
        """Return the end mark at `at`, or None.

        A code fence ends only a call that began with one.
        """
        fence = _END_FENCE.match(self.text, at) if self.is_fenced else None
        return fence or _END_MARK.match(self.text, at)

    def _between(self, at: int) -> int:
        between = None if _BEGIN_MARK.match(self.text, at) else _BETWEEN.match(self.text, at)
        return between.end() if between else 0

    def _mark(self, at: int) -> int:
        """Read a mark and its content: the name of a call, or a parameter with its value."""
        mark = _BEGIN_MARK.match(self.text, at)
        if mark is None:
            return 0
        name, key = _NAME_IN_MARK.search(mark[0]), _KEY_IN_MARK.search(mark[0])
        if name:
            if self.name:
                self._whole_call(at)
            self.name = name[1]
            return mark.end()
        value_at = mark.end()
        if "arg_key" in mark[0]:
            end = _END_MARK.search(self.text, value_at)
            value = _BEGIN_MARK.search(self.text, end.end()) if end else None
            if end is None or value is None:
                return 0
            named, value_at = self.text[value_at : end.start()].strip(), value.end()
        elif key:
            named = key[1]
        else:
            return mark.end()
        end = _END_MARK.search(self.text, value_at)
        if end is None:
            return 0
        written = self.text[value_at : end.start()].strip("\r\n")
        is_text = _TEXT_IN_MARK.search(mark[0]) is not None
        self.arguments[named] = written if is_text else value_of(written)
        return end.end()

    def _json(self, at: int) -> int:
        """Read a JSON object: one call, several calls, or the arguments for the name before it."""
        found = json_at(self.text, at) if self.text[at] == "{" else None
        if found is None:
            return 0
        value, end = found
        calls = calls_in(value, self.offered)
        if self.name and (not calls or known_name(calls[0][0], self.offered) == ""):
            calls = [(self.name, value)]
        for call in calls:
            self.keep(call, end)
        return end if calls else 0

    def _python(self, at: int) -> int:
        found = colon_at(self.text, at) or python_at(self.text, at, self.offered)
        if found is None:
            return 0
        self.keep(*found)
        return found[1]

    def _header(self, at: int) -> int:
        """Read a word as the name of a call.

        If there are several words, the last one before the arguments counts.
        """
        header = None if self.read_to else _HEADER.match(self.text, at)
        if header is None:
            return 0
        self.name = header[1]
        return header.end()

    def _whole_call(self, at: int) -> None:
        self.keep((self.name, self.arguments), at)

    def keep(self, call: Call, end: int) -> None:
        """Store a complete call if its tool is offered, otherwise store its name as dropped."""
        self.name, self.arguments, self.read_to = "", {}, end
        name, arguments = known_name(call[0], self.offered), call[1]
        try:
            written = arguments if isinstance(arguments, str) else _json_text(arguments)
        except (TypeError, ValueError, RecursionError):
            name = ""
        if name:
            self.calls.append(TextCall(name=name, arguments=written))
        else:
            self.dropped.append(call[0][:80])

    def _behind_ends(self, at: int) -> int:
        """Skip the end marks at `at`, with white space between them, and return where they end."""
        while True:
            blanks = _BLANKS.match(self.text, at)
            end = self._end(blanks.end() if blanks else at)
            if end is None:
                return at
            at = end.end()


def _json_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
