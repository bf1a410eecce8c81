"""An extract: a summary without a model, made of sentences that were said.

Nothing is worded anew: each line quotes one sentence and names who said it. Sentences are chosen by
how many of the conversation's own words they hold, and by what a later turn is most likely to need:
promises, numbers, names, open questions, the first and the last word. The same plan gives the same
bytes on every machine: scores are whole numbers, and ties fall to the older sentence.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from evennia_ai.history.compaction import CompactionPlan
from evennia_ai.history.role_markup import neutral
from evennia_ai.history.transcript import Said, is_quote, quote, said_in
from evennia_ai.prompt.tokens import TokenCounter
from evennia_ai.text.words import pairs_of, words_of

SENTENCE_CHARACTERS: Final = 300
"""How much of one sentence is quoted."""

# What a sentence's own words can earn, and what else counts for it.
_WORDS_POINTS: Final = 100
_PROMISE, _NUMBER, _NAME, _QUESTION = 150, 50, 50, 50
_EARLIER_SUMMARY, _BEST_OF_SPEAKER, _FIRST_OR_LAST = 150, 300, 600

_SENTENCE_BREAK: Final = re.compile(
    r"\n+|(?<!\bMr\.)(?<!\bMrs\.)(?<!\bMs\.)(?<!\bDr\.)(?<!\bSt\.)(?<=[.!?…])\s+"
    r"|(?<=[.!?…][\"'”’»)])\s+|(?<=[。！？])"
)
_HAS_WORD: Final = re.compile(r"[^\W_]")
_PROMISING: Final = re.compile(
    r"\b(?:promise|swear|swore|vow|oath|owe|agree|pledge|guarantee|deal|bargain|must"
    r"|(?:I|we|you) (?:will|shall)|(?:I|we|you)['’]ll)",
    re.IGNORECASE,
)
_NUMERAL: Final = re.compile(r"\d")
_NAMED: Final = re.compile(r"(?<=[^\W_][ ,])[^\W\d_][^\W_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sentence:
    """A sentence, who said it, the line that quotes it, and its words."""

    said: Said
    line: str
    text: str
    words: frozenset[str]


def extract(
    plan: CompactionPlan, *, npc_name: str, counter: TokenCounter, most_tokens: int | None = None
) -> str:
    """The summary of `plan` in at most `most_tokens`, by default as many as the plan wants.

    Lines stand in the order in which they were said; empty where no sentence fits.
    """
    most = plan.summary_tokens if most_tokens is None else most_tokens
    sentences = tuple(_sentences(said_in(plan, npc_name=npc_name)))
    scores = _scores(sentences)
    ranked = sorted(range(len(sentences)), key=lambda at: (-scores[at], at))
    chosen = _fitting(sentences, ranked, counter=counter, most_tokens=most)
    while chosen and counter.count(_text(sentences, chosen)) > most:
        chosen.pop()
    return _text(sentences, chosen)


def _text(sentences: Sequence[_Sentence], chosen: Iterable[int]) -> str:
    return "\n".join(sentences[at].line for at in sorted(chosen))


def _fitting(
    sentences: Sequence[_Sentence],
    ranked: Iterable[int],
    *,
    counter: TokenCounter,
    most_tokens: int,
) -> list[int]:
    """The best sentences whose lines fit together, best first; one too long is passed over."""
    chosen: list[int] = []
    left = most_tokens
    for at in ranked:
        tokens = counter.count(sentences[at].line + "\n")
        if tokens <= left:
            chosen.append(at)
            left -= tokens
    return chosen


def _sentences(said: Iterable[Said]) -> Iterator[_Sentence]:
    """Every sentence once, where it was said first."""
    known: set[str] = set()
    for one in said:
        for text in _parts(one):
            line = _line(one, text)
            if line not in known:
                known.add(line)
                yield _Sentence(said=one, line=line, text=text, words=_telling_words(text))


def _line(said: Said, text: str) -> str:
    """The line that quotes `text`; a quotation in an earlier summary stays what it is."""
    carried = " ".join(neutral(text).split())
    if said.is_summary and is_quote(carried):
        return carried
    return quote(said, _capped(text))


def _parts(said: Said) -> Iterator[str]:
    """The sentences of a text; the lines of an earlier summary stay whole."""
    parts = said.text.split("\n") if said.is_summary else _SENTENCE_BREAK.split(said.text)
    for part in parts:
        if _HAS_WORD.search(part):
            yield part.strip()


def _capped(text: str) -> str:
    if len(text) <= SENTENCE_CHARACTERS:
        return text
    start = text[: SENTENCE_CHARACTERS - 1]
    words, blank, _ = start.rpartition(" ")
    return f"{words if blank else start}…"


def _telling_words(text: str) -> frozenset[str]:
    """Words of three letters and more, and pairs of letters where a script has no blanks."""
    folded = text.casefold()
    long = [word for word in words_of(folded) if len(word) > 2]
    return frozenset(long) | {pair for pair in pairs_of(folded) if len(pair) == 2}


def _scores(sentences: Sequence[_Sentence]) -> list[int]:
    own = _word_points(sentences)
    scores = [points + _bonus(s) for points, s in zip(own, sentences, strict=True)]
    best: dict[str, int] = {}
    for at, sentence in enumerate(sentences):
        held = best.setdefault(sentence.said.speaker, at)
        if scores[at] > scores[held]:
            best[sentence.said.speaker] = at
    for at in best.values():
        scores[at] += _BEST_OF_SPEAKER
    for at in {0, len(sentences) - 1} if sentences else ():
        scores[at] += _FIRST_OR_LAST
    return scores


def _word_points(sentences: Sequence[_Sentence]) -> list[int]:
    """How many of the conversation's recurring words each sentence holds for its length.

    A word in more than a third of many sentences is grammar and says nothing.
    """
    counts = Counter(word for sentence in sentences for word in sentence.words)
    grammar = max(3, len(sentences) // 3)
    weights = {word: count for word, count in counts.items() if count <= grammar}
    raw = [
        100 * sum(weights.get(word, 0) for word in s.words) // (len(s.words) + 4) for s in sentences
    ]
    most = max(raw, default=0) or 1
    return [_WORDS_POINTS * points // most for points in raw]


def _bonus(sentence: _Sentence) -> int:
    text = sentence.text
    names = (word for word in _NAMED.findall(text) if word[0].isupper())
    earned = (
        (_PROMISE, _PROMISING.search(text)),
        (_NUMBER, _NUMERAL.search(text)),
        (_NAME, next(names, None)),
        (_QUESTION, text.rstrip("\"'”’») ").endswith(("?", "？"))),
        (_EARLIER_SUMMARY, sentence.said.is_summary),
    )
    return sum(points for points, has in earned if has)
