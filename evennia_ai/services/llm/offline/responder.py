"""Answer without a language model: with small talk and quotations of the character's own texts.

It lets people try a game that has no model. It says only words of the card and the lore, or polite
phrases, and it reports itself as offline. Its answer depends only on the request, so a replay gives
the same answer.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Final

from twisted.internet.defer import Deferred, succeed

from evennia_ai.engine.text.phrases import translatable
from evennia_ai.services.llm.chat import ChatReply, ChatRequest, Listener
from evennia_ai.services.llm.offline.asked import IGNORANT, LINES, Asked, Kind, classify_line
from evennia_ai.services.llm.offline.first_person import first_person, pronoun_of
from evennia_ai.services.llm.offline.quoting import (
    ANSWER_CHARACTERS,
    Sentence,
    Subject,
    plain_sentences,
    quote_answer,
    sayable_sentences,
    words_of,
)

SHRUG: Final = translatable("*shrugs*")
"""Said instead of the fallback line every second time. A gesture needs no language."""
_ALIKE: Final = 0.6
"""From this share of common words on, two questions count as the same. From 0 to 1."""

_UNKNOWN: Final = re.compile(r"\(.*\bnot know\b.*\)", re.IGNORECASE)
"""A player's line in a card's examples whose answers are the character's words for not knowing."""

_QUOTED: Final = re.compile(r"[\"“„«]([^\"“”„«»]+)[\"”“»]")
_AGE: Final = re.compile(
    r"\b([\w-]+) years (?:old|of age)\b|\b(?:is|am) ((?:\w+ty|\w+teen)(?:-\w+)?|\d{1,4})\b", re.I
)


class OfflineResponder:
    """A `ChatModel` that answers at once, from the request only.

    To a line in an unknown language it says `fallback`, and every second time it shrugs.
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
        """Return the complete answer at once. The listener is not called."""
        found = answer_offline(request)
        text = found or self._fallback_or_shrug(request)
        return succeed(ChatReply(text=text, model=self._name, offline=True, is_fallback=not found))

    def close(self) -> None:
        """Do nothing, because the responder has no connections."""

    def _fallback_or_shrug(self, request: ChatRequest) -> str:
        """Return the fallback line, or a shrug every second time.

        The request does not show earlier fallback lines. So the player's lines since the NPC's last
        reply are counted instead.
        """
        names = tuple(f"{name}:" for name in (request.asker, *request.company))
        since = takewhile(lambda one: one.role != "assistant", reversed(request.messages))
        lines = [line for one in since for line in one.content.splitlines()]
        said = sum(line.startswith(names) for line in lines)
        return SHRUG if said and said % 2 == 0 else self._fallback


def answer_offline(request: ChatRequest) -> str:
    """Return the answer to the question of a request, or "" if it is in an unknown language."""
    question = classify_line(request.question, of=request.speaker)
    own = _ANSWERS.get(question.kind)
    found = own(question, request) if own else ""
    found = found or _example(question, request) or quote_answer(question, request)
    usual = LINES.get(question.kind, ())
    own_lines = _own_ignorance(request) if question.kind in IGNORANT else ()
    return found or _least_recent_line(own_lines or usual, request)


def _own_words(request: ChatRequest) -> str:
    return "\n".join(m.content for m in request.messages if m.role == "assistant")


def _least_recent_line(lines: Sequence[str], request: ChatRequest) -> str:
    """Return the line that the NPC has not said for the longest time, or "" if `lines` is empty."""
    said = _own_words(request)
    return min(lines, key=said.rfind, default="")


def _first_unsaid(texts: Iterator[str], request: ChatRequest) -> str:
    said = _own_words(request)
    return next((text for text in texts if text and text not in said), "")


# Answers to small talk and simple questions


def _greeting(question: Asked, request: ChatRequest) -> str:
    """Return a part of the card's greeting that was not said yet.

    If there is none, return the greeting of the player's line.
    """
    spoken = (_quoted_speech(p.text) for p in request.passages if p.kind == "greeting")
    return _first_unsaid(spoken, request) or _return_greeting(question, request)


def _quoted_speech(text: str) -> str:
    """Return the speech in a greeting, or "" if there is none or it is too long.

    In `"Later," he says. "It turns."` the comma belongs to the narration, so it becomes a full
    stop.
    """
    said = ""
    for quote in (*map(str.strip, _QUOTED.findall(text)), ""):
        if said.endswith(",") and not quote[:1].islower():
            said = said[:-1] + "."
        said = f"{said} {quote}".strip()
    return said if len(said) <= ANSWER_CHARACTERS else ""


def _return_greeting(question: Asked, request: ChatRequest) -> str:
    """Return the player's own greeting or farewell, with the player's name."""
    known = ("good morning", "good afternoon", "good evening", "good day", "good night")
    plain = question.plain
    is_farewell = question.kind is Kind.FAREWELL
    usual = "Farewell" if is_farewell else "Hello"
    said = next((one.capitalize() for one in known if one in plain), usual)
    return f"{said}, {request.asker}." if request.asker else f"{said}."


def _farewell(question: Asked, request: ChatRequest) -> str:
    """Return the farewell that the lore describes as usual here, or else the player's own."""
    customs = re.compile(r"\b(?:we|I|people|everybody) (?:here )?says?\b", re.IGNORECASE)
    bye = re.compile(r"\b(?:goodbye|good night|farewell)\b", re.IGNORECASE)
    told = (
        s.text for s in sayable_sentences(request) if customs.search(s.text) and bye.search(s.text)
    )
    return _first_unsaid(told, request) or _return_greeting(question, request)


def _name(question: Asked, request: ChatRequest) -> str:
    return f"I am {_whole_name(request)}." if request.speaker else ""


def _whole_name(request: ChatRequest) -> str:
    """Return the NPC's full name, if the description begins with it."""
    name = request.speaker
    for told in _description(request):
        found = re.match(rf"{re.escape(name)}(?: (?:of |the |von |van |de )?[A-Z][\w'’-]+)*", told)
        return found[0] if found else name
    return name


def _answer_who(question: Asked, request: ChatRequest) -> str:
    """Answer "who are you?": the name and the trade, in one sentence if possible."""
    name, trade = _name(question, request), _answer_trade(question, request)
    role = re.match(r"I am ((?:the|an?) .+)", trade)
    return f"{name[:-1]}, {role[1]}" if role and name else f"{name} {trade}".strip()


def _answer_trade(question: Asked, request: ChatRequest) -> str:
    """Answer "what do you do?" with the start of the description, or with constant lore."""
    role = _role(request)
    constant = (s for s in sayable_sentences(request) if s.passage.constant)
    does = next((s.text for s in constant if re.match(r"I (?!am\b)[a-z]+\b", s.text)), "")
    beginning = role.split()[:3]
    if role and (not does or does.split()[:3] == beginning):
        return role
    return f"{role} {does}".strip() if len(role) + len(does) < ANSWER_CHARACTERS else does


def _role(request: ChatRequest) -> str:
    """Return the first sentence of the description in the first person, up to its first comma."""
    pronoun = pronoun_of(" ".join(_description(request)))
    for told in _description(request):
        said = first_person(told, name=request.speaker, pronoun=pronoun)
        if said is None or said == told:
            return ""
        return f"{said.partition(',')[0].rstrip('.')}." if said.startswith("I am") else said
    return ""


def _description(request: ChatRequest) -> Iterator[str]:
    for passage in request.passages:
        if passage.kind == "description":
            yield from plain_sentences(passage.text, request.speaker)


def _age(question: Asked, request: ChatRequest) -> str:
    for told in _description(request):
        if found := _AGE.search(told):
            return f"I am {found[1] or found[2]}."
    return ""


def _asker(question: Asked, request: ChatRequest) -> str:
    return f"You are {request.asker}, as far as I know." if request.asker else ""


def _answer_place(question: Asked, request: ChatRequest) -> str:
    """Answer "where are we?": the name of the place, and a sentence of lore that defines it."""
    if not request.place:
        return ""
    here = re.sub(r"^(The|A|An)\b", lambda one: one[0].lower(), request.place)
    told = [s.text for s in sayable_sentences(request) if s.passage.kind == "lore" and _defines(s)]
    own = [text for text in told if text.casefold().startswith(request.place.casefold())]
    more = own or [s for s in told if _is_of_somewhere(s)]
    return f"This is {here}. {more[0]}" if more else f"This is {here}."


def _defines(sentence: Sentence) -> bool:
    return bool(re.match(r"(?:The )?[A-Z]\w+(?: [A-Z]\w+)? is (?:an?|the) ", sentence.text))


def _is_of_somewhere(text: str) -> bool:
    places = "village|town|city|island|land|kingdom|world|country|realm|harbour|castle|station"
    return bool(re.search(rf" is (?:an?|the) (?:[\w-]+ ){{0,3}}(?:{places})\b", text))


def _company(question: Asked, request: ChatRequest) -> str:
    if not request.company:
        return "Nobody but the two of us." if request.asker else ""
    *others, last = request.company
    if not others:
        return f"{last} is here, besides you and me."
    return f"{', '.join(others)} and {last} are here, besides you and me."


def _belongings(question: Asked, request: ChatRequest) -> str:
    told = (("I wear", request.worn), ("I have with me", request.carried))
    return " ".join(f"{what}: {', '.join(things)}." for what, things in told if things) or (
        "I have nothing with me."
    )


_ANSWERS: Final[Mapping[Kind, Callable[[Asked, ChatRequest], str]]] = {
    Kind.GREETING: _greeting,
    Kind.FAREWELL: _farewell,
    Kind.NAME: _name,
    Kind.SELF: _answer_who,
    Kind.TRADE: _answer_trade,
    Kind.AGE: _age,
    Kind.ASKER: _asker,
    Kind.PLACE: _answer_place,
    Kind.COMPANY: _company,
    Kind.BELONGINGS: _belongings,
}


# Answers from the card's example dialogues


def _example(question: Asked, request: ChatRequest) -> str:
    """Return the character's answer to a similar question in the card's example dialogues."""
    best, said = 0.0, ""
    for line, reply in _exchanges(request):
        if _UNKNOWN.fullmatch(line):
            continue
        alike = _alikeness(question, line, request)
        if alike > best:
            best, said = alike, reply
    return said if best >= _ALIKE and len(said) <= ANSWER_CHARACTERS else ""


def _own_ignorance(request: ChatRequest) -> tuple[str, ...]:
    """Return the answers of the examples to a line such as "(asks what {{char}} does not know)"."""
    return tuple(reply for line, reply in _exchanges(request) if _UNKNOWN.fullmatch(line))


def _exchanges(request: ChatRequest) -> Iterator[tuple[str, str]]:
    """Yield each line of the example dialogues that is said to the character, with its answer."""
    for passage in request.passages:
        if passage.kind != "examples":
            continue
        before = ""
        for line in passage.text.splitlines():
            who, colon, text = line.partition(":")
            if not colon:
                before = ""
            elif who.strip() in (request.speaker, "{{char}}"):
                if before and text.strip():
                    yield before, " ".join(text.replace("*", "").split())
                before = ""
            else:
                before = text.strip()


def _alikeness(question: Asked, line: str, request: ChatRequest) -> float:
    """Return how similar a question is to one of an example: 1.0 if the words are the same."""
    subject = Subject(question, without=(request.speaker,)).words
    best = 0.0
    for part in re.split(r"(?<=[.!?])\s+", line):
        other = classify_line(part, of=request.speaker)
        about = Subject(other, without=(request.speaker,)).words
        if subject and subject == about and _ask_alike(question.kind, other.kind):
            return 1.0
        mine, theirs = set(words_of(question.plain)), set(words_of(other.plain))
        shared = 2 * len(mine & theirs) / max(1, len(mine) + len(theirs))
        is_about_it = bool(subject & about) or not (subject and about)
        best = max(best, shared if is_about_it or other.kind is Kind.SINCE else 0.0)
    return best


def _ask_alike(one: Kind, other: Kind) -> bool:
    return one is other or {one, other} <= {Kind.REQUEST, Kind.STATEMENT, Kind.MAY}
