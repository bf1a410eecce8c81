"""Classify a line that a player says to an NPC: as a kind of question or of small talk.

English only: a line without a common English word is FOREIGN. The first row of the table with a
matching pattern decides. Small talk comes before questions, and specific questions before general
ones. The patterns see the line in lower case, without contractions, the name of the NPC and polite
phrases.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """What kind of line a player said."""

    CALL = "call"
    """The line is only the name of the NPC."""
    GREETING = "greeting"
    THANKS = "thanks"
    FAREWELL = "farewell"
    WELLBEING = "wellbeing"
    NAME = "name"
    SELF = "self"
    TRADE = "trade"
    AGE = "age"
    ASKER = "asker"
    PLACE = "place"
    COMPANY = "company"
    BELONGINGS = "belongings"
    """A question what the NPC wears, carries or has with it."""
    PRICE = "price"
    WHERE = "where"
    SINCE = "since"
    """A question how long the NPC has been or done something."""
    AMOUNT = "amount"
    HOUR = "hour"
    """A question for the current time."""
    WHEN = "when"
    WHY = "why"
    HOW = "how"
    WHO = "who"
    MAY = "may"
    REQUEST = "request"
    OWN = "own"
    """A yes-or-no question about the NPC itself."""
    EXISTS = "exists"
    """A question whether something exists, or whether somebody does something."""
    YES_NO = "yes or no"
    WHAT = "what"
    STATEMENT = "statement"
    GESTURE = "gesture"
    """An action between asterisks that is neither a question nor a greeting."""
    FOREIGN = "foreign"
    """A line in a language other than English."""


_SHORT: Final[tuple[tuple[str, str], ...]] = (
    (r"[’`´]", "'"),
    (r"\b(what|who|where|when|why|how|that|there|it|he|she)'s\b", r"\1 is"),
    (r"\b(i)'m\b", r"\1 am"),
    (r"\b(you|they|we)'re\b", r"\1 are"),
    (r"\b(i|you|they|we)'ve\b", r"\1 have"),
    (r"\b(i|you|they|we)'d\b", r"\1 would"),
    (r"\b(i|you|they|we)'ll\b", r"\1 will"),
    (r"\bcan't\b", "can not"),
    (r"n't\b", " not"),
)
_EDGES: Final = re.compile(r"^[\W_]+|[\W_]+$")
_OPENING: Final = re.compile(
    r"(?:(?:so|well|oh|ah|and|but|please|excuse me|pardon(?: me)?|sorry|listen|tell me|say|now|ok"
    r"|okay|then|hm+|"
    r"(?:can|could|would|will) you (?:please )?(?:tell|show) me(?! about)|"
    r"do you (?:happen to )?know(?! me\b| my\b)(?= \w+ \w)|have you any idea|any idea|"
    r"i (?:wonder|would like to know|want to know)|may i ask(?: you)?|can i ask(?: you)?)"
    r"[\s,.:;!-]+)+"
)
_CLOSING: Final = re.compile(r"[\s,]+(?:please|then|by the way|again|if i may ask)$")
_HELLO: Final = (
    r"(?:hello|hi|hiya|hey|hail|howdy|ahoy|yo|greetings|salutations|well met"
    r"|(?:good )?(?:morning|evening|afternoon)|good day|nice to meet you|pleased to meet you)"
)
_TO_WHOM: Final = (
    r"(?:,? (?:there|again|to you|all|everybody|everyone|friend|stranger|sir|madam|miss|folks"
    r"|my \w+))"
)
_GREETED: Final = re.compile(rf"{_HELLO}{_TO_WHOM}*[\s,.!;:-]+(?=\w)")
_BYE: Final = (
    r"(?:good ?bye|bye(?:[ -]bye)?|farewell|fare (?:you )?well|good ?night|see (?:you|ya)|so long"
    r"|take care|safe travels|until (?:later|tomorrow|then|next|we)|cheerio"
    r"|i (?:must|have to|should|need to|had better) (?:go|leave|be going|be off|get going)"
    r"|i am (?:off|leaving)|later$)"
)
_MY_WORK: Final = r"(?:job|work|trade|profession|business|occupation|role|craft|calling|duty)"

_PATTERNS: Final[tuple[tuple[Kind, re.Pattern[str]], ...]] = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        (Kind.GREETING, rf"{_HELLO}{_TO_WHOM}*$"),
        (Kind.THANKS, r"(?:many )?(?:thanks|thank you|thank ye|thx|cheers|much obliged|ta$)"),
        (Kind.FAREWELL, rf"{_BYE}(?!.*\?)"),
        (
            Kind.WELLBEING,
            (
                r"(?:how (?:are|have) you(?: been| doing| today| feeling)*$|how do you do$"
                r"|how goes it|how (?:is it|are things|is life|is your day)|how do you feel"
                r"|are you (?:well|ok|okay|all ?right)$|what is up$)"
            ),
        ),
        (
            Kind.NAME,
            (
                r".*(?:(?:what is|give me|have|know|got|tell me) (?:a|your) name\b"
                r"|(?:call|called|address) you\b|are you called|^your name$)"
            ),
        ),
        (Kind.ASKER, r"(?:who am i|what is my name|.*\bknow (?:me|my name|who i am))$"),
        (Kind.AGE, r"(?:how old are you|what is your age)\b"),
        (
            Kind.TRADE,
            (
                rf"(?:what do you do(?: here| for (?:a|your) \w+| all day| around here| then)*$"
                rf"|what is your {_MY_WORK}\b|what (?:kind|sort) of (?:work|job)"
                rf"|what do you work|do you work here|.*\babout your {_MY_WORK}\b"
                rf"|what (?:is it (?:that )?you do|are you here for))"
            ),
        ),
        (
            Kind.SELF,
            (
                r"(?:who (?:are|may|might) you\b|what are you$|(?:tell me )?about yourself"
                r"|introduce yourself)"
            ),
        ),
        (
            Kind.PLACE,
            (
                r"(?:where (?:am i|are we|is this)|what is this (?:place|village|town|room|house)\b"
                r"|(?:what|which) (?:place|village|town|room) is this|what do you call this place"
                r"|what (?:kind|sort) of place is this)"
            ),
        ),
        (
            Kind.COMPANY,
            (
                r"(?:who (?:else )?is (?:also )?(?:here|around|there|present|with us)\b"
                r"|is (?:there )?(?:any|some)(?:body|one) (?:else )?(?:here|around|with us)"
                r"|are we alone|are you alone)"
            ),
        ),
        (
            Kind.BELONGINGS,
            (
                r"(?:what (?:do|are|have) you (?:carry|carrying|wear|wearing|hold|holding)"
                r"(?: with you| on you| there| now| today)*$"
                r"|what (?:do|have) you (?:have |got )?(?:with|on) you\b"
                r"|what (?:is|do you have|have you(?: got)?) in your (?:\w+ )?"
                r"(?:hands?|pockets?|bags?|packs?|sacks?|baskets?|purse)$)"
            ),
        ),
        (
            Kind.PRICE,
            (
                r"(?:how much\b(?! (?:time|further|farther|longer|more|do you (?:know|like|love)))"
                r"|what (?:does|do|would|will|is|are|did)\b.*\b(?:cost|charge|price|fare|fee)\b"
                r"|.*\b(?:price|fare|fee)s?\b)"
            ),
        ),
        (
            Kind.WHERE,
            (
                r"(?:where\b|which way\b|(?:what is )?the way to\b|.*\bdirections? to\b"
                r"|how (?:do|can|could|would|should|does|will) (?:i|we|one|you|somebody|someone)"
                r" (?:best )?(?:get|go|come|find|reach|cross)\b)"
            ),
        ),
        (Kind.SINCE, r"(?:how long (?:have|are) you|since when (?:have|are) you)\b"),
        (Kind.AMOUNT, r"how (?:many|long|far|deep|high|tall|wide|big|large|often|heavy|old)\b"),
        (Kind.HOUR, r"(?:what time is it|what is the (?:time|hour)|how late is it)\b"),
        (Kind.WHEN, r"(?:(?:at )?what (?:time|hour|day)|when|how soon|how late|until when)\b"),
        (Kind.WHY, r"(?:why|how come|what for|for what reason)\b"),
        (Kind.HOW, r"how (?:did|do|does|was|were|is|are|can|could|would|will)\b"),
        (Kind.WHO, r"(?:who|whose|whom|with whom|to whom)\b"),
        (
            Kind.MAY,
            (
                r"(?:(?:can|may|might|could|shall|should|must) (?:i|we)|am i allowed"
                r"|is it (?:allowed|all ?right|okay))\b"
            ),
        ),
        (
            Kind.REQUEST,
            (
                r"(?:(?:can|could|would|will) you(?! tell me about)|give|bring|sell|show|take|help"
                r"|let|fetch|lend|make|sing|dance"
                r"|i (?:would like|want|need|wish|will have|will take|would love))\b"
            ),
        ),
        (
            Kind.OWN,
            (
                r"(?:are|were|do|did|have|had|will|would|should) (?:not )?you(?:r|rs)?\b"
                r"(?! (?:have|sell|serve|got|know)\b)"
            ),
        ),
        (Kind.EXISTS, r"(?:(?:is|are|was|were) there|do|does|did|has|have|had)\b"),
        (Kind.YES_NO, r"(?:is|are|was|were|will|would|can|could|should|must)\b"),
        (Kind.WHAT, r"(?:what|which|how|(?:more )?(?:about|of)|can you tell me about)\b"),
    )
)

COMMON_WORDS: Final = frozenset(
    """
    a about after again ago ahead all also always am an and another any anybody anyone anything are
    around as at away be because been before being best better both but by can could did do does
    doing done down each either else enough even ever every everybody everyone everything far few
    for from get give go goes going got had happen has have having he hello her here hers hey hi
    him his how i if in instead into is it its just know known last least less let like long lot
    many may maybe me might mine more most much must my near never next no nobody none nor not
    nothing now of off often oh old on once one only or other our ours out over own perhaps please
    quite rather really right said same say says shall she should since so some somebody someone
    something somewhere soon still such sure take tell than thank thanks that the their them then
    there these they thing things this those though through till to today together too toward
    under until up upon us use used very want was way we well went were what when where which
    while who whole whom whose why will with without would yes yet you your yours yourself
    """.split()  # noqa: SIM905 - two hundred quoted words would be two pages
)
"""Words so common that they do not show what a question is about."""

VAGUE_WORDS: Final = frozenset(
    """
    believe bring call called come cost costs find fun great happened happening happens kind leave
    leaves live look looks lots made make makes mean meaning means need needs nice people person
    place places price prices run running runs see show sort story stuff talk think time times
    today tomorrow tonight try
    wish work working works world
    """.split()  # noqa: SIM905 - as above
)
"""Words that an answer may lack though the question has them."""

_ENGLISH: Final = frozenset(
    """
    about and any are around can could did does for good got have hello here hey how is it just
    know like many much my not of please some thank thanks that the their there they this tell
    what when where which who whom whose why with would you your bye cheers farewell goodbye
    greetings morning evening
    """.split()  # noqa: SIM905 - as above
)
_MAYBE_ENGLISH: Final = frozenset(
    "a all am an as at do i if in me no on so to was we".split()  # noqa: SIM905 - as above
)
"""Words that English shares with other languages.

A line counts as English if at least half of its words are of this kind.
"""
_WORD: Final = re.compile(r"[^\W_]+")
MOST_READ: Final = 500
"""The most characters of a line that are classified."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A player's line with its kind, and with its words as the patterns see them."""

    text: str
    kind: Kind
    plain: str


def classify_line(text: str, *, of: str) -> Asked:
    """Return the classified line that somebody said to `of`, or did between asterisks."""
    plain = _plain_line(text[:MOST_READ], of)
    if text.startswith("*") and text.endswith("*"):
        return _classify_pose(text, plain, of)
    return Asked(text=text, kind=_kind(plain, text), plain=plain)


_ASKS: Final = re.compile(r"asks (?:(?:for|if|whether) )?")
_GREETS: Final = re.compile(r"(?:greets|waves|bows|salutes|curtsies|tips|beckons)\b")


def _classify_pose(text: str, plain: str, name: str) -> Asked:
    """Classify a pose as an indirect question, a greeting or a mere gesture."""
    without = re.sub(rf"\b{re.escape(name.casefold())}\b\W*", "", plain) if name else plain
    asks = _ASKS.match(without)
    if asks:
        question = without[asks.end() :]
        return Asked(text=question, kind=_kind(question, f"{question}?"), plain=question)
    kind = Kind.GREETING if _GREETS.match(without) else Kind.GESTURE
    return Asked(text=text, kind=kind, plain=without)


def _kind(plain: str, text: str) -> Kind:
    if not plain:
        return Kind.CALL
    if not (_is_english(plain) or _is_small_talk(plain)):
        return Kind.FOREIGN
    for kind, pattern in _PATTERNS:
        if pattern.match(plain):
            return kind
    return Kind.WHAT if text.rstrip().endswith("?") else Kind.STATEMENT


def _is_english(plain: str) -> bool:
    words = _WORD.findall(plain)
    maybe = sum(word in _MAYBE_ENGLISH for word in words)
    return bool(_ENGLISH.intersection(words)) or 2 * maybe >= len(words)


def _is_small_talk(plain: str) -> bool:
    return any(pattern.match(plain) for _, pattern in _PATTERNS[:3])


def _plain_line(text: str, name: str) -> str:
    """Return the line in lower case, without contractions, names, polite phrases and a greeting."""
    plain = " ".join(text.casefold().split())
    for short, whole in _SHORT:
        plain = re.sub(short, whole, plain)
    plain = _EDGES.sub("", plain)
    called = re.escape(name.casefold()) or r"(?!)"
    name_first = re.compile(rf"{called}(?:[\s,.:;!?-]+|$)")
    plain = re.sub(rf"[\s,]+{called}$", "", plain)
    for before in (name_first, _GREETED, name_first, _OPENING):
        opened = before.match(plain)
        if opened and not _is_small_talk(plain):
            plain = plain[opened.end() :]
    return _CLOSING.sub("", _EDGES.sub("", plain))


LINES: Final[Mapping[Kind, tuple[str, ...]]] = {
    Kind.CALL: ("Yes?", "I am listening.", "What is it?"),
    Kind.THANKS: ("You are welcome.", "Any time.", "Think nothing of it."),
    Kind.WELLBEING: ("Well enough, thank you. And you?", "No worse than before, thank you."),
    Kind.PRICE: ("I could not name you a price for that.", "What that costs, I do not know."),
    Kind.WHERE: ("I could not tell you where.", "I do not know the way to that, I am afraid."),
    Kind.SINCE: ("Longer than I have counted.", "Long enough to have stopped counting."),
    Kind.AMOUNT: ("I have never measured it.", "That I could not tell you exactly."),
    Kind.WHEN: ("I could not tell you when.", "When, I do not know."),
    Kind.WHY: ("Why that is, I could not tell you.", "I have wondered why, and I do not know."),
    Kind.WHO: ("I could not tell you who.", "Who, I do not know."),
    Kind.AGE: ("Old enough not to count.", "I have stopped counting."),
    Kind.MAY: ("That is not for me to say.", "I would ask somebody else about that first."),
    Kind.REQUEST: ("I am afraid I cannot help you with that.", "That I cannot do."),
    Kind.OWN: ("I would rather not talk about myself.", "Let us talk of something else than me."),
    Kind.HOUR: ("I could not tell you the hour.", "What time it is, I do not know."),
    Kind.HOW: ("How, I could not tell you.", "I do not know how."),
    Kind.EXISTS: ("Not that I know of.", "I have not heard of it."),
    Kind.YES_NO: ("I could not say for sure.", "That I do not know for sure."),
    Kind.GESTURE: ("*nods*", "*looks up*"),
    Kind.STATEMENT: ("Is that so?", "I see.", "If you say so."),
    Kind.WHAT: ("I could not tell you.", "That I do not know.", "I know nothing about that."),
}
"""Answers for a character whose texts do not answer the question.

Each kind of question has its lines, in the order in which they are used.
"""

IGNORANT: Final = frozenset(
    {
        *(Kind.PRICE, Kind.WHERE, Kind.SINCE, Kind.AMOUNT, Kind.WHEN, Kind.WHY, Kind.WHO),
        *(Kind.HOUR, Kind.HOW, Kind.EXISTS, Kind.YES_NO, Kind.WHAT),
    }
)
"""The kinds of questions to which a character may say in its own words that it does not know."""
