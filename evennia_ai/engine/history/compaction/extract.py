"""Extracts: the texts of a conversation for a summary, and a summary made without a model.

`said_texts` yields the transcript that a model is asked to summarise. An extract is the summary
without a model: it consists of sentences that were said. Each line quotes one sentence unchanged
and names its speaker. A sentence scores by the recurring words of the conversation in it, and by
what a later turn most likely needs: promises, numbers, names, questions, the first and the last
sentence. Equal inputs give the same bytes on every machine: scores are whole numbers, and among
equal scores the older sentence wins.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from evennia_ai.engine.history.compaction.planning import CompactionPlan
from evennia_ai.engine.history.role_markup import neutralize_markup
from evennia_ai.engine.prompt.messages import Message, without_time_line
from evennia_ai.engine.prompt.names import quote_name
from evennia_ai.engine.prompt.tokens import TokenCounter
from evennia_ai.engine.text.words import indexed_pairs, split_words

NAME_CHARACTERS: Final = 64

# Matches characters that are removed from texts: control characters except tab and line feed, lone
# surrogates, marks that reverse the writing direction, noncharacters, and the invisible copies of
# ASCII.
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
    """A text of a conversation that was said, or a tool call, with its speaker.

    `is_summary` is True for the text of an earlier summary.
    """

    speaker: str
    verb: Verb
    text: str
    is_summary: bool = False


def said_texts(plan: CompactionPlan, *, npc_name: str) -> Iterator[SaidText]:
    """Yield the texts of the messages to summarise, oldest first, each with its speaker.

    `npc_name` is the speaker of the model's messages. Facts of the moment, notes and frozen lore
    are left out, because each prompt contains them again. A summary would keep their facts after
    they have changed.
    """
    return quotable_messages(plan.summarised, npc_name=npc_name, summaries=plan.summaries)


def quotable_messages(
    messages: Sequence[Message], *, npc_name: str, summaries: Collection[str] = ()
) -> Iterator[SaidText]:
    """Yield the texts of messages that a summary may quote, each with its speaker.

    `summaries` are the record ids of earlier summaries.
    """
    tools = {call.id: call.name for message in messages for call in message.tool_calls}
    for message in messages:
        if not message.counted:
            continue
        is_summary = message.record in summaries
        who = "An earlier summary" if is_summary else _speaker(message, npc_name, tools)
        if message.content.strip():
            yield SaidText(who, "said", clean_text(without_time_line(message.content)), is_summary)
        for call in message.tool_calls:
            yield SaidText(who, "called", clean_text(f"{call.name} {call.arguments}"))


def quote_speaker(said: SaidText, text: str) -> str:
    """Return a line that quotes a speaker. Quotation marks in the text become single ones."""
    inner = " ".join(neutralize_markup(text).split()).replace('"', "'")
    return f'{said.speaker} {said.verb} "{inner}"'


def is_quote(line: str) -> bool:
    """True if a line of a summary has the form that `quote_speaker` returns."""
    return _QUOTE.fullmatch(line) is not None


def label_message(number: int, said: SaidText, text: str) -> str:
    """Return a text as numbered transcript lines. All lines except the first are indented."""
    doing = said.speaker if said.verb == "said" else f"{said.speaker} (calls)"
    return f"[{number}] {doing}: " + neutralize_markup(text).replace("\n", "\n    ")


def normalize_line_breaks(text: str) -> str:
    """Return the text with a line feed for every line break."""
    return _LINE_BREAK.sub("\n", text)


def clean_text(text: str) -> str:
    """Return a text without unreadable characters, with line feeds as line breaks."""
    return UNREADABLE.sub("", normalize_line_breaks(text)).replace("\ufffd", "").strip()


def clean_name(name: str) -> str:
    """Return a name on one line without characters that end a label or begin a tag.

    The result may be "".
    """
    return (
        _NOT_IN_NAME.sub(" ", neutralize_markup(clean_text(name))).strip()[:NAME_CHARACTERS].strip()
    )


def _speaker(message: Message, npc_name: str, tools: dict[str, str]) -> str:
    """Return the name of a message's speaker, as a summary writes it.

    A name that could be read as more than a name is put in quotation marks.
    """
    if message.role == "tool":
        tool = clean_name(message.name or tools.get(message.tool_call_id or "", ""))
        return f"The tool {tool}".strip()
    if message.role == "assistant":
        return clean_name(message.name or npc_name) or "The character"
    name = quote_name(clean_name(message.name or ""))
    return name or ("The game" if message.role == "system" else "Somebody")


SENTENCE_CHARACTERS: Final = 300
"""How many characters of a sentence are quoted at most."""

# The maximum points for the words of a sentence, and the points for its other properties
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
    """A sentence of a conversation with its speaker, the line that quotes it, and its words."""

    said: SaidText
    line: str
    text: str
    words: frozenset[str]


def extract_summary(
    plan: CompactionPlan, *, npc_name: str, counter: TokenCounter, most_tokens: int | None = None
) -> str:
    """Return a summary of quoted sentences, or "" if no sentence fits.

    Args:
        plan: The messages to summarise, and the wanted length.
        npc_name: The speaker of the model's messages.
        counter: Counts tokens.
        most_tokens: The maximum number of tokens; by default the wanted length.
    """
    most = plan.summary_tokens if most_tokens is None else most_tokens
    sentences = tuple(_sentences(said_texts(plan, npc_name=npc_name)))
    scores = _scores(sentences)
    ranked = sorted(range(len(sentences)), key=lambda at: (-scores[at], at))

    # Choose the best sentences that fit. A sentence that is too long is skipped.
    chosen: list[int] = []
    left = most
    for at in ranked:
        tokens = counter.count(sentences[at].line + "\n")
        if tokens <= left:
            chosen.append(at)
            left -= tokens
    # The joined lines may have more tokens than the sum of the single lines, so this counts them
    # together and drops the worst lines until the extract fits.
    while chosen and counter.count(_joined_lines(sentences, chosen)) > most:
        chosen.pop()
    return _joined_lines(sentences, chosen)


def _joined_lines(sentences: Sequence[_Sentence], chosen: Iterable[int]) -> str:
    return "\n".join(sentences[at].line for at in sorted(chosen))


def _sentences(said: Iterable[SaidText]) -> Iterator[_Sentence]:
    """Yield each different sentence of a conversation once, where it was first said.

    The lines of an earlier summary are not split, and its quotations are kept unchanged.
    """
    known: set[str] = set()
    for one in said:
        parts = one.text.split("\n") if one.is_summary else _SENTENCE_BREAK.split(one.text)
        for text in (part.strip() for part in parts if _HAS_WORD.search(part)):
            line = " ".join(neutralize_markup(text).split())
            if not one.is_summary or not is_quote(line):
                line = quote_speaker(one, _cut_sentence(text))
            if line not in known:
                known.add(line)
                yield _Sentence(said=one, line=line, text=text, words=_topic_words(text))


def _cut_sentence(text: str) -> str:
    if len(text) <= SENTENCE_CHARACTERS:
        return text
    start = text[: SENTENCE_CHARACTERS - 1]
    words, blank, _ = start.rpartition(" ")
    return f"{words if blank else start}…"


def _topic_words(text: str) -> frozenset[str]:
    """Return the words of a sentence that can identify a topic.

    These are words of three or more letters, and pairs of characters in scripts without blanks.
    """
    folded = text.casefold()
    long = [word for word in split_words(folded) if len(word) > 2]
    return frozenset(long) | {pair for pair in indexed_pairs(folded) if len(pair) == 2}


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
    """Return for each sentence the points for recurring words in it, relative to its length.

    A word in more than a third of the sentences is a function word of the language and gives no
    points.
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
