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
_WENT_ON: Final = re.compile(r"\s*,?\s*(?:and|then|but|und|et|y|и)\s+")
_NO_VERBS: Final = frozenset(
    """
    across afterwards always as besides does downstairs has hers his is its lies lives means news
    outdoors owns perhaps sometimes this thus towards upstairs us was yes yours
    """.split()  # noqa: SIM905 - a column of quoted words would be a page
)
# "he says" next to a quotation is dropped, because listeners read `Oren says, "..."` in any case.
_SAYING: Final = (
    r"says?|said|asks?|asked|answers?|answered|replies|replied|adds?|added|goes on|responds?|"
    r"responded|sagt|sagte|fragt|fragte|antwortet|antwortete|erwidert|dit|demande|répond|dice|dijo|"
    r"pregunta|responde|contesta|говорит|сказала?|спрашивает|отвечает|说道?|问道?|答道?|言う|言います|"
    r"言った|と言う|と言います|と言った|と答える"
)
_MUTTERING: Final = (
    r"mutters?|muttered|murmurs?|murmured|calls?|called|shouts?|shouted|"
    r"cries|cried|laughs?|laughed|sighs?|sighed|grunts?|grunted|growls?|growled|mumbles?|"
    r"mumbled|exclaims?|exclaimed|continues?|continued|begins?|began|explains?|explained|"
    r"murmelt|murmelte|ruft|rief|seufzt|lacht|murmure|soupire|s['’]exclame|murmura|exclama|suspira|"
    r"бормочет|кричит|вздыхает"
)
_WHISPERING: Final = (
    r"whispers?|whispered|flüstert|flüsterte|chuchote|susurra|шепчет|прошептала?|"
    r"低声说|小声说|ささやく"
)
# `, sagt Mira` after a quotation: in many languages the comma is outside the marks.
_INVERTED_TAG: Final = re.compile(rf"\s?,?\s(?:{_SAYING}|{_MUTTERING}|{_WHISPERING})\s|と言|と答")
_PRONOUNS: Final = ("he", "she", "they", "it", "er", "sie", "il", "elle", "él", "ella", "он", "она")
_TO: Final = r"to|zu|à|a|ins ohr von|对"
# What a person does that says "I nod" of itself, with the form in the third person.
_FIRST_PERSON_ACTS: Final = frozenset(
    """
    bow chuckle cross fold frown gesture glance glare grin grunt hand hold laugh lean lift look
    motion nod offer pause place point pour pull push put raise reach rise scratch set shake shrug
    sigh sit slide smile smirk snort stand stare step stir straighten tap tilt turn walk watch wave
    wink wipe
    """.split()  # noqa: SIM905 - a column of quoted words would be a page
)
_I_ACT: Final = re.compile(
    r"\s*I\s+(?:\w+ly\s+)?(?P<verb>[a-z]+)\b(?P<rest>[^.!?;:\n]{0,120})(?:[.,!?;:—…]|\Z)\s*"
)
_SHORT_ACT: Final = re.compile(
    r"I (?:nod|shrug|smile|sigh|bow|grin|frown|chuckle|wave|laugh|wink)(?: \w+ly)?"
    r"(?: (?:at|to) (?:you|him|her|them|[A-Z]\w+))?[.!…]*"
)
_OF_ME: Final = {"my": "their", "me": "them", "myself": "themselves", "mine": "theirs"}
_ME: Final = re.compile(r"\b(my|me|myself|mine)\b", re.IGNORECASE)
_PARTICIPLE: Final = re.compile(r"\s*,\s+(?P<doing>[a-z]+ing\b.*)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One thing that is said, whispered or done.

    `text` is the spoken words without quotation marks, or the action without its actor's name:
    "looks up.", "'s eyes narrow.", "— The lamp goes out.".
    """

    kind: Literal["say", "whisper", "pose"]
    text: str
    to: str = ""
    """Who hears a whisper, by the name in the reply."""

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
    whispered_to: str = ""
    """Who hears a whispered quotation, by the name in the reply."""


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
    spans = _read_tags(text, spans, names, narrated=narrated)
    acts: list[Act] = []
    for span in spans:
        if span.end > after:
            rest = replace(span, start=max(span.start, after))
            acts += _acts_of_span(text, rest, is_cut=rest != span, narrated=narrated, names=names)
    return _limit_acts(_merge_speech(acts, narrated=narrated))


def is_open(text: str, *, own_names: Iterable[str]) -> bool:
    """True if the rest of the reply may still show how this start is meant.

    That is so if it ends in a quotation, because "she whispers to Anna" may follow. It is also so
    if the start contains no quotation and seems to narrate its speaker.
    """
    spans = [span for span in _spans(text) if _has_words(text, span)]
    if any(span.kind == "quoted" for span in spans):
        return spans[-1].kind == "quoted"
    plain = "".join(text[span.start : span.end] for span in spans if span.kind == "plain")
    return _is_about(plain, tuple(own_names)) or _narrates_oneself(plain)


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
    ends = not after or after[0] in '\n"“„«»「*_('
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
    if _ENDED.search(inner) or _INVERTED_TAG.match(text, end):
        return True
    before, after = text[:start], text[end:].lstrip(" ")
    return _SENTENCE_ENDED.search(before) is not None and (not after or after[0] in "\n*_")


def _is_narrated(text: str, spans: Sequence[_Span], names: Sequence[str]) -> bool:
    """True if only the quotations are speech and the rest narrates what the speaker does."""
    quoted = [span for span in spans if span.kind == "quoted"]
    plain = [span for span in spans if span.kind == "plain" and _has_words(text, span)]
    is_alone = len(plain) == len(spans) == 1
    if quoted and plain and all(_narrates_oneself(text[one.start : one.end]) for one in plain):
        return True
    if any(_FIRST_PERSON.search(text, one.start, one.end) for one in plain):
        return is_alone and _SHORT_ACT.fullmatch(text.strip()) is not None
    if not quoted:
        return is_alone and _narrates_act(text, names)
    if not plain or quoted[0].start < plain[0].start:
        return True
    first = text[plain[0].start : plain[0].end]
    is_tag = _starts_with(first, names) and _leading_tag(names).search(first) is not None
    if is_tag or _is_about(first, names):
        return is_tag or _BOUNDARY.search(first) is not None
    return any(_tag_pattern(names).match(text, one.end) for one in quoted)


def _is_about(text: str, names: Sequence[str]) -> bool:
    """True if a text begins with "he" or "she", or contains one of these names."""
    return _SOMEBODY.match(text) is not None or any(
        re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE) for name in names
    )


def _starts_with(text: str, names: Sequence[str]) -> bool:
    return any(text.lstrip().casefold().startswith(name.casefold()) for name in names)


def _narrates_oneself(text: str) -> bool:
    """True if each sentence of a text is an act in the first person, such as "I nod slowly."."""
    at, text = 0, text.strip()
    while at < len(text):
        act = _I_ACT.match(text, at)
        if act is None or act["verb"] not in _FIRST_PERSON_ACTS:
            return False
        at = act.end()
    return bool(text)


def _of_oneself(text: str) -> str:
    """Return acts in the first person ("I nod and wave.") in the third: "nods and waves."."""

    def third(found: re.Match[str]) -> str:
        verb = found["verb"]
        if verb not in _FIRST_PERSON_ACTS and verb != "say":
            return found[0]
        ending = "es" if verb.endswith(("s", "sh", "ch", "x")) else "s"
        if verb.endswith("y") and verb[-2] not in "aeiou":
            verb, ending = verb[:-1], "ies"
        return f"{found['before']}{verb}{ending}"

    text = re.sub(r"(?P<before>\bI (?:\w+ly )?|\b(?:and|then) )(?P<verb>[a-z]+)\b", third, text)
    text = _ME.sub(lambda found: _OF_ME[found[0].casefold()], text)
    return re.sub(r"\A\s*I ", "", re.sub(r"(?<=[.!?…] )I ", "Then ", text))


def _read_tags(
    text: str, spans: Sequence[_Span], names: Sequence[str], *, narrated: bool
) -> list[_Span]:
    """Return the spans without the clauses that introduce quotations, such as `Oren says,`.

    A quotation next to `Oren whispers to Anna` becomes a whisper, and so does the speech after
    such an action.
    """
    worded = [n for n, span in enumerate(spans) if span.kind != "plain" or _has_words(text, span)]
    read = list(spans)
    for place, number in enumerate(worded):
        span = spans[number]
        after_it = worded[place + 1] if place + 1 < len(worded) else number
        before_it = worded[place - 1] if place else number
        is_before_quote = spans[after_it].kind == "quoted" and after_it != number
        is_after_quote = spans[before_it].kind == "quoted" and before_it != number
        stretch = text[span.start : span.end]
        if span.kind == "action" and after_it != number and spans[after_it].kind != "action":
            act = stretch.strip("*_ ")
            target = _whisper_target(
                _whisper_act(names).match(act) or _LEANS_AND_WHISPERS.search(act)
            )
            if target:
                read[after_it] = replace(spans[after_it], whispered_to=target)
                read[number] = replace(span, end=span.start)
        elif narrated and span.kind == "plain":
            is_within = is_after_quote and text[: spans[before_it].end - 1].rstrip().endswith(",")
            trailing = _tag_pattern(names).match(stretch) if is_after_quote else None
            leading = _leading_tag(names).search(stretch) if is_before_quote else None
            if leading is not None and not is_within:
                read[number] = replace(span, end=span.start + leading.start())
                trailing = None
            target = _whisper_target(trailing or leading)
            if leading is not None and not target:
                target = _whisper_target(_LEANS_AND_WHISPERS.search(stretch))
            if target and trailing is not None:
                read[before_it] = replace(spans[before_it], whispered_to=target)
            if target and is_before_quote:
                read[after_it] = replace(spans[after_it], whispered_to=target)
    return read


def _whisper_target(tag: re.Match[str] | None) -> str:
    return (tag["target"] or "").strip(" *_") if tag is not None else ""


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
            kind: Literal["say", "whisper"] = "whisper" if span.whispered_to else "say"
            yield Act(kind=kind, text=inner, to=span.whispered_to, starts_line=starts_line)
    elif _WORD.search(raw):
        follows_quote = not is_cut and span.start > 0 and text[span.start - 1] in '"”“»«」』'
        tag = _tag_pattern(names).match(raw) if follows_quote else None
        if tag is not None:  # drop "he says" after a quotation
            raw = _text_after_tag(tag, raw[tag.end() :])
        if _narrates_oneself(raw):
            raw = _of_oneself(raw)
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
    if not (plain or telling) or not rest.strip(" .,!?;:—–\n"):
        return rest.lstrip(".,!?;:—– ")
    if went_on := _WENT_ON.match(rest):
        return rest[went_on.end() :]
    if doing := _PARTICIPLE.match(rest):
        return f"is {doing['doing']}"
    if rest[:1].isspace():
        return f"{plain or telling}{rest}"
    if telling and not rest.startswith("."):
        return f"{telling}{rest}"
    return rest if rest.startswith(",") else rest.lstrip(".!?;:—– ")


def _pose_acts(raw: str, names: Sequence[str], *, starts_line: bool) -> Iterator[Act]:
    """Yield an action as one act, or nothing if the text has no words."""
    text = " ".join(raw.split())
    if _WORD.search(text):
        behind = action_after_name(text, own_names=names)
        told = "" if behind[0].isalnum() else text.lstrip(", ")
        yield Act(kind="pose", text=behind, told=told, starts_line=starts_line)


def action_after_name(text: str, *, own_names: Iterable[str]) -> str:
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


def _who(names: Sequence[str]) -> str:
    return "|".join((*_PRONOUNS, *map(re.escape, names)))


_TARGET: Final = rf"\s*,?\s*(?:{_TO})\s+(?P<target>[^\s,.:;!?\"“„«][^,.:;!?\"“„«\n]{{0,60}})"


_SMALL: Final = "a-zа-яäöüéèáàíóú"
# "leans close to Anna and whispers". A thing has a small letter: "leans to the rail and whispers".
_LEANS_AND_WHISPERS: Final = re.compile(
    rf"(?<!\w)(?:to|towards?|zu|à|a)\s+(?P<target>[^\W\d_{_SMALL}][\w'’-]*(?: [^\W\d_{_SMALL}]"
    rf"[\w'’-]*)?)\s*,?\s*(?:and|then|und|et|y|и)\s+(?i:{_WHISPERING})[\s,.:：—–]*\Z"
)


@lru_cache(maxsize=256)
def _tag_pattern(names: Sequence[str]) -> re.Pattern[str]:
    """Return a pattern for `he says`, `says Oren` and similar clauses after a quotation."""
    who, telling = _who(names), rf"{_MUTTERING}|{_WHISPERING}"
    return re.compile(
        rf"[\s—–,]*(?:(?:{who})\s+(?:{_WHISPERING}){_TARGET}"
        rf"|(?:(?:{who})\s*(?:は|が)?\s*(?:(?P<saying>{_SAYING})|(?P<muttering>{telling}))"
        rf"|と(?:{_SAYING}|{telling})"
        rf"|(?:(?P<said>{_SAYING})|(?P<muttered>{telling}))\s+(?:{who}))(?!\w))",
        re.IGNORECASE,
    )


@lru_cache(maxsize=256)
def _leading_tag(names: Sequence[str]) -> re.Pattern[str]:
    """Return a pattern for `Oren says,` and similar clauses directly before a quotation."""
    who = _who((*names, "I"))
    telling = rf"{_SAYING}|{_MUTTERING}"
    return re.compile(
        rf"\A\s*(?:{who})(?:は|が)\Z|(?:(?:\A|(?<=[\s.,;!?]))(?:{who})(?:は|が)?|(?:,\s*)?\b(?:and|then|und|et|y|и))\s*"
        rf"(?:(?:{_WHISPERING}){_TARGET}?|(?:{telling}|{_WHISPERING})(?:\s[^\"“„«,.:;!?\n]{{1,40}})?)"
        r"\s*[,:：，—–]?\s*\Z",
        re.IGNORECASE,
    )


@lru_cache(maxsize=256)
def _whisper_act(names: Sequence[str]) -> re.Pattern[str]:
    """Return a pattern for an action such as `leans in and whispers to Anna`."""
    return re.compile(rf"(?:.{{0,60}}\b)?(?:{_WHISPERING}){_TARGET}[.:,]?\Z", re.IGNORECASE)


def _merge_speech(acts: Sequence[Act], *, narrated: bool) -> list[Act]:
    """Join consecutive acts of speech into one."""
    merged: list[Act] = []
    for act in acts:
        is_same = merged and (merged[-1].kind, merged[-1].to) == (act.kind, act.to)
        if is_same and act.kind != "pose":
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
        act if act.kind == "pose" else replace(act, text=_with_full_stop(act.text))
        for act in merged
    ]


def _with_full_stop(said: str) -> str:
    """Return speech with a full stop in place of a comma at its end."""
    return f"{said[:-1]}." if said.endswith(",") else said


def _limit_acts(acts: Sequence[Act]) -> tuple[Act, ...]:
    if len(acts) <= MOST_ACTS:
        return tuple(acts)
    first, more = acts[: MOST_ACTS - 1], [a for a in acts[MOST_ACTS - 1 :] if a.kind != "whisper"]
    if not more:
        return tuple(first)
    left = " ".join(f'"{act.text}"' if act.kind == "say" else act.text for act in more)
    return (*first, Act(kind="pose", text=f"— {left}", told=left))
