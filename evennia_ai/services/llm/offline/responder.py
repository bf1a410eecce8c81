"""Answers without a language model: small talk, and what the character's own texts say.

It lets a game without any endpoint be alive enough to be tried. What it says is the card's and the
lore's own words, or a plain line of courtesy; it makes nothing up, says of itself that it is
offline, and its answer depends on its request alone, so a replay of the request gives it again.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Final

from twisted.internet.defer import Deferred, succeed

from evennia_ai.services.llm.chat import ChatReply, ChatRequest, Listener
from evennia_ai.services.llm.offline.asked import LINES, Asked, Kind, asked
from evennia_ai.services.llm.offline.first_person import first_person, pronoun_of
from evennia_ai.services.llm.offline.quoting import (
    ANSWER_CHARACTERS,
    Sentence,
    Subject,
    plain_sentences,
    quotation,
    sentences,
    words_of,
)

SHRUG: Final = "*shrugs*"
"""Instead of the fallback line twice in a row; a gesture is of no language."""
_ALIKE: Final = 0.6
"""How much of their words two questions share that ask the same, from 0 to 1."""

_QUOTED: Final = re.compile(r"[\"“„«]([^\"“”„«»]+)[\"”“»]")
_AGE: Final = re.compile(
    r"\b([\w-]+) years (?:old|of age)\b|\b(?:is|am) ((?:\w+ty|\w+teen)(?:-\w+)?|\d{1,4})\b", re.I
)


class OfflineResponder:
    """A `ChatModel` that answers at once, from its request alone.

    Where it has nothing to say and the line was of a language it knows nothing of, it says
    `fallback`, and every other time shrugs.
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
        text = found or self._instead(request)
        return succeed(ChatReply(text=text, model=self._name, offline=True, is_fallback=not found))

    def close(self) -> None:
        """Nothing is open."""

    def _instead(self, request: ChatRequest) -> str:
        """Fallback lines are in no request, so it counts what was said since the last reply."""
        names = tuple(f"{name}:" for name in (request.asker, *request.company))
        since = takewhile(lambda one: one.role != "assistant", reversed(request.messages))
        lines = [line for one in since for line in one.content.splitlines()]
        said = sum(line.startswith(names) for line in lines)
        return SHRUG if said and said % 2 == 0 else self._fallback


def answer(request: ChatRequest) -> str:
    """The answer to the request's question; empty where it is in a language it does not know."""
    question = asked(request.question, of=request.speaker)
    own = _ANSWERS.get(question.kind)
    found = own(question, request) if own else ""
    found = found or _example(question, request) or quotation(question, request)
    return found or _line(LINES.get(question.kind, ()), request)


def _said(request: ChatRequest) -> str:
    return "\n".join(m.content for m in request.messages if m.role == "assistant")


def _line(lines: Sequence[str], request: ChatRequest) -> str:
    """The line that was said the longest ago, "" where there are none."""
    said = _said(request)
    return min(lines, key=said.rfind, default="")


def _first_unsaid(texts: Iterator[str], request: ChatRequest) -> str:
    said = _said(request)
    return next((text for text in texts if text and text not in said), "")


# Small talk


def _greeting(question: Asked, request: ChatRequest) -> str:
    """What the card greets with, until all of it was said; then the greeting back."""
    spoken = (_quoted(p.text) for p in request.passages if p.kind == "greeting")
    return _first_unsaid(spoken, request) or _back(question, request)


def _quoted(text: str) -> str:
    """What of a greeting is speech, "" where that is nothing or too much.

    `"Later," he says. "It turns."` is two sentences: the comma is there for the narration.
    """
    said = ""
    for quote in (*map(str.strip, _QUOTED.findall(text)), ""):
        if said.endswith(",") and not quote[:1].islower():
            said = said[:-1] + "."
        said = f"{said} {quote}".strip()
    return said if len(said) <= ANSWER_CHARACTERS else ""


def _back(question: Asked, request: ChatRequest) -> str:
    """The greeting or farewell said back to who said it."""
    known = ("good morning", "good afternoon", "good evening", "good day", "good night")
    plain = question.plain
    is_farewell = question.kind is Kind.FAREWELL
    usual = "Farewell" if is_farewell else "Hello"
    said = next((one.capitalize() for one in known if one in plain), usual)
    return f"{said}, {request.asker}." if request.asker else f"{said}."


def _farewell(question: Asked, request: ChatRequest) -> str:
    """What the place says for farewell, where its lore tells; else the farewell back."""
    customs = re.compile(r"\b(?:we|I|people|everybody) (?:here )?says?\b", re.IGNORECASE)
    bye = re.compile(r"\b(?:goodbye|good night|farewell)\b", re.IGNORECASE)
    told = (s.text for s in sentences(request) if customs.search(s.text) and bye.search(s.text))
    return _first_unsaid(told, request) or _back(question, request)


def _name(question: Asked, request: ChatRequest) -> str:
    return f"I am {_whole_name(request)}." if request.speaker else ""


def _whole_name(request: ChatRequest) -> str:
    """The name with what the description begins with of it."""
    name = request.speaker
    for told in _description(request):
        found = re.match(rf"{re.escape(name)}(?: (?:of |the |von |van |de )?[A-Z][\w'’-]+)*", told)
        return found[0] if found else name
    return name


def _self(question: Asked, request: ChatRequest) -> str:
    """Name and trade; the name is in what the trade says where that tells who one is."""
    name, trade = _name(question, request), _trade(question, request)
    role = re.match(r"I am ((?:the|an?) .+)", trade)
    return f"{name[:-1]}, {role[1]}" if role and name else f"{name} {trade}".strip()


def _trade(question: Asked, request: ChatRequest) -> str:
    """What the description begins with, and what constant lore has it do."""
    role = _role(request)
    constant = (s for s in sentences(request) if s.passage.constant)
    does = next((s.text for s in constant if re.match(r"I (?!am\b)[a-z]+\b", s.text)), "")
    beginning = role.split()[:3]
    if role and (not does or does.split()[:3] == beginning):
        return role
    return f"{role} {does}".strip() if len(role) + len(does) < ANSWER_CHARACTERS else does


def _role(request: ChatRequest) -> str:
    """The first sentence of the description as the character says it, up to who it is."""
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


def _place(question: Asked, request: ChatRequest) -> str:
    """The name of the place, and what lore says that it or the country around it is."""
    if not request.place:
        return ""
    here = re.sub(r"^(The|A|An)\b", lambda one: one[0].lower(), request.place)
    told = [s.text for s in sentences(request) if s.passage.kind == "lore" and _defines(s)]
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


_ANSWERS: Final[Mapping[Kind, Callable[[Asked, ChatRequest], str]]] = {
    Kind.GREETING: _greeting,
    Kind.FAREWELL: _farewell,
    Kind.NAME: _name,
    Kind.SELF: _self,
    Kind.TRADE: _trade,
    Kind.AGE: _age,
    Kind.ASKER: _asker,
    Kind.PLACE: _place,
    Kind.COMPANY: _company,
}


# Examples


def _example(question: Asked, request: ChatRequest) -> str:
    """What the character answers in the card's examples to a question like this one."""
    best, said = 0.0, ""
    for line, reply in _exchanges(request):
        alike = _alikeness(question, line, request)
        if alike > best:
            best, said = alike, reply
    return said if best >= _ALIKE and len(said) <= ANSWER_CHARACTERS else ""


def _exchanges(request: ChatRequest) -> Iterator[tuple[str, str]]:
    """What somebody says to the character in the examples, and what it answers."""
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
    """How alike the question is to an example's, 1.0 where they are about the same."""
    subject = Subject(question, without=(request.speaker,)).words
    best = 0.0
    for part in re.split(r"(?<=[.!?])\s+", line):
        other = asked(part, of=request.speaker)
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
