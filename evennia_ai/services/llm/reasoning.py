"""Separate a model's hidden reasoning, in every known format, from the text meant for players.

Reasoning comes between pairs of marks, in code fences, in channels, or in preambles that end in
"Response:". Doubtful text is hidden, because players must not read an NPC's reasoning. The cost of
a hostile text is linear in its length.
"""

import re
from collections.abc import Callable
from typing import Final, Literal

from evennia_ai.engine.text.chat_markup import (
    MARK_START,
    ROLE_MARKS,
    THOUGHT_MARKS,
    THOUGHT_WORDS,
    mark_pattern,
    neutralize_marks,
)

LateEnd = Literal["hides_all_before", "hides_nothing"]
"""What a closing mark, or a channel's head, without an opening mark does to the text before it.

If a prompt ends in an opening mark, the model writes only the closing one, and everything before it
was reasoning. If a model always opens what it closes, such a mark is a mistake and hides nothing.
"""

_CHANNELS: Final = (
    r"<\|channel\|>\s{0,8}(?P<channel>\w{0,20})"
    r"(?:[^<\n]{0,80}(?:<\|constrain\|>[^<\n]{0,40})?<\|message\|>)?"
)
_FENCES: Final = rf"^[ \t]{{0,8}}```[ \t]{{0,8}}(?P<fence>{THOUGHT_WORDS}|analysis)\b"

_TAG: Final = re.compile(THOUGHT_MARKS, re.IGNORECASE)
_CHANNEL: Final = re.compile(_CHANNELS, re.IGNORECASE)
_ROLE: Final = re.compile(ROLE_MARKS, re.IGNORECASE)
_MARK: Final = re.compile(
    rf"{MARK_START}(?:{THOUGHT_MARKS}|{_CHANNELS}|{ROLE_MARKS})|{_FENCES}",
    re.IGNORECASE | re.MULTILINE,
)
_FENCE: Final = re.compile(r"^[ \t]{0,8}```", re.MULTILINE)
_OTHER_MARK: Final = re.compile(
    rf"{MARK_START}(?:{mark_pattern('tokens', 'call_begins', 'call_ends', 'answers', 'switches')}"
    rf"|<{THOUGHT_WORDS}\s?/>)",
    re.IGNORECASE,
)
# At the end of the text so far: what may be the start of a tag.
_UNFINISHED_TAG: Final = re.compile(r"(?:<[^<>\n]{0,160}|\[/?\w{0,12}|◁/?\w{0,6})\Z")
# What ends plain text: any mark, or the start of a possible mark other than "<".
_PLAIN_ENDS: Final = re.compile(
    rf"[<◁`{{\x1b]|\[/?{THOUGHT_WORDS}\]|(?=[\[\]/])(?:{mark_pattern('tokens', 'switches')})"
    r"|\(\s{0,8}(?:\w{1,40}\s{0,8}=|[)\"'])"  # A tool call in Python's notation
    r"|(?P<unfinished>"
    r"(?:\[[^\[\]\n]{0,64}|\]~?!?b?|/\w{0,8}|\(\s{0,8}\w{0,40}\s{0,8})\Z)",
    re.IGNORECASE,
)
_BLANKS: Final = re.compile(r"\s*")

_SPOKEN_CHANNELS: Final = frozenset({"final", "response"})

# The start and the end of a preamble. Text is a preamble only if it has both.
_LEAD: Final = r"\A[\s*_#>]*"
_PREAMBLES: Final = tuple(
    (re.compile(_LEAD + begins, re.IGNORECASE), re.compile(ends, re.IGNORECASE | re.MULTILINE))
    for begins, ends in (
        (r"(?:assistant)?analysis(?=\S)", r"assistantfinal"),
        (r"here(?: is|['’]s) my thought process:", r"here(?: is|['’]s) my response:"),
        (
            rf"(?:{THOUGHT_WORDS}|analysis)(?: process)?[*_ ]{{0,4}}:",
            r"^[ \t*_#>]{0,8}(?:(?:final|my) )?(?:answer|response|reply)[*_ ]{0,4}:[*_ ]{0,4}",
        ),
    )
)
_FIRST_WORDS: Final = (
    *("analysis", "assistantanalysis", "reason", "reflection", "think", "thought"),
    *("here is my thought", "here's my thought", "here’s my thought"),
)
# Each of these words, or a text that ends in the middle of one.
_MAY_BE_PREAMBLE: Final = re.compile(
    _LEAD
    + "(?:"
    + "|".join((*_FIRST_WORDS, *(rf"{w[:n]}\Z" for w in _FIRST_WORDS for n in range(len(w)))))
    + ")",
    re.IGNORECASE,
)


def without_reasoning(text: str, *, late_end: LateEnd = "hides_all_before") -> str:
    """Return the text without reasoning and without the control marks of chat formats.

    An opening mark without a closing one hides all later text. If the model uses channels, only the
    final one is kept. The reply ends where the model continues as the user or the system.
    """
    return without_marks(without_thoughts(text, late_end=late_end))


def without_thoughts(text: str, *, late_end: LateEnd = "hides_all_before") -> str:
    """Return the text without reasoning, up to where the model continues in another role."""
    kept = _Kept(text[_preamble_end(text) :], late_end)
    kept.walk()
    return "".join(kept.parts)


def without_marks(text: str) -> str:
    """Return the text without the control marks of chat formats."""
    said, count = _OTHER_MARK.subn("", text)
    # Repeated, because removing a mark may create a new one: marks can be nested on purpose.
    return neutralize_marks(_OTHER_MARK, said) if count else said


def takes_another_role(text: str) -> bool:
    """True if the model continues as the system, a user or a tool somewhere in the text."""
    return any(mark["other"] for mark in _ROLE.finditer(text))


def may_be_preamble(start: str) -> bool:
    """True if a text that begins like this may begin with a preamble of reasoning."""
    return _MAY_BE_PREAMBLE.match(start) is not None


def plain_start(text: str) -> tuple[str, str]:
    """Split a text: the part before any mark, and what may be the start of a mark after it.

    Marks are those of this module, and terminal control characters. If a complete mark follows, the
    second part is "", because nothing after a mark is plain.
    """
    mark = _PLAIN_ENDS.search(text)
    if mark is None:
        return text, ""
    return text[: mark.start()], mark["unfinished"] or ""


def _preamble_end(text: str) -> int:
    """Return where the text after a preamble begins, or 0 if there is no certain preamble."""
    for begins, ends in _PREAMBLES:
        begun = begins.match(text)
        if begun:
            return max((found.end() for found in ends.finditer(text, begun.end())), default=0)
    return 0


class _Kept:
    """A reader that goes through a text and keeps the parts that are meant for others.

    Each step reads one mark and continues after it.
    """

    def __init__(self, text: str, late_end: LateEnd) -> None:
        self.parts: list[str] = []
        self._text = text
        self._late_end = late_end
        self._at = 0
        self._in_channels = False

    def walk(self) -> None:
        while mark := _MARK.search(self._text, self._at):
            self.parts.append(self._text[self._at : mark.start()])
            self._at = mark.end()
            kind = mark.lastgroup or ""
            _STEPS.get(kind, _Kept._tag)(self, mark)
        self.parts.append(self._text[self._at :])

    def _tag(self, mark: re.Match[str]) -> None:
        """Skip reasoning between an opening tag and its closing tag, nested tags included.

        A closing tag without an opening one hides everything before it.
        """
        if _closes(mark):
            self._handle_late_end()
            return
        depth = 1
        while depth and (inner := _TAG.search(self._text, self._at)):
            depth += -1 if _closes(inner) else 1
            self._at = inner.end()
        if depth:
            self._end()

    def _channel(self, mark: re.Match[str]) -> None:
        """Skip all channels that are not meant for others."""
        if not self._in_channels:
            self._handle_late_end()
        self._in_channels = True
        self.parts.append("\n")
        head: re.Match[str] | None = mark
        while head and head["channel"].casefold() not in _SPOKEN_CHANNELS:
            head = _CHANNEL.search(self._text, self._at)
            self._at = head.end() if head else len(self._text)

    def _fence(self, mark: re.Match[str]) -> None:
        closed = _FENCE.search(self._text, self._at)
        if closed is None:
            self._end()
            return
        self._at = self._text.find("\n", closed.end()) + 1 or len(self._text)

    def _handle_late_end(self) -> None:
        if self._late_end == "hides_all_before":
            self.parts.clear()

    def _end(self) -> None:
        self._at = len(self._text)


_STEPS: Final[dict[str, Callable[[_Kept, re.Match[str]], None]]] = {
    "channel": _Kept._channel,
    "other": lambda kept, _: kept._end(),
    "own": lambda kept, _: None,
    "fence": _Kept._fence,
}


def _closes(tag: re.Match[str]) -> bool:
    return "/" in (tag["angle"], tag["square"], tag["triangle"]) or tag["end"] is not None


class LeadingReasoning:
    """A filter that skips the reasoning at the start of a streamed reply.

    It passes on the text after it as it arrives, without leading spaces. Later marks are not
    handled.
    """

    def __init__(self) -> None:
        self._held = ""
        self._depth = 0
        self._is_over = False

    def feed(self, piece: str) -> str:
        """Add a fragment, and return the new text after the reasoning."""
        if self._is_over:
            return piece
        text, at = self._held + piece, 0
        while self._depth or (tag := self._next_opening_tag(text, at)):
            if self._depth:
                tag = _TAG.search(text, at)
            if tag is None:
                unfinished = _UNFINISHED_TAG.search(text, at)
                self._held = unfinished[0] if unfinished else ""
                return ""
            self._depth += -1 if _closes(tag) else 1
            at = tag.end()
        start = _after_blanks(text, at)
        self._is_over = start < len(text) and not _UNFINISHED_TAG.match(text, start)
        self._held = "" if self._is_over else text[start:]
        return text[start:] if self._is_over else ""

    def _next_opening_tag(self, text: str, at: int) -> re.Match[str] | None:
        """Return the opening tag at `at`, after optional spaces, or None."""
        tag = _TAG.match(text, _after_blanks(text, at))
        return None if tag is None or _closes(tag) else tag


def _after_blanks(text: str, at: int) -> int:
    blanks = _BLANKS.match(text, at)
    return blanks.end() if blanks else at
