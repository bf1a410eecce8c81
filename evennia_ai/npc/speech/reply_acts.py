"""Split a reply into acts: what its speaker says, and what the speaker does.

Models and authors of cards mix both in one text: `*She smiles.* "Good evening."`, `Oren looks up.
"Evening," he says.`, `*nods* Come in.` The result is a list of acts in order. If the text is
ambiguous, it counts as speech. The functions are pure. Their results are still untrusted; `output`
escapes them.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from typing import Final, Literal

JOINED: Final = ("'", "’", ",")
"""The signs that follow the name without a blank when an action starts with them."""

MOST_ACTS: Final = 8
"""The most acts of one reply. The last one holds everything that is left."""

_ACTION: Final = (
    r"(?<![\w*])\*(?=[^\s*])[^*\n]*[^\s*]\*(?![\w*])|(?<!\w)_(?=[^\s_])[^_\n]*[^\s_]_(?!\w)"
)
_QUOTED: Final = (
    r"(?<!\w)\"[^\"]*\"(?!\w)|“[^“”]*”|„[^„“”]*[“”]|«[^«»]*»|»[^«»]*«|「[^「」]*」|『[^『』]*』"
)
_MARKED: Final = re.compile(f"(?P<action>{_ACTION})|(?P<quoted>{_QUOTED})")
_QUOTED_ALONE: Final = re.compile(f"(?P<quoted>{_QUOTED})")
_WORD: Final = re.compile(r"\w")
_ENDED: Final = re.compile(r"[.,!?…—–:;。！？、-][*_'’)]*\s*$")
_SENTENCE_ENDED: Final = re.compile(r"(?:[.!?…:—–。！？\"”»」』*_]|^)\s*$|\n[ ]*$")
_BOUNDARY: Final = re.compile(r"(?:[.,!?…:;—–。！？]|^)\s*$|\n[ ]*$")
_FIRST_PERSON: Final = re.compile(r"\bI\b|\b(?i:me|my|mine|myself|we|us|ours?)\b")
_SOMEBODY: Final = re.compile(r"\s*(?:he|she|his|her)\b", re.IGNORECASE)
_THIRD_PERSON: Final = re.compile(r"\s*(?:he|she|they|it|his|her|their|its)\b", re.IGNORECASE)
_DOER: Final = re.compile(r"(?:he|she|it)\s+", re.IGNORECASE)
_OWNER: Final = re.compile(r"(?:his|her|its|their)\s+(?=\w)", re.IGNORECASE)
_VERB: Final = re.compile(r"[A-Z][a-z]*(?<!s)s\b|[A-Z][a-z]+ly\s+[a-z]*(?<!s)s\b")
_WENT_ON: Final = re.compile(r"\s*,?\s*(?:and|then|but)\s+")
_NO_VERBS: Final = frozenset(
    """
    across afterwards always as besides does downstairs has hers his is its lies lives means news
    outdoors owns perhaps sometimes this thus towards upstairs us was yes yours
    """.split()  # noqa: SIM905 - a column of quoted words would be a page
)
# "he says" after a quotation is dropped, because listeners read `Oren says, "..."` in any case.
_SAYING: Final = r"says?|said|asks?|asked|answers?|answered|replies|replied|adds?|added|goes on"
_MUTTERING: Final = (
    r"mutters?|muttered|murmurs?|murmured|whispers?|whispered|calls?|called|shouts?|shouted|"
    r"cries|cried|laughs?|laughed|sighs?|sighed|grunts?|grunted|growls?|growled|mumbles?|"
    r"mumbled|exclaims?|exclaimed|continues?|continued|begins?|began|explains?|explained"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One thing that is said or done.

    `text` is the spoken words without quotation marks, or the action without its actor's name:
    "looks up.", "'s eyes narrow.", "— The lamp goes out.".
    """

    kind: Literal["say", "pose"]
    text: str
    told: str = ""
    """The action as a whole sentence, for readers who do not see the name before it. "" if `text`
    will do.
    """

    starts_line: bool = False
    """True if the act starts a new line of the reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """A part of the reply: an action between marks, a quotation, or plain text between those.

    `said` is plain text that is known to be speech.
    """

    kind: Literal["action", "quoted", "said", "plain"]
    start: int
    end: int


def acts_of(text: str, *, own_names: Iterable[str], after: int = 0) -> tuple[Act, ...]:
    """Split `text` into the acts of a speaker with these names.

    The first `after` characters were said before. They only help to interpret the rest.
    """
    names = tuple(dict.fromkeys(name for name in own_names if name))
    spans = list(_spans(text))
    narrated = _is_narrated(text, spans, names)
    if not narrated:
        spans = _join_speech(text, spans)
    elif any(span.kind == "action" for span in spans):
        spans = [_mark_speech(text, span, names) for span in spans]
    acts: list[Act] = []
    for span in spans:
        if span.end > after:
            rest = replace(span, start=max(span.start, after))
            acts += _acts_of_span(text, rest, is_cut=rest != span, narrated=narrated, names=names)
    return _limit_acts(_merge_speech(acts, narrated=narrated))


def is_open(text: str, *, own_names: Iterable[str]) -> bool:
    """True if the rest of the reply may still show that this start narrates its speaker.

    That is so if the start contains no quotation, and names the speaker or begins with "he" or
    "she".
    """
    spans = list(_spans(text))
    if any(span.kind == "quoted" for span in spans):
        return False
    plain = "".join(text[span.start : span.end] for span in spans if span.kind == "plain")
    return _is_about(plain, tuple(own_names))


def _spans(text: str) -> Iterator[_Span]:
    """Yield the spans of a text in order, without gaps."""
    at = 0
    for found in _MARKED.finditer(text):
        start, end = found.span()
        is_action = found.lastgroup == "action"
        if not (_is_action(text, start, end) if is_action else _is_dialogue(text, start, end)):
            continue
        if start > at:
            yield _Span(kind="plain", start=at, end=start)
        yield _Span(kind="action" if is_action else "quoted", start=start, end=end)
        at = end
    if at < len(text):
        yield _Span(kind="plain", start=at, end=len(text))


def _is_action(text: str, start: int, end: int) -> bool:
    """True if the words between marks such as * are an action, not just stressed words."""
    inner, after = text[start + 1 : end - 1], text[end:].lstrip(" ")
    is_told = _seems_a_verb(inner) or _THIRD_PERSON.match(inner) is not None
    ends = not after or after[0] in '\n"“„«»「*_'
    if _SENTENCE_ENDED.search(text[:start]) is None:
        return is_told and (ends or text[:start].rstrip().endswith(","))
    return ends or is_told or after[0].isupper()


def _seems_a_verb(words: str) -> bool:
    first, *_ = (*re.findall(r"[^\W\d_]+", words), "")
    return first.endswith("s") and not first.endswith("ss") and first.lower() not in _NO_VERBS


def _is_dialogue(text: str, start: int, end: int) -> bool:
    """True if a quotation is speech, not just a term in quotation marks."""
    inner = text[start + 1 : end - 1]
    if not inner.strip():
        return False
    if _ENDED.search(inner):
        return True
    before, after = text[:start], text[end:].lstrip(" ")
    return _SENTENCE_ENDED.search(before) is not None and (not after or after[0] in "\n*_")


def _is_narrated(text: str, spans: Sequence[_Span], names: Sequence[str]) -> bool:
    """True if only the quotations are speech and the rest narrates what the speaker does."""
    quoted = [span for span in spans if span.kind == "quoted"]
    plain = [span for span in spans if span.kind == "plain" and _has_words(text, span)]
    if any(_FIRST_PERSON.search(text, one.start, one.end) for one in plain):
        return False
    if not quoted:
        return len(plain) == len(spans) == 1 and _narrates_act(text, names)
    if not plain or quoted[0].start < plain[0].start:
        return True
    first = text[plain[0].start : plain[0].end]
    if _is_about(first, names):
        return _BOUNDARY.search(first) is not None
    return any(_tag_pattern(names).match(text, one.end) for one in quoted)


def _is_about(text: str, names: Sequence[str]) -> bool:
    """True if a text begins with "he" or "she", or contains one of these names."""
    return _SOMEBODY.match(text) is not None or any(
        re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE) for name in names
    )


def _narrates_act(text: str, names: Sequence[str]) -> bool:
    """True if a text begins with one of these names and a verb, such as "Oren nods"."""
    for name in names:
        rest = text[len(name) :]
        if text.startswith(name) and rest.startswith(" ") and rest[1:2].islower():
            return _seems_a_verb(rest)
    return False


def _has_words(text: str, span: _Span) -> bool:
    return _WORD.search(text, span.start, span.end) is not None


def _join_speech(text: str, spans: Sequence[_Span]) -> list[_Span]:
    """Join the spans between two actions, for a reply in which everything else is speech.

    If there are only quotations between the actions, they stay separate and lose their quotation
    marks. Otherwise the joined span keeps its quotations.
    """
    joined: list[_Span] = []
    for is_action, run in groupby(spans, key=lambda span: span.kind == "action"):
        stretch = list(run)
        if is_action or all(one.kind == "quoted" or not _has_words(text, one) for one in stretch):
            joined += stretch
        else:
            joined.append(_Span(kind="plain", start=stretch[0].start, end=stretch[-1].end))
    return joined


def _mark_speech(text: str, span: _Span, names: Sequence[str]) -> _Span:
    """Return a plain span marked as speech, unless it narrates the speaker."""
    if span.kind != "plain" or not _has_words(text, span):
        return span
    stretch = text[span.start : span.end]
    is_told = _is_about(stretch, names) or _tag_pattern(names).match(stretch) is not None
    return span if is_told else replace(span, kind="said")


def _acts_of_span(
    text: str, span: _Span, *, is_cut: bool, narrated: bool, names: Sequence[str]
) -> Iterator[Act]:
    """Yield the acts of a span, or of the part of it that was not said yet."""
    raw = text[span.start : span.end]
    starts_line = "\n" in raw[: len(raw) - len(raw.lstrip())] or text[: span.start].endswith("\n")
    if span.kind == "action":
        yield from _split_action(raw.strip("*_ \n"), names, starts_line=starts_line)
    elif span.kind in ("quoted", "said") or not narrated:
        inner = raw.strip()
        if span.kind == "quoted":
            inner = (inner if is_cut else inner[1:])[:-1].strip()
        if inner:
            yield Act(kind="say", text=inner, starts_line=starts_line)
    elif _WORD.search(raw):
        follows_quote = not is_cut and span.start > 0 and text[span.start - 1] in '"”“»«」』'
        tag = _tag_pattern(names).match(raw) if follows_quote else None
        if tag is not None:  # drop "he says" after a quotation
            raw = _text_after_tag(tag, raw[tag.end() :])
        yield from _pose_acts(raw, names, starts_line=starts_line)


def _split_action(inner: str, names: Sequence[str], *, starts_line: bool) -> Iterator[Act]:
    """Yield the acts of an action between marks. Quotations in it are speech."""
    at = 0
    for quoted in _QUOTED_ALONE.finditer(inner):
        if _is_dialogue(inner, *quoted.span()):
            yield from _pose_acts(inner[at : quoted.start()], names, starts_line=starts_line)
            yield Act(kind="say", text=quoted[0][1:-1].strip())
            at, starts_line = quoted.end(), False
    yield from _pose_acts(inner[at:], names, starts_line=starts_line)


def _text_after_tag(tag: re.Match[str], rest: str) -> str:
    """Return the text after `he says`; keep that clause if it tells more, as "he mutters" does."""
    plain, telling = tag["saying"] or tag["said"], tag["muttering"] or tag["muttered"]
    if telling or rest[:1].isspace():
        return f"{plain or telling}{rest}"
    went_on = _WENT_ON.match(rest)
    if went_on is not None:
        return rest[went_on.end() :]
    return rest if rest.startswith(",") else rest.lstrip(".!?;:—– ")


def _pose_acts(raw: str, names: Sequence[str], *, starts_line: bool) -> Iterator[Act]:
    """Yield an action as one act, or nothing if the text has no words."""
    text = " ".join(raw.split())
    if _WORD.search(text):
        behind = behind_name(text, own_names=names)
        told = "" if behind[0].isalnum() else text.lstrip(", ")
        yield Act(kind="pose", text=behind, told=told, starts_line=starts_line)


def behind_name(text: str, *, own_names: Iterable[str]) -> str:
    """Return an action in the form that follows its actor's name, without the name."""
    for name in sorted(own_names, key=len, reverse=True):
        rest = text[len(name) :]
        if text.casefold().startswith(name.casefold()) and not rest[:1].isalnum():
            return rest.lstrip(" ") if _WORD.search(rest) else text
    if doer := _DOER.match(text):
        return text[doer.end() :]
    if owner := _OWNER.match(text):
        return f"'s {text[owner.end() :]}"
    if text[0].islower() or text[0] in JOINED:
        return text
    if _VERB.match(text) and text.split(maxsplit=1)[0].casefold() not in _NO_VERBS:
        return text[0].lower() + text[1:]
    return f"— {text}"


@lru_cache(maxsize=256)
def _tag_pattern(names: Sequence[str]) -> re.Pattern[str]:
    """Return a pattern for `he says`, `says Oren` and similar clauses after a quotation."""
    who = "|".join(["he", "she", "they", "it", *map(re.escape, names)])
    return re.compile(
        rf"\s*(?:(?:{who})\s+(?:(?P<saying>{_SAYING})|(?P<muttering>{_MUTTERING}))"
        rf"|(?:(?P<said>{_SAYING})|(?P<muttered>{_MUTTERING}))\s+(?:{who}))(?!\w)",
        re.IGNORECASE,
    )


def _merge_speech(acts: Sequence[Act], *, narrated: bool) -> list[Act]:
    """Join consecutive acts of speech into one."""
    merged: list[Act] = []
    for act in acts:
        if merged and merged[-1].kind == act.kind == "say":
            before = merged[-1]
            said = (
                _with_full_stop(before.text) if narrated and act.text[:1].isupper() else before.text
            )
            between = "\n" if act.starts_line else " "
            merged[-1] = replace(before, text=f"{said}{between}{act.text}")
        else:
            merged.append(act)
    if not narrated:
        return merged
    return [
        replace(act, text=_with_full_stop(act.text)) if act.kind == "say" else act for act in merged
    ]


def _with_full_stop(said: str) -> str:
    """Return speech with a full stop in place of a comma at its end."""
    return f"{said[:-1]}." if said.endswith(",") else said


def _limit_acts(acts: Sequence[Act]) -> tuple[Act, ...]:
    if len(acts) <= MOST_ACTS:
        return tuple(acts)
    first, more = acts[: MOST_ACTS - 1], acts[MOST_ACTS - 1 :]
    left = " ".join(f'"{act.text}"' if act.kind == "say" else act.text for act in more)
    return (*first, Act(kind="pose", text=f"— {left}", told=left))
