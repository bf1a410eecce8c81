"""The first sentences of a reply, while the model still writes the rest.

Nothing that was said can be taken back, so a sentence is given out only when nothing that may
still come can change it. All given out, one after another, is the start of what the whole reply
says in the end, whatever the pieces in which it came.

The rule: an end mark of reasoning without its beginning hides all before it, so nothing may be
said before the end of a reply at all, unless the model is known always to open what it closes
(`early`). Then reasoning that the reply begins with is passed over, and what follows is said up to
the first character that may begin a mark of any kind; the rest waits for the end.
"""

from collections.abc import Collection, Iterable
from typing import Final

from evennia_ai.llm.replies.clean import (
    LOOKED_AT_CHARACTERS,
    MAX_CHARACTERS,
    MAX_LINES,
    SENTENCE_END,
    is_labelled,
    keeps_its_quotes,
    may_be_labelled,
    own_line,
    speaks_for_another,
    spoken_text,
    visible,
)
from evennia_ai.llm.replies.reasoning import LeadingReasoning, may_be_preamble, plain_start

MORE_CHARACTERS: Final = 600
"""How much more than can be said is looked at for early sentences: labels, blank lines."""

_ABBREVIATIONS: Final = frozenset(
    [
        *("capt", "col", "dr", "e.g", "etc", "gen", "i.e", "jr", "lt", "mr", "mrs", "ms", "prof"),
        *("rev", "sgt", "sr", "st", "vs"),
    ]
)
_JSON: Final = ("{", "[{")  # an answer of a form is for no ears
_SAME: Final = '"*_'  # marks that open and close alike
_PAIRS: Final = ("()", "[]", "“”", "«»", "「」")


class SpokenStart:
    """What of one reply may be said already; it is fed the raw pieces in their order.

    `own_names` are the names the NPC goes by, `other_names` those for whom nobody else speaks.
    `said` is all that was given out.
    """

    def __init__(
        self,
        own_names: Iterable[str],
        other_names: Collection[str] = (),
        *,
        early: bool = False,
        max_characters: int = MAX_CHARACTERS,
        max_lines: int = MAX_LINES,
    ) -> None:
        self.said = ""
        self._own_names = tuple(own_names)
        self._other_names = tuple(other_names)
        self._early = early
        self._max_characters = max_characters
        self._max_lines = max(0, max_lines)
        self._leading = LeadingReasoning()
        self._held = ""  # may become a mark
        self._lines: list[str] = []  # whole ones, without labels
        self._line = ""  # the one that is being written, as it is
        self._raw_characters = 0
        self._seen_characters = 0
        self._another_speaks = False
        self._is_over = not early or max_characters < 2  # then nothing but all may fit

    def feed(self, piece: str) -> list[str]:
        """The whole sentences that may be said now, each with the blank before it.

        A sentence never ends within `*an action*`, quotes or brackets.
        """
        if self._is_over or not self._take(self._leading.feed(piece)):
            return []
        text = self._certain()
        if may_be_preamble(text) or text.startswith(_JSON) or not keeps_its_quotes(text):
            return []
        return list(self._whole_sentences(text))

    def whole(self, final_text: str) -> str:
        """All that the reply says, `said` included; what belongs into the history."""
        return spoken_text(
            final_text,
            own_names=self._own_names,
            other_names=self._other_names,
            max_characters=self._max_characters,
            max_lines=self._max_lines,
            late_end="hides_nothing" if self._early else "hides_all_before",
        )

    def rest(self, final_text: str) -> str:
        """What is left to say when the whole reply is there."""
        self._is_over = True
        return self.whole(final_text).removeprefix(self.said)

    def _take(self, text: str) -> bool:
        """Take in what is behind leading reasoning; whether something new can be seen."""
        text = self._held + text
        plain, self._held = plain_start(text)
        self._raw_characters += len(plain)
        if self._raw_characters > LOOKED_AT_CHARACTERS:
            self._is_over = True
            return False
        new = visible(plain)
        self._seen_characters += len(new)
        at_a_mark = len(plain) + len(self._held) < len(text)
        self._is_over = at_a_mark or self._seen_characters > self._max_characters + MORE_CHARACTERS
        *whole, self._line = (self._line + self._parted(new)).split("\n")
        for line in map(str.strip, whole):
            self._end_line(line)
        return bool(new.strip(" "))

    def _parted(self, new: str) -> str:
        """New text without a second blank behind the last one."""
        return new.removeprefix(" ") if self._line.endswith(" ") else new

    def _end_line(self, line: str) -> None:
        """Take in a whole line, up to the first of somebody else."""
        if self._another_speaks or len(self._lines) >= self._max_lines:
            self._is_over = True
            return
        self._another_speaks = speaks_for_another(line, self._own_names, self._other_names)
        own = "" if self._another_speaks else own_line(line, self._own_names)
        self._lines += [own] if own else []

    def _certain(self) -> str:
        """What is said so far whatever comes: whole lines, and the last one if it has no label."""
        start = "" if self._another_speaks else self._unlabelled(self._line.strip())
        certain = [*self._lines, start] if start else self._lines
        return "\n".join(certain[: self._max_lines])

    def _unlabelled(self, start: str) -> str:
        """The start of a line, or "" as long as a label may be what it is."""
        names = (*self._own_names, *self._other_names)
        if is_labelled(start, names) or any(may_be_labelled(start, name) for name in names):
            return ""
        return start

    def _whole_sentences(self, text: str) -> Iterable[str]:
        for end in SENTENCE_END.finditer(text, len(self.said)):
            if end.end() >= len(text) or end.end() > self._max_characters:
                return
            sentence = text[len(self.said) : end.end()]
            if _is_whole(sentence, followed_by=text[end.end() :]):
                self.said += sentence
                yield sentence


def _is_whole(sentence: str, *, followed_by: str) -> bool:
    """Whether a listener takes it for a sentence: no abbreviation, nothing left open."""
    if any(sentence.count(mark) % 2 for mark in _SAME):
        return False
    if any(sentence.count(opens) != sentence.count(closes) for opens, closes in _PAIRS):
        return False
    if followed_by.startswith("\n"):
        return True
    if followed_by.lstrip()[:1].islower():
        return False
    *_, word = ("", *sentence.lower().split())
    word = word.strip("\"'“‘(*")
    bare = word.rstrip(".")
    return bare == word or not (bare in _ABBREVIATIONS or len(bare) == 1)
