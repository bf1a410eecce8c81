"""Quote sentences of the character's texts that answer a question, in the first person.

A sentence answers if it has most of the words that the question is about, in any form, and the
right kind of fact: a price for a question about a price, a place for one about a place. If the
author gave a text a key that is in the question, the text need not share words with it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

from evennia_ai.engine.prompt.messages import without_time_line
from evennia_ai.engine.text.words import script_ranges
from evennia_ai.services.llm.chat import ChatRequest, Passage
from evennia_ai.services.llm.offline.asked import COMMON_WORDS, VAGUE_WORDS, Asked, Kind
from evennia_ai.services.llm.offline.first_person import first_person, pronoun_of

ANSWER_CHARACTERS: Final = 300
LOOKED_AT_CHARACTERS: Final = 20_000
"""The most characters of passages that are searched, because the search blocks the game."""
MOST_HEARD: Final = 6
"""How many of the newest messages are searched for words that other people said."""

_WORD: Final = re.compile(r"[^\W_]+")
_CJK: Final = re.compile(f"[{script_ranges('kana', 'han', 'hangul')}]{{2,}}")
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
_NUMBER: Final = (
    r"(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|"
    r"(?:twen|thir|for|fif|six|seven|eigh|nine)ty(?:-\w+)?|hundred|thousand|half|dozens?|twice)"
)
_SPAN: Final = r"(?:years?|months?|weeks?|days?|nights?|winters?|summers?|hours?|minutes?)"
_COINS: Final = (
    r"(?:penny|pennies|pence|\w+pence|coins?|gold|silver|coppers?|shillings?|crowns?|florins?"
    r"|ducats?|dollars?|euros?|pounds?|marks?|gp|sp|cp|credits?|for free|nothing|costs?|[$€£])"
)
_EVIDENCE: Final[Mapping[Kind, re.Pattern[str]]] = {
    kind: re.compile(pattern, re.IGNORECASE)
    for kind, pattern in (
        (Kind.PRICE, rf"(?<!\w){_COINS}(?!\w)"),
        (
            Kind.WHERE,
            (
                rf"\b(?:at(?!\s+{_NUMBER}\b)|on|in|by|near|across|under|above|below|north|south|east"
                r"|west|up|down|behind"
                r"|beside|between|beyond|opposite|along|into|through|outside|inside)\b"
            ),
        ),
        (
            Kind.WHEN,
            (
                rf"\b(?:{_SPAN}|morning|evening|noon|midnight|dusk|dawn|slack|tides?|spring|summer"
                r"|autumn|winter|o'clock|daily|always|never|today|tonight|tomorrow|yesterday|when"
                r"|after|before|until|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february"
                r"|march|april|june|july|august|september|october|november|december|\d+)\b"
            ),
        ),
        (Kind.AMOUNT, rf"\b{_NUMBER}\b"),
        (
            Kind.SINCE,
            rf"\b(?:for|since|these|in)\s+(?:\w+\s+)?{_NUMBER}\s+{_SPAN}|{_SPAN}\s+(?:ago|back)\b",
        ),
    )
}
_NAMES: Final = re.compile(r"(?<!^)\b[A-Z][a-z]+|^[A-Z][a-z]+(?= [A-Z]| (?:is|was|has|had)\b)")
_OWN_SECRET: Final = re.compile(
    r"\b(?:secret\w*|hid(?:es?|den|ing)|conceal\w*|pretend\w*|unknown to|actually|in truth|lies)\b",
    re.IGNORECASE,
)
"""Words that mark a secret in a description. Only the model may know such a sentence."""
_WANTED: Final[Mapping[Kind, float]] = {
    Kind.MAY: inf,
    Kind.REQUEST: inf,
    Kind.HOUR: inf,
    Kind.STATEMENT: 1.0,
}
"""For some kinds of question: the share of the question's words that a text must have.

Texts with a matching key are exempt. `inf`: only texts with a matching key count.
"""
_FOLLOWED: Final = frozenset({Kind.WHAT, Kind.WHO, Kind.WHY, Kind.STATEMENT})
"""Kinds of question after whose answer the next sentence may be said too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """A sentence of a passage as the character says it.

    `place` is the index of the passage and the index of the sentence in it.
    """

    text: str
    passage: Passage
    place: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """How well one sentence answers a question.

    `overlap` counts 2 for each word that it shares with the question, and 1 for each word that it
    has in another form. `is_about` is True if a key of the passage is in the question.
    """

    sentence: Sentence
    overlap: int
    is_about: bool

    @property
    def rank(self) -> tuple[object, ...]:
        """The sort key: the best answer has the lowest rank."""
        passage = self.sentence.passage
        is_told = passage.kind == "description"
        worth = self.overlap + 2 * self.is_about
        return (-worth, is_told, -passage.score, self.sentence.place)


class Subject:
    """The words of a question, without common words such as "the".

    A text is compared with these words and with their stems, so "ropes" matches "rope". `named`
    has the words that name things, such as "rope" in "what does rope cost".
    """

    def __init__(self, question: Asked, *, without: Iterable[str]) -> None:
        ignored = COMMON_WORDS.union(*map(words_of, without))
        words = frozenset(words_of(question.text if _is_foreign(question) else question.plain))
        self.words = words - ignored
        self._stems = frozenset(map(rough_stem, self.words))
        self.named = self.words if question.kind is Kind.HOW else self.words - VAGUE_WORDS
        self._needed = frozenset(map(rough_stem, self.named or self.words))

    def overlap(self, text: str) -> int:
        """Count 2 for each word of the question in the text, and 1 for each in another form."""
        words = set(words_of(text))
        same = self.words & words
        akin = self._stems & {rough_stem(word) for word in words - same} - set(
            map(rough_stem, same)
        )
        return 2 * len(same) + len(akin)

    def is_news(self, evidence: re.Pattern[str], text: str) -> bool:
        """True if the text has a fact of the wanted kind that is not already in the question."""
        found = (set(map(rough_stem, words_of(one[0]))) for one in evidence.finditer(text))
        return any(not stems <= self._stems for stems in found)

    def share(self, text: str) -> float:
        """Return which share of the question's words the text has, from 0 to 1."""
        if not self._needed:
            return 0.0
        return len(self._needed & set(map(rough_stem, words_of(text)))) / len(self._needed)


def _is_foreign(question: Asked) -> bool:
    return question.kind is Kind.FOREIGN


def words_of(text: str) -> Iterator[str]:
    """Yield the words of a text in lower case.

    Chinese and Japanese have no spaces, so each pair of characters counts as a word.
    """
    for word in _WORD.findall(text.casefold()):
        if _CJK.fullmatch(word):
            yield from (word[at : at + 2] for at in range(len(word) - 1))
        else:
            yield word


def rough_stem(word: str) -> str:
    """Return a stem that all forms of a word share: ferry and ferries, light and lights."""
    if word.endswith("ss"):  # Words such as "cross" keep their last letter.
        return word
    for ending in ("ings", "ies", "ing", "es", "ed", "s", "y", "e"):
        if len(word) - len(ending) >= 3 and word.endswith(ending):
            return word.removesuffix(ending)
    return word


def quote_answer(question: Asked, request: ChatRequest) -> str:
    """Return the sentences that answer the question; "" if none does.

    Sentences that another person in the room has just said are left out.
    """
    subject = Subject(question, without=(request.speaker,))
    heard = _heard_of_others(request)
    told = [one for one in sayable_sentences(request) if one.text not in heard]
    about = {at for at, one in enumerate(request.passages) if _is_about(one, question, subject)}
    judged = (_fit(one, question, subject, is_about=one.place[0] in about) for one in told)
    fits = [fit for fit in judged if fit is not None]
    if question.kind is Kind.SINCE and not fits:
        since = [s for s in told if _tells_since(s)]
        own = [s for s in since if s.passage.kind == "description"]
        fits = [Fit(sentence=s, overlap=1, is_about=False) for s in (own or since)[:1]]
    found = sorted(fits, key=lambda fit: fit.rank)
    if not found:
        return ""
    best = found[0]
    return join_sentences([best.sentence, *_seconding(best, found[1:], told, question.kind)])


def _heard_of_others(request: ChatRequest) -> str:
    """Return what other people in the room have said lately, with their names."""
    names = tuple(f"{name}:" for name in request.company)
    newest = request.messages[-MOST_HEARD:]
    said = [without_time_line(one.content) for one in newest if one.role == "user"]
    return "\n".join(text for text in said if text.startswith(names))


def _tells_since(sentence: Sentence) -> bool:
    is_own = sentence.text.startswith("I ") or " I " in sentence.text
    return is_own and bool(_EVIDENCE[Kind.SINCE].search(sentence.text))


def _fit(sentence: Sentence, question: Asked, subject: Subject, *, is_about: bool) -> Fit | None:
    """Return how well a sentence answers the question, or None if it does not answer it."""
    text = sentence.text
    overlap = subject.overlap(text)
    evidence = _NAMES if question.kind is Kind.WHO else _EVIDENCE.get(question.kind)
    if evidence is not None and not subject.is_news(evidence, text):
        return None
    share = subject.share(text)
    if not is_about and share < _WANTED.get(question.kind, 0.0):
        return None
    if _is_foreign(question):
        is_enough = overlap > 0
    elif question.kind is Kind.PRICE and not subject.words - _OF_PRICES:
        is_enough = True
    else:
        is_half = share == 0.5 and question.kind in _EVIDENCE
        is_enough = share > 0.5 or is_half
        is_led = sentence.place[1] == 0 or overlap > 0
        is_enough = is_enough or (is_about and is_led and not _DOES.match(question.plain))
    return Fit(sentence=sentence, overlap=overlap, is_about=is_about) if is_enough else None


_DOES: Final = re.compile(r"(?:who|whose)\b(?! (?:is|are|was|were)\b)|how (?:did|do|does)\b")
"""Questions that ask who does something, or how.

A text that is merely about the thing does not answer them.
"""
_OF_PRICES: Final = VAGUE_WORDS | {"charge", "fare", "fee", "fees", "fares", "pay"}


def _is_about(passage: Passage, question: Asked, subject: Subject) -> bool:
    """True if the question contains a key that the author gave the passage.

    If the question names a thing, a vague key such as "cost" does not count.
    """
    said = f" {' '.join(words_of(question.plain))} "
    keys = (tuple(words_of(key)) for key in passage.keys if not key.startswith("/"))
    telling = (key for key in keys if not subject.named or not VAGUE_WORDS.issuperset(key))
    return any(key and f" {' '.join(key)} " in said for key in telling)


def _seconding(
    best: Fit, others: Sequence[Fit], told: Sequence[Sentence], kind: Kind
) -> list[Sentence]:
    """Return the sentence to say after the best one, in a list, or an empty list.

    It is the next sentence of the same text, or another one that fits nearly as well.
    """
    passage, at = best.sentence.place
    behind = next((one for one in told if one.place == (passage, at + 1)), None)
    if kind in _FOLLOWED and best.is_about and behind is not None:
        return [behind] if _has_room(best.sentence, behind) else []
    for other in others:
        if 2 * other.overlap < best.overlap or other.is_about < best.is_about:
            return []
        if other.sentence.text != best.sentence.text:
            return [other.sentence] if _has_room(best.sentence, other.sentence) else []
    return []


def _has_room(one: Sentence, other: Sentence) -> bool:
    return len(one.text) + 1 + len(other.text) <= ANSWER_CHARACTERS


def join_sentences(said: Iterable[Sentence]) -> str:
    """Return the sentences in the order of the passages, cut at a word if they are too long."""
    text = " ".join(s.text for s in sorted(said, key=lambda s: s.place))
    if len(text) <= ANSWER_CHARACTERS:
        return text
    return text[: ANSWER_CHARACTERS - 1].rpartition(" ")[0].rstrip(" ,;:-") + "…"


def sayable_sentences(request: ChatRequest) -> Iterator[Sentence]:
    """Yield the sentences of lore and description that the character can say."""
    left, name = LOOKED_AT_CHARACTERS, request.speaker
    described = "\n".join(one.text for one in request.passages if one.kind == "description")
    pronoun = pronoun_of(described)
    for number, passage in enumerate(request.passages):
        if passage.kind not in ("lore", "description"):
            continue
        text = passage.text[: max(0, left)]
        left -= len(text)
        is_own = passage.kind == "description"
        for place, sentence in enumerate(plain_sentences(text, name)):
            if is_own and _OWN_SECRET.search(sentence):
                continue
            about = pronoun if is_own else ""
            said = first_person(sentence, name=name, pronoun=about) if name else sentence
            if said is not None and (not is_own or said != sentence):
                yield Sentence(text=said, passage=passage, place=(number, place))


def plain_sentences(text: str, speaker: str) -> Iterator[str]:
    """Yield the sentences of a passage without markup, headings and decorators."""
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
    """Return the text without brackets that enclose all of it, at most two pairs."""
    text = text.strip()
    for _ in range(2):
        if len(text) > 1 and _BRACKETS.get(text[0]) == text[-1]:
            text = text[1:-1].strip()
    return text
