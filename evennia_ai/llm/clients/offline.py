"""Answers without a language model: quotes what was activated for the question.

It lets a game without any endpoint show that lore reaches its NPCs. It never invents a word,
always answers alike, and says of itself that it is offline.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from twisted.internet.defer import Deferred, succeed

from evennia_ai.llm.chat import ChatReply, ChatRequest, Listener, Passage
from evennia_ai.text.words import letters_of

ANSWER_CHARACTERS: Final = 300
LOOKED_AT_CHARACTERS: Final = 20_000
"""How much text of all passages is searched: the answer is made on the game's own thread."""

COMMON_WORDS: Final = frozenset(
    """
    a about after all am an and any anybody anyone anything are as at be because been but by can
    could did do does doing for from get give go got had has have he hello her here hey hi him his
    how i if in into is it its just know let like may me might much must my no not now of oh on
    one or our please really say shall she should so some somebody something tell than thank
    thanks that the their them then there these they thing things this those to too up us very was
    we well were what when where which who whom whose why will with would yes you your yours
    """.split()  # noqa: SIM905 - a hundred quoted words would be a page
)

_WORD: Final = re.compile(r"[^\W_]+")
_CJK: Final = re.compile(f"[{letters_of('kana', 'han', 'hangul')}]{{2,}}")
_MACRO: Final = re.compile(r"\{\{([^{}]*)\}\}|<(?:user|char|bot)>", re.IGNORECASE)
_TAG: Final = re.compile(r"</?[A-Za-z][\w.-]*(?:\s[^<>]*)?/?>")
_HEADING: Final = re.compile(r"#{1,6}\s|={2,}|@@|-{3,}|\*{3,}|```")
_BULLET: Final = re.compile(r"^(?:[-*•+]|\d{1,3}[.)])\s+")
_EMPHASIS: Final = re.compile(r"\*+|`+|(?<![^\W_])_+|_+(?![^\W_])")
_BRACKETS: Final = {"[": "]", "(": ")", "{": "}", "【": "】"}
_SENTENCE_BREAK: Final = re.compile(
    r"(?<!\bMr\.)(?<!\bMrs\.)(?<!\bMs\.)(?<!\bDr\.)(?<!\bSt\.)(?<=[.!?…])[\"'”’»)]*\s+"
    r"|(?<=[。！？])"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """A sentence of a passage, how well it fits the question, and where it stood.

    `place` is (passage, sentence); `overlap` is 2 for each of the question's words it holds and
    1 for each it holds in another form.
    """

    text: str
    overlap: int
    score: float
    place: tuple[int, int]

    @property
    def rank(self) -> tuple[int, float, tuple[int, int]]:
        """What the best sentence has the least of."""
        return (-self.overlap, -self.score, self.place)


class OfflineResponder:
    """A `ChatModel` that answers at once, from the request's passages alone.

    It says the one or two sentences with the most words of the question; where none has any, the
    first sentence of the best constant passage that it has not said yet; where there is none,
    `fallback`.
    """

    offline: Final = True

    def __init__(self, fallback: str, *, name: str = "offline") -> None:
        self._fallback = fallback
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    def complete(
        self, request: ChatRequest, *, listener: Listener | None = None
    ) -> Deferred[ChatReply]:
        """The answer, already there: nobody need listen to it."""
        found = answer(request)
        text = found or self._fallback
        return succeed(ChatReply(text=text, model=self._name, offline=True, is_fallback=not found))

    def close(self) -> None:
        """Nothing is open."""


def answer(request: ChatRequest) -> str:
    """What can be quoted in answer to the request's question; empty when nothing can."""
    asked = _Question.of(request.question, without=request.speaker)
    found = sorted(_sentences(request.passages, asked, request.speaker), key=lambda s: s.rank)
    best = found[0] if found and found[0].overlap else None
    if best is None:
        return _constant(request, found)
    return _spoken([best, *_seconding(best, found[1:])])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """The words of a question that say what it is about; `stems` finds them in another form."""

    words: frozenset[str]
    stems: frozenset[str]

    @classmethod
    def of(cls, text: str, *, without: str) -> "_Question":
        ignored = COMMON_WORDS | set(_words(without))
        words = frozenset(word for word in _words(text) if word not in ignored)
        return cls(words=words, stems=frozenset(map(_stem, words)))

    def overlap(self, sentence: str) -> int:
        words = set(_words(sentence))
        same = self.words & words
        akin = self.stems & {_stem(word) for word in words - same} - set(map(_stem, same))
        return 2 * len(same) + len(akin)


def _words(text: str) -> Iterator[str]:
    """The words of a text, folded; a run of CJK letters has no blanks, so its pairs are words."""
    for word in _WORD.findall(text.casefold()):
        if _CJK.fullmatch(word):
            yield from (word[at : at + 2] for at in range(len(word) - 1))
        else:
            yield word


def _stem(word: str) -> str:
    """A rough beginning that the forms of one word share: ferry, ferries; light, lights."""
    for ending in ("ies", "ing", "es", "ed", "s", "y", "e"):
        if len(word) - len(ending) >= 3 and word.endswith(ending):
            return word.removesuffix(ending)
    return word


def _sentences(passages: Sequence[Passage], asked: _Question, speaker: str) -> Iterator[Sentence]:
    left = LOOKED_AT_CHARACTERS
    for number, passage in enumerate(passages):
        text = passage.text[: max(0, left)]
        left -= len(text)
        for place, sentence in enumerate(_plain_sentences(text, speaker)):
            yield Sentence(
                text=sentence,
                overlap=asked.overlap(sentence),
                score=passage.score,
                place=(number, place),
            )


def _seconding(best: Sentence, others: Iterable[Sentence]) -> list[Sentence]:
    """The next best sentence, if it fits about as well and both fit into the answer."""
    for other in others:
        if 2 * other.overlap < best.overlap:
            return []
        if other.text != best.text:
            room = len(best.text) + 1 + len(other.text) <= ANSWER_CHARACTERS
            return [other] if room else []
    return []


def _constant(request: ChatRequest, found: Sequence[Sentence]) -> str:
    """The first sentence of the best constant passage that was not said in this conversation."""
    said = "\n".join(m.content for m in request.messages if m.role == "assistant")
    constant = [s for s in found if request.passages[s.place[0]].constant and s.text not in said]
    return _spoken(constant[:1])


def _spoken(sentences: Iterable[Sentence]) -> str:
    """The sentences in the order they were written, cut at a word where one alone is too long."""
    text = " ".join(s.text for s in sorted(sentences, key=lambda s: s.place))
    if len(text) <= ANSWER_CHARACTERS:
        return text
    return text[: ANSWER_CHARACTERS - 1].rpartition(" ")[0].rstrip(" ,;:-") + "…"


def _plain_sentences(text: str, speaker: str) -> Iterator[str]:
    """The sentences of a passage as one would say them: no markup, headings or decorators."""
    for line in _unbracketed(text).splitlines():
        plain = _plain_line(line, speaker)
        for sentence in _SENTENCE_BREAK.split(plain):
            if _WORD.search(sentence):
                yield sentence.strip()


def _plain_line(line: str, speaker: str) -> str:
    bare = line.strip()
    if _HEADING.match(bare):
        return ""
    bare = _MACRO.sub(lambda macro: speaker if "char" in macro[0].casefold() else "", bare)
    bare = _EMPHASIS.sub("", _TAG.sub("", _BULLET.sub("", bare)))
    return " ".join(_unbracketed(bare).split())


def _unbracketed(text: str) -> str:
    """Without the brackets around the whole text, double ones at most."""
    text = text.strip()
    for _ in range(2):
        if len(text) > 1 and _BRACKETS.get(text[0]) == text[-1]:
            text = text[1:-1].strip()
    return text
