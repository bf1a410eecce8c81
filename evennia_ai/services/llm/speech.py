"""Turn a model's raw text into speech: short, without reasoning, labels and control characters.

The result is still untrusted: the game escapes it for Evennia's markup. Each step reads the text
once, so the cost of a hostile reply is linear in its length.

`SpokenStart` returns the first sentences while the model is still writing. A sentence that was said
cannot be taken back, so it is returned only if no later text can change it. Together these
sentences are the start of the speech in the complete reply.

A closing mark of reasoning without an opening one hides everything before it. So nothing may be
said before the end of a reply, unless the model is known to open what it closes (`early`). Then
leading reasoning is skipped, and the text is said up to the first character that may begin a mark
of any kind. The rest waits for the end of the reply.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Final, NamedTuple

from evennia_ai.engine.text.chat_markup import (
    OTHER_HEADINGS,
    OTHER_ROLES,
    OTHER_ROLES_IN_LINE,
    OWN_HEADINGS,
    OWN_ROLES,
)
from evennia_ai.services.llm.reasoning import (
    LateEnd,
    LeadingReasoning,
    may_be_preamble,
    plain_start,
    without_marks,
    without_thoughts,
)
from evennia_ai.services.llm.text_calls import without_calls
from evennia_ai.services.llm.unwrapping import (
    is_script_label,
    is_wrapping,
    may_be_introduction,
    may_be_others_part,
    others_part,
    speech_in_json,
    unwrapped,
    without_frame,
)

MOST_WRITTEN: Final = 100_000
"""The most characters of a reply that are searched for marks, hidden reasoning included."""

LOOKED_AT_CHARACTERS: Final = 8_000
"""The most characters of a reply that are used, hidden reasoning excluded."""

LABELS_IN_A_ROW: Final = 3
"""The most labels of the speaker that are removed from the start of a line."""

MAX_CHARACTERS: Final = 600
MAX_LINES: Final = 4
"""MAX_CHARACTERS and MAX_LINES limit how much of a reply is said by default."""

SPEECH_LINES: Final = 12
"""The most lines of a reply that an NPC says, including those of a list."""

# The number is limited, because a name, and even a whole line, may consist of these marks.
_MARKS_AROUND: Final = 8
_OPENED: Final = rf"(?P<opened>[\"'“‘„«*_\[(# ]{{0,{_MARKS_AROUND}}})"
_CLOSED: Final = rf"(?P<closed>[\"'”’“»*_\]) ]{{0,{_MARKS_AROUND}}})"
_HEAD_CHARACTERS: Final = 4
_ESCAPE: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
LINE_BREAK: Final = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_BLANKS: Final = re.compile(r"[^\S\n]+")
SENTENCE_END: Final = re.compile(r"[.!?…][\"'”’»)\]*_]*(?=\s|$)|[。！？][」』”’）]*")

_QUOTES: Final = {'"': '"', "'": "'", "“": "”", "‘": "’", "„": "“", "«": "»", "»": "«", "「": "」"}
_APOSTROPHE: Final = re.compile(r"(?<=\w)['’](?=\w)")
# Invisible characters that some scripts and emoji need inside words.
_JOINERS: Final = frozenset("\u200c\u200d")
_SHAPELESS: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0d\uffa0\ufffd\U000e0100-\U000e01ef]"
)
# Headings that a chat template writes for roles. They stay as plain lines if a server drops its
# special tokens.
_OTHER_ROLE_LINE: Final = re.compile(
    rf"[*_> ]{{0,8}}#{{1,6}} ?(?i:{'|'.join(OTHER_HEADINGS)})[*_ ]{{0,4}}[:：]|(?:user|system)$"
)
_OWN_ROLE_LINE: Final = re.compile(
    rf"^(?:[*_> ]{{0,8}}#{{1,6}} ?(?i:{'|'.join(OWN_HEADINGS)})[*_ ]{{0,4}}[:：][*_ ]*|assistant$)"
)
_OTHER_ROLE_IN_LINE: Final = re.compile(rf"(?<=[^\w\n])(?:{'|'.join(OTHER_ROLES_IN_LINE)}):")
_CLOSING: Final = str.maketrans({"[": "]", "(": ")", "“": "”", "‘": "’", "«": "»", "„": "“"})
_SILENT_MARKS: Final = re.compile(r"[\s.…\-–—]+")
_SAYS_NOTHING: Final = re.compile(
    r"[(\[*<]+\s*(?:silence|silent|(?:is|stays?|remains?) silent|says? nothing)[.\s]*[)\]*>]+",
    re.IGNORECASE,
)
_BLANKS_AND_QUOTES: Final = " \t\r\n\"'“”„«»"


def spoken_text(
    text: str,
    *,
    own_names: Iterable[str],
    other_names: Collection[str] = (),
    max_characters: int = MAX_CHARACTERS,
    max_lines: int = MAX_LINES,
    late_end: LateEnd = "hides_all_before",
) -> str:
    """Return the part of a reply that is said aloud, or "" if nothing is.

    One of the speaker's names may be the label of a line. A line with the label of one of
    `other_names`, or of another role (`User:`), ends the speech, because there the model continues
    as another person.

    Args:
        late_end: What a closing mark of reasoning without an opening one does.
    """
    names = tuple(own_names)
    own: list[str] = []
    written = visible_text(written_text(text, late_end=late_end))
    lines = [line.strip() for line in unwrapped(written, own_names=names).split("\n")]
    # A name before a colon is a speaker if the speaker's own label follows, as in a script.
    last_own = max((n for n, line in enumerate(lines) if n and is_labelled(line, names)), default=0)
    for number, line in enumerate(lines):
        part = own_part(line, names, other_names)
        if number < last_own and part.text == line and is_script_label(line):
            break
        own.append(part.text)
        if part.is_last:
            break
    said = _unquoted("\n".join(filter(None, own)))
    return _cap_speech("\n".join(said.split("\n")[: max(0, max_lines)]), max_characters)


def written_text(text: str, *, late_end: LateEnd = "hides_all_before") -> str:
    """Return the start of a reply without reasoning and tool calls, before labels are removed.

    A reply longer than `MOST_WRITTEN` is cut before marks of reasoning are looked for. If a closing
    mark after the cut could hide everything before it, the result is empty.
    """
    if len(text) > MOST_WRITTEN:
        text = "" if late_end == "hides_all_before" else text[:MOST_WRITTEN]
    told = without_thoughts(text, late_end=late_end)
    said = speech_in_json(told)
    said = without_calls(told) if said is None else said
    return without_marks(said).lstrip()[:LOOKED_AT_CHARACTERS]


def speech_in(text: str, *, own_names: Iterable[str], other_names: Collection[str] = ()) -> str:
    """Return the speech in a complete reply of the speaker named `own_names`; "" if there is none.

    Args:
        other_names: The names of other people present, for whom the speaker must not speak.
    """
    return spoken_text(
        text,
        own_names=tuple(dict.fromkeys(own_names)),
        other_names=other_names,
        max_lines=SPEECH_LINES,
    )


def is_silence(text: str) -> bool:
    """True if the model has chosen to say nothing: "-", "...", "(silence)" and similar.

    An empty reply is not such a choice.
    """
    said = text.strip(_BLANKS_AND_QUOTES)
    return bool(_SILENT_MARKS.fullmatch(said) or _SAYS_NOTHING.fullmatch(said))


def visible_text(text: str) -> str:
    """Return the text with one kind of line break, single spaces, and no control characters."""
    broken = LINE_BREAK.sub("\n", _ESCAPE.sub("", text)).replace("\t", " ")
    broken = broken if broken.isascii() else _SHAPELESS.sub("", broken)
    return _BLANKS.sub(" ", "".join(letter for letter in broken if _is_visible(letter)))


def _is_visible(letter: str) -> bool:
    if letter == "\n" or " " <= letter <= "~":
        return True
    if letter in _JOINERS:
        return True
    return unicodedata.category(letter) not in ("Cc", "Cf", "Cs", "Cn", "Co")


class OwnPart(NamedTuple):
    """The part of a line that the speaker says, without its label."""

    text: str
    is_last: bool
    """True if another person speaks after this part."""


def own_part(line: str, own_names: Collection[str], other_names: Collection[str]) -> OwnPart:
    """Return the part of a line that the speaker says.

    The roles of chat templates, such as `User`, count as names too, unless the speaker really has
    such a name.
    """
    known = {name.casefold() for name in own_names}
    others = (name for name in (*other_names, *OTHER_ROLES) if name.casefold() not in known)
    if is_labelled(line, others) or _OTHER_ROLE_LINE.match(line):
        return OwnPart("", is_last=True)
    role = _OTHER_ROLE_IN_LINE.search(line)
    line = line[: role.start()].rstrip() if role else line
    ends = others_part(line, [name for name in other_names if name.casefold() not in known])
    line = line if ends is None else line[:ends].rstrip()
    line = _OWN_ROLE_LINE.sub("", line)
    names = (*own_names, *OWN_ROLES)
    for _ in range(LABELS_IN_A_ROW):
        bare = [rest for name in names if (rest := _without_label(line, name)) is not None]
        if not bare:
            break
        line = _unquoted(bare[0])
    return OwnPart(line, is_last=role is not None or ends is not None)


def is_labelled(line: str, names: Iterable[str]) -> bool:
    """True if a line begins with one of these names as its label."""
    return any(_without_label(line, name) is not None for name in names)


def may_be_labelled(start: str, name: str) -> bool:
    """True if a line that begins like this may still become a line with the label `name`."""
    if not name:
        return False
    if len(start) >= len(name) + 2 * _MARKS_AROUND + 1:
        # `Mira (smiling` may go on with `):`.
        framed = (
            rf"[*_]{{0,8}}{re.escape(name)} ?[(\[（][^()\[\]（）]{{0,60}}[)\]）]?[*_ ]{{0,8}}\Z"
        )
        return re.match(framed, start, re.IGNORECASE) is not None
    head = name[:_HEAD_CHARACTERS]
    short = len(start) < _MARKS_AROUND + len(head)
    return short or re.match(_OPENED + re.escape(head), start, re.IGNORECASE) is not None


def _without_label(line: str, name: str) -> str | None:
    """Return the rest of a line that begins with the label `name:`, or None if it does not.

    The label may be bold or quoted. Marks that open before the name are closed after it, after the
    colon, or at the end of the line.
    """
    label = _label(name).match(line) if name and _may_hold_label(line, name) else None
    if label is None:
        return without_frame(line, name)
    rest = line[label.end() :]
    closing = label["opened"].strip()[::-1].translate(_CLOSING)
    if not closing or closing in label["closed"]:
        return rest
    if rest.startswith(closing):
        return rest.removeprefix(closing).lstrip()
    return rest.removesuffix(closing).rstrip()


def _may_hold_label(line: str, name: str) -> bool:
    """True if there is a colon where the label `name` would end.

    This check avoids compiling a pattern for each name: a game has more names than Python caches
    patterns.
    """
    start = line[: len(name) + 2 * _MARKS_AROUND + 1]
    return ":" in start or "：" in start


@lru_cache(maxsize=256)
def _label(name: str) -> re.Pattern[str]:
    return re.compile(f"{_OPENED}{re.escape(name)}{_CLOSED}[:：] *", re.IGNORECASE)


def _unquoted(text: str) -> str:
    """Return the text without a pair of quotes that encloses all of it."""
    closing = _QUOTES.get(text[:1])
    if closing is None or len(text) < 2 or text[-1] != closing:
        return text
    inner = text[1:-1]
    marks = _APOSTROPHE.sub("", inner)
    return text if text[0] in marks or closing in marks else inner.strip()


def keeps_its_quotes(start: str) -> bool:
    """True if a text that begins like this cannot be enclosed in one pair of quotes."""
    closing = _QUOTES.get(start[:1])
    if closing is None:
        return bool(start)
    inner = _APOSTROPHE.sub("x", start[1:])[:-1]  # The last character may be the closing quote.
    return start[0] in inner or closing in inner


def _cap_speech(text: str, max_characters: int) -> str:
    """Return `text` up to its last sentence that fits into `most` characters.

    If only short sentences would remain, it is cut at a word instead.
    """
    if len(text) <= max_characters:
        return text
    if max_characters < 2:
        return ""
    ends = [end.end() for end in SENTENCE_END.finditer(text[: max_characters + 1])]
    whole = max((end for end in ends if end <= max_characters), default=0)
    if whole and whole >= max_characters // 4:
        return text[:whole]
    words, blank, _ = text[whole : max_characters - 1].rpartition(" ")
    cut = words.rstrip(" ,;:-") if blank else text[whole : max_characters - 1]
    return f"{text[:whole]}{cut}…"


def whole_sentences(text: str) -> str:
    """Return a text that was cut off, up to its last complete sentence.

    If there is none, the last word, which may be incomplete, is replaced by an ellipsis.
    """
    whole = begin = 0
    for end in SENTENCE_END.finditer(text):
        if _is_whole(text[begin : end.end()], followed_by=text[end.end() :]):
            whole = begin = end.end()
    if whole:
        return text[:whole]
    words, blank, last = text.rstrip().rpartition(" ")
    return f"{(words if blank else last).rstrip(' ,;:.-')}…" if text.strip() else ""


MORE_CHARACTERS: Final = 600
"""How many characters more than the limit are read to find early sentences.

Labels and blank lines need them.
"""

_ABBREVIATIONS: Final = frozenset(
    [
        *("capt", "col", "dr", "e.g", "etc", "gen", "i.e", "jr", "lt", "mr", "mrs", "ms", "prof"),
        *("rev", "sgt", "sr", "st", "vs"),
    ]
)
_SAME: Final = '"*_'  # The opening and the closing mark are the same.
_PAIRS: Final = ("()", "[]", "“”", "«»", "「」")


class SpokenStart:
    """The speech of one reply while the model writes. Feed it the raw fragments in order.

    `own_names` are the NPC's names, `other_names` those of people for whom it must not speak.
    `said` is all text returned so far.
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
        self._held = ""  # The start of what may become a marker of reasoning
        self._lines: list[str] = []  # Complete lines, without labels
        self._line = ""  # The incomplete last line, unchanged
        self._fed_characters = 0
        self._raw_characters = 0
        self._seen_characters = 0
        self._another_speaks = False
        self._has_new_line = False
        self._examined_to = 0  # the place in `_line` up to which sentences were looked for
        # Without early sentences, only the complete reply is used.
        self._is_over = not early or max_characters < 2

    def feed(self, piece: str) -> list[str]:
        """Add a fragment, and return the complete sentences that may be said now.

        Each has the space before it. A sentence never ends inside `*an action*`, quotes or
        brackets.
        """
        piece = piece[: max(0, MOST_WRITTEN - self._fed_characters)]
        self._fed_characters += len(piece)
        if self._is_over or not self._take(self._leading.feed(piece)):
            return []
        ends_at = self._newest_end()
        if ends_at == self._examined_to and not self._has_new_line:
            return []
        self._has_new_line = False
        if self._is_wrapping(self._line.strip()):
            self._is_over, self._line = True, ""
        text = self._certain_speech()
        if may_be_preamble(text) or may_be_introduction(text) or not keeps_its_quotes(text):
            return []
        if text.endswith(self._line.strip()):  # else its start may still be a speaker's label
            self._examined_to = ends_at
        return list(self._whole_sentences(text))

    def whole(self, final_text: str) -> str:
        """Return the whole speech, including `said`, for the history."""
        return spoken_text(
            final_text,
            own_names=self._own_names,
            other_names=self._other_names,
            max_characters=self._max_characters,
            max_lines=self._max_lines,
            late_end="hides_nothing" if self._early else "hides_all_before",
        )

    def rest(self, final_text: str) -> str:
        """Return the speech that was not said yet, when the reply is complete."""
        self._is_over = True
        return self.whole(final_text).removeprefix(self.said)

    def _take(self, text: str) -> bool:
        """Add text that comes after the leading reasoning.

        Returns:
            True if the text added something visible.
        """
        text = self._held + text
        plain, self._held = plain_start(text)
        self._raw_characters += len(plain)
        if self._raw_characters > LOOKED_AT_CHARACTERS:
            self._is_over = True
            return False
        new = visible_text(plain)
        self._seen_characters += len(new)
        at_a_mark = len(plain) + len(self._held) < len(text)
        self._is_over = at_a_mark or self._seen_characters > self._max_characters + MORE_CHARACTERS
        *whole, self._line = (self._line + self._without_double_space(new)).split("\n")
        for line in map(str.strip, whole):
            if self._is_wrapping(line):  # what is speech can only be decided with the whole reply
                self._is_over, self._line = True, ""
                break
            self._end_line(line)
        self._examined_to = 0 if whole else self._examined_to
        self._has_new_line = self._has_new_line or bool(whole)
        return bool(new.strip(" "))

    def _newest_end(self) -> int:
        """Return where the last sentence ends in the incomplete line that more text follows."""
        line = self._line.rstrip()
        ends = (end.end() for end in SENTENCE_END.finditer(line, self._examined_to))
        return max((end for end in ends if end < len(line)), default=self._examined_to)

    def _is_wrapping(self, line: str) -> bool:
        own = own_part(line, self._own_names, self._other_names).text
        return is_wrapping(own) or may_be_others_part(own, self._other_names)

    def _without_double_space(self, new: str) -> str:
        """Return new text without its leading space if the line already ends in one."""
        return new.removeprefix(" ") if self._line.endswith(" ") else new

    def _end_line(self, line: str) -> None:
        """Add a complete line, unless another person is speaking already."""
        if self._another_speaks or len(self._lines) >= self._max_lines:
            self._is_over = True
            return
        part = own_part(line, self._own_names, self._other_names)
        self._another_speaks = part.is_last
        self._lines += [part.text] if part.text else []

    def _certain_speech(self) -> str:
        """Return the speech that no later text can change.

        It consists of the complete lines, and of the incomplete line if that has no label.
        """
        start = "" if self._another_speaks else self._unlabelled(self._line.strip())
        certain = [*self._lines, start] if start else self._lines
        return "\n".join(certain[: self._max_lines])

    def _unlabelled(self, start: str) -> str:
        """Return the incomplete line, or "" while it may still turn out to begin with a label."""
        names = (*self._own_names, *self._other_names, *OTHER_ROLES, *OWN_ROLES)
        if is_labelled(start, names) or any(may_be_labelled(start, name) for name in names):
            return ""
        part = own_part(start, self._own_names, self._other_names)
        return start if part.text == start else ""

    def _whole_sentences(self, text: str) -> Iterable[str]:
        for end in SENTENCE_END.finditer(text, len(self.said)):
            if end.end() >= len(text) or end.end() > self._max_characters:
                return
            if not keeps_its_quotes(text[: end.end()]):
                continue  # If the reply ends here, its quotes are removed.
            sentence = text[len(self.said) : end.end()]
            if _is_whole(sentence, followed_by=text[end.end() :]):
                self.said += sentence
                yield sentence


def _is_whole(sentence: str, *, followed_by: str) -> bool:
    """True if a listener would accept the text as a complete sentence.

    Abbreviations and open quotes or brackets do not end a sentence.
    """
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
