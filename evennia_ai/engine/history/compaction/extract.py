"""What of a conversation is summarised, as a text for a model, and the summary without a model.

The transcript is what a model is asked to summarise. An extract is made of sentences that were
said. Nothing is worded anew: each line quotes one sentence and names who said it. Sentences are
chosen by how many of the conversation's own words they hold, and by what a later turn is most
likely to need: promises, numbers, names, open questions, the first and the last word. The same plan
gives the same bytes on every machine: scores are whole numbers, ties fall to the older sentence.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from evennia_ai.engine.history.compaction.planning import CompactionPlan
from evennia_ai.engine.history.role_markup import neutral
from evennia_ai.engine.prompt.messages import Message
from evennia_ai.engine.prompt.names import quote_name
from evennia_ai.engine.prompt.time_line import without_time_line
from evennia_ai.engine.prompt.tokens import TokenCounter
from evennia_ai.engine.text.words import pairs_of, words_of

NAME_CHARACTERS: Final = 64

# Controls but for tab and line feed, halves of pairs, what turns the direction of writing round,
# noncharacters, and the invisible copies of ASCII.
UNREADABLE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069\ufffe\uffff"
    "\U000e0000-\U000e007f]"
)
_LINE_BREAK: Final = re.compile("\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_NOT_IN_NAME: Final = re.compile(r"[\s:：\"\[\]<>|#*{}]+")
_SPEAKER: Final = r"(?:\"[^\n\":]{1,80}\"(?: \([^\n\"]{1,20}\))?|[^\n\":]{1,80})"
_QUOTE: Final = re.compile(rf"{_SPEAKER} (?:said|called) \"[^\n\"]*\"")

Verb = Literal["said", "called"]


class SaidText(NamedTuple):
    """One thing said or called; `is_summary` marks the text of an earlier summary."""

    speaker: str
    verb: Verb
    text: str
    is_summary: bool = False


def said_in(plan: CompactionPlan, *, npc_name: str) -> Iterator[SaidText]:
    """What the summarised messages say, oldest first; `npc_name` says what the model said.

    Bookkeeping (context blocks, notes, frozen lore) is not said by anybody and is left out: a
    prompt makes it anew, and what it tells may not outlive it.
    """
    return said_of(plan.summarised, npc_name=npc_name, summaries=plan.summaries)


def said_of(
    messages: Sequence[Message], *, npc_name: str, summaries: Collection[str] = ()
) -> Iterator[SaidText]:
    """The same of any messages, of which `summaries` are records of earlier summaries."""
    tools = {call.id: call.name for message in messages for call in message.tool_calls}
    for message in messages:
        if not message.counted:
            continue
        is_summary = message.record in summaries
        who = "An earlier summary" if is_summary else _speaker(message, npc_name, tools)
        if message.content.strip():
            yield SaidText(who, "said", readable(without_time_line(message.content)), is_summary)
        for call in message.tool_calls:
            yield SaidText(who, "called", readable(f"{call.name} {call.arguments}"))


def quote(said: SaidText, text: str) -> str:
    """One line in which the speaker says `text`; quotes inside it become single ones."""
    inner = " ".join(neutral(text).split()).replace('"', "'")
    return f'{said.speaker} {said.verb} "{inner}"'


def is_quote(line: str) -> bool:
    """Whether the line has the form that `quote` gives."""
    return _QUOTE.fullmatch(line) is not None


def labelled(number: int, said: SaidText, text: str) -> str:
    """`text` as lines of a transcript; only the first one is not indented."""
    doing = said.speaker if said.verb == "said" else f"{said.speaker} (calls)"
    return f"[{number}] {doing}: " + neutral(text).replace("\n", "\n    ")


def one_kind_of_line_break(text: str) -> str:
    """`text` with line feeds for every break of a line."""
    return _LINE_BREAK.sub("\n", text)


def readable(text: str) -> str:
    """`text` without what nobody can read, with one kind of line break."""
    return UNREADABLE.sub("", one_kind_of_line_break(text)).replace("\ufffd", "").strip()


def a_name(name: str) -> str:
    """`name` on one line, without marks that end a label or open a frame; may be empty."""
    return _NOT_IN_NAME.sub(" ", neutral(readable(name))).strip()[:NAME_CHARACTERS].strip()


def _speaker(message: Message, npc_name: str, tools: dict[str, str]) -> str:
    """Who says it; a name that could pass for more than a name is in quotes."""
    if message.role == "tool":
        tool = a_name(message.name or tools.get(message.tool_call_id or "", ""))
        return f"The tool {tool}".strip()
    if message.role == "assistant":
        return a_name(message.name or npc_name) or "The character"
    name = quote_name(a_name(message.name or ""))
    return name or ("The game" if message.role == "system" else "Somebody")


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

    said: SaidText
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


def _sentences(said: Iterable[SaidText]) -> Iterator[_Sentence]:
    """Every sentence once, where it was said first."""
    known: set[str] = set()
    for one in said:
        for text in _parts(one):
            line = _line(one, text)
            if line not in known:
                known.add(line)
                yield _Sentence(said=one, line=line, text=text, words=_telling_words(text))


def _line(said: SaidText, text: str) -> str:
    """The line that quotes `text`; a quotation in an earlier summary stays what it is."""
    carried = " ".join(neutral(text).split())
    if said.is_summary and is_quote(carried):
        return carried
    return quote(said, _capped(text))


def _parts(said: SaidText) -> Iterator[str]:
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
