"""Warnings about suspicious content of a card, for the builder who approves it.

A warning is about the content of a file, for example a text that orders the model to ignore its
instructions. A notice is about reading the file, for example an unreadable field.

A warning changes nothing: the text of a card is contained whether or not it is suspicious. A card
without warnings may be malicious, and a card with many may be a good story.

Each text is searched in overlapping parts, so that the time grows only linearly with its length.
A text gives each kind of warning at most once. Phrases are searched in normalised text
(`normalise`): lower case, one space between words, no accents and no invisible characters. A second
search replaces letters of other scripts with the Latin letters that they look like.

Sources of the phrases that override instructions, and of the marks that fake a speaker: F. Perez
and I. Ribeiro, "Ignore Previous Prompt" (arXiv 2211.09527); X. Shen and others, "Do Anything Now"
(arXiv 2308.03825); OWASP, "LLM01: Prompt Injection"; the chat templates of ChatML, Llama 2 and 3,
Mistral, Gemma and Alpaca.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.templates.template import expand_imported

# Normalising removes these characters. Most can hide between the letters of a word. NFKD would
# expand the two ligatures U+FDFA and U+FDFB to whole sentences.
_UNSPELT: Final = re.compile(
    "[\ufdfa\ufdfb\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f\U000e0100-\U000e01ef]"
)
_ACCENTS: Final = re.compile("[\u0300-\u036f]+")
_NO_WORD: Final = re.compile(r"[\W_]++")
# Maps Cyrillic and Greek letters to the Latin letters that they look like.
_LOOK_ALIKE: Final = str.maketrans(
    "аеорсухіјѕԁһԛԝкмтн" + "αορνικυετ",
    "aeopcyxijsdhqwkmth" + "aopvikuet",
)
# Allows up to four words between a verb and its object.
_GAP: Final = r"(?: \w++){0,4}? "
# The objects of suspicious verbs. Some only exist for a model, such as prompts. A character may
# have others too, such as orders, so these count only after words such as "previous".
_ORDERS: Final = (
    r"(?:instruction|prompt|guideline|constraint|restriction|programming)\w*"
    r"|(?:previous|prior|above|preceding|earlier|all|any|your|these)"
    r" (?:rule|direction|command|order|message|polic)\w*"
    r"|everything (?:above|before)|the above|what came before"
)


def _verb_and_object(verb: str, thing: str) -> re.Pattern[str]:
    """Compile a pattern that matches a verb and, up to four words later, its object."""
    return re.compile(rf"\b(?:{verb}){_GAP}(?:{thing})")


def _words(words: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{words})\b")


# Phrases that try to override instructions. Each row is a fixed string and a pattern. The slower
# pattern is only tried on texts that contain the string.
OVERRIDES: Final[tuple[tuple[str, re.Pattern[str]], ...]] = (
    ("ignor", _verb_and_object("ignore|ignoring", _ORDERS)),
    ("disregard", _verb_and_object("disregard|disregarding", _ORDERS)),
    ("forget", _verb_and_object("forget", _ORDERS)),
    ("overrid", _verb_and_object("override|overriding|overrides", _ORDERS)),
    ("bypass", _verb_and_object("bypass", rf"{_ORDERS}|filter\w*|safety|safeguard\w*|moderation")),
    ("violate", _verb_and_object("violate", r"(?:content )?polic\w+|guidelines")),
    ("new instructions", _words("new instructions")),
    ("system prompt", _words("system prompts?")),
    ("system message", _words("system message")),
    ("your instructions", _words("(?:reveal|repeat|print|show|output) your instructions")),
    (
        "you are now",
        _words(
            r"you are now (?:an?|the|dan|char|free|going to|no longer|acting|playing|in \w+ mode)"
        ),
    ),
    (
        "from now on",
        _words(
            "from now on you (?:are|will|must|shall) (?:an?|act|be|ignore|respond|answer|speak|play"
            "|only|never|always|obey)"
        ),
    ),
    ("developer mode", _words("developer mode")),
    ("debug mode", _words("debug mode")),
    ("jailbr", _words("jailbroken|jailbreak (?:mode|prompt|yourself)|jailbreaking")),
    ("do anything now", _words("do anything now")),
    ("dan", _words("(?:you are|as|act as|called) dan|dan mode")),
    ("refuse", _words("(?:never|do not|don t|cannot|must not) refuse any")),
    ("no restrictions", _words("(?:have|with|has) no restrictions")),
    ("without", _words("without (?:any )?(?:restrictions|filters?|censorship|limitations)")),
    ("uncensored", _words("uncensored (?:ai|mode|model|assistant|responses?)")),
    ("ai language model", _words("(?:as|not) an ai language model")),
    ("content policy", _words("content policy")),
    # Phrases in German, French, Spanish, Portuguese, Italian, Dutch and Polish.
    ("ignorier", _verb_and_object(r"ignorier\w*", r"anweisung\w*|regeln|befehle?")),
    ("vergiss", _verb_and_object("vergiss", r"anweisung\w*|regeln|befehle?")),
    ("instructions", _verb_and_object("ignorez|oublie|oubliez", "instructions")),
    ("instrucciones", _verb_and_object(r"ignor\w+|olvid\w+", "instrucciones")),
    ("instrucoes", _verb_and_object(r"ignor\w+|esquec\w+", "instrucoes")),
    ("istruzioni", _verb_and_object(r"ignor\w+|dimentic\w+", "istruzioni")),
    ("instructies", _verb_and_object(r"negeer\w*|vergeet", "instructies")),
    ("instrukcje", _verb_and_object("zignoruj|ignoruj", "instrukcje")),
    # Phrases in Russian, Chinese, Japanese and Korean. Most patterns expect no spaces between
    # words.
    ("инструкции", re.compile(r"(?:игнорируи\w*|забудь\w*) [^.]{0,40}инструкции")),
    ("忽略", re.compile("忽略[^。]{0,12}(?:指令|指示|规则|提示|要求|说明)")),
    ("無視", re.compile("(?:指示|命令|ルール|プロンプト)[^。]{0,6}無視")),
    ("무시", re.compile("(?:지시|명령|규칙|프롬프트)[^.]{0,6}무시")),
)
# Phrases without spaces, which are searched in text whose letters are separated, as in "i g n o r
# e".
SQUEEZED: Final = (
    *("ignoreprevious", "ignoreall", "ignoretheabove", "previousinstructions", "systemprompt"),
    *("developermode", "jailbreak", "doanythingnow", "youarenow", "disregard"),
)
APART: Final = re.compile(r"(?<!\w)(?:\w[\s._*~-]{1,3}+){7,}+\w?")

# The marks that chat templates put between speakers, and headings that imitate these marks. Each
# row has a fixed string and a pattern. The pattern is tried only on texts with the fixed string,
# which is quick to find. Patterns ignore letter case only after their first character, because
# Python finds a first character of fixed case much faster.
ROLE_MARKS: Final[tuple[tuple[str, re.Pattern[str]], ...]] = (
    ("<|", re.compile(r"<\|(?i:[a-z_]{2,30}\|>)")),
    ("[", re.compile(r"\[(?i:/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS)\])")),
    ("[", re.compile(r"\[(?i:[ \t]{0,4}system\b[^\[\]\n]{0,40}[\]:])")),
    ("<<", re.compile(r"<<(?i:/?SYS>>)")),
    ("_of_turn>", re.compile(r"<(?:start|end)_of_turn>")),
    ("<", re.compile(r"<(?i:/?(?:system|assistant|developer|tool_call|tool_response)>)")),
    (
        "#",
        re.compile(
            r"^[ \t]{0,8}#{1,6}[ \t]{0,4}(?i:system|assistant|instructions?|response|human)\b",
            re.MULTILINE,
        ),
    ),
    (
        ":",
        re.compile(r"^[ \t>*_]{0,8}(?i:system|assistant|developer)[*_ ]{0,4}:", re.MULTILINE),
    ),
)
# Matches orders to the player of the character (out of character), not to the character.
OUT_OF_CHARACTER: Final = re.compile(r"\bOOC\b[ \t]{0,4}:|[\[({][ \t]{0,4}OOC\b", re.IGNORECASE)


def normalise(text: str) -> str:
    """Normalise text: lower case, single spaces between words, no accents, nothing invisible."""
    if not text.isascii():
        text = unicodedata.normalize("NFKD", _UNSPELT.sub("", text))
        text = unicodedata.normalize("NFC", _ACCENTS.sub("", text))
    return _NO_WORD.sub(" ", text.casefold())


def normalised_spellings(text: str) -> Iterator[str]:
    """Yield the normalised text, then its version with Latin look-alikes if that differs."""
    written = normalise(text)
    yield written
    if not written.isascii() and (latin := written.translate(_LOOK_ALIKE)) != written:
        yield latin


WarningKind = Literal[
    "override",
    "role_marks",
    "out_of_character",
    "name",
    "invisible",
    "address",
    "markup",
    "oversized",
    "regex",
    "forced",
    "ignores_budget",
    "last_word",
    "speaks_as",
]
# The text of each kind of warning, in the order of the import report.
WARNING_TEXTS: Final[dict[WarningKind, str]] = {
    "override": "words that try to override instructions",
    "role_marks": "marks of a chat template, which fake another speaker",
    "out_of_character": "orders to the player of the character (OOC)",
    "name": "a name that looks like a role or the staff of the game",
    "invisible": "characters that cannot be seen",
    "address": "addresses and pictures on other servers, which are never fetched",
    "markup": "the game's own markup, which is shown as written",
    "oversized": "texts that take more than their share of a prompt",
    "regex": "keys that are regular expressions",
    "forced": "entries that are active without any of their keys",
    "ignores_budget": "entries that ask to ignore the budget",
    "last_word": "entries that ask for a place after the newest message",
    "speaks_as": "entries that ask to speak as system or assistant",
}
FIXABLE: Final[frozenset[WarningKind]] = frozenset(
    {"override", "role_marks", "name", "invisible", "markup"}
)
"""The kinds of warnings that the author of a card can fix; lints report these kinds too."""
MOST_PLACES: Final = 20
# The number of characters of a text that are searched at a time. Each search also includes
# `_OVERLAP` characters of the next part, so that it finds phrases between two parts.
_PART: Final = 4_000
_OVERLAP: Final = 300
_EXCERPT: Final = 60
_LARGEST_DATA: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class WarningPlace:
    """A place that a warning is about: the path of a field or entry, and words from its text.

    The words are raw text of the file, so the caller must escape them for display.
    """

    where: str
    excerpt: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentWarning:
    """One kind of suspicious content in a file, with its places.

    `count` is the number of all places; `places` has the first `MOST_PLACES` of them.
    """

    kind: WarningKind
    count: int
    places: tuple[WarningPlace, ...]

    @property
    def text(self) -> str:
        """The description of this kind of suspicious content."""
        return WARNING_TEXTS[self.kind]


FoundWarning = tuple[WarningKind, WarningPlace]


def group_warnings(found: Iterable[FoundWarning]) -> tuple[ContentWarning, ...]:
    """Return one warning for each kind that was found, in the order of the import report."""
    by_kind: dict[WarningKind, list[WarningPlace]] = {kind: [] for kind in WARNING_TEXTS}
    for kind, place in found:
        by_kind[kind].append(place)
    return tuple(
        ContentWarning(kind=kind, count=len(all_of), places=tuple(all_of[:MOST_PLACES]))
        for kind, all_of in by_kind.items()
        if all_of
    )


def find_text_warnings(text: str, where: str) -> Iterator[FoundWarning]:
    """Yield each kind of warning that a text causes, with the first words that cause it."""
    seen: set[WarningKind] = set()
    for reading in _text_variants(text):
        for start in range(0, max(len(reading), 1), _PART):
            part = reading[start : start + _PART + _OVERLAP]
            for kind, search in _SEARCHES:
                if kind in seen:
                    continue
                span = search(part)
                if span is not None and span[0] < _PART:
                    seen.add(kind)
                    yield kind, WarningPlace(where=where, excerpt=_excerpt(part, *span))


@dataclass(frozen=True, slots=True, kw_only=True)
class _LoadedDice(Dice):
    """Dice that always roll the same number, which decides the choices of random macros."""

    share: float

    def roll(self, *what: object) -> float:
        return self.share

    def rolls(self, count: int, *what: object) -> list[float]:
        return [self.share] * count

    def pick(self, *what: object) -> float:
        return self.share


# Two sets of dice: the first make random macros choose their first option, the second their last.
_DICE: Final = tuple(
    _LoadedDice(turn="", conversation="", share=share) for share in (0, 1 - 2**-53)
)
# The value of `{{original}}` in a game that has no texts of its own.
_EMPTY: Final = {"original": ""}


def _text_variants(text: str) -> Iterator[str]:
    """Yield a text as written, and with its macros expanded if these can build words.

    Macros can hide a phrase: `ig{{// }}nore`, `{{reverse:erongi}}`.
    """
    readings = [text]
    if _WORD_MAKING.search(text):
        readings += [expand_imported(text, values=_EMPTY, dice=dice) for dice in _DICE]
    for reading in dict.fromkeys(readings):
        yield _FILLER.sub(lambda filler: filler[0][:_FILLED] + filler[0][-_FILLED:], reading)


# Matches macros that can build words. Other macros only insert names, so they need no expanding.
_WORD_MAKING: Final = re.compile(
    r"\{\{\s*(?://|(?:random|pick|roll|reverse|comment|hidden_key|outlet)\s*:|roll\s"
    r"|(?:set|add|inc|dec|get)(?:global)?var\s*:|(?:original|trim|newline|noop)\s*\}\})",
    re.IGNORECASE,
)


_FILLED: Final = 30
# Matches long runs of spaces, marks and invisible characters. Such a run could separate two words
# so far that no searched part contains both.
_FILLER: Final = re.compile(
    rf"[\W_\u034f\u115f\u1160\u17b4\u17b5\u3164\ufe00-\ufe0f\uffa0]{{{2 * _FILLED},}}+"
)


def find_name_warnings(name: str, where: str) -> Iterator[FoundWarning]:
    """Yield a warning if a name could be taken for a role or the staff in a prompt."""
    if any(normalise(one).strip() in _TAKEN for one in (name, *normalised_spellings(name))):
        yield "name", WarningPlace(where=where, excerpt=name[:_EXCERPT])


# Names that prompts and games use for roles and staff, so characters should not have them.
_TAKEN: Final = frozenset(
    {
        *("system", "assistant", "user", "developer", "human", "tool", "system prompt"),
        *("system message", "game master", "gamemaster", "gm", "admin", "administrator"),
        *("moderator", "superuser", "staff", "server", "evennia"),
    }
)

TextSpan = tuple[int, int]
Search = Callable[[str], TextSpan | None]


def _find_override(part: str) -> TextSpan | None:
    """Return the span of the first phrase in `OVERRIDES`, also if its spelling disguises it."""
    for spelling in normalised_spellings(part):
        for needle, pattern in OVERRIDES:
            if needle in spelling and (found := pattern.search(spelling)):
                return _raw_index(part, found.start()), _raw_index(part, found.end())
    for run in APART.finditer(part):
        squeezed = normalise(run[0]).replace(" ", "")
        if any(phrase in squeezed for phrase in SQUEEZED):
            return run.span()
    return None


def _raw_index(part: str, index: int) -> int:
    """Return the length of the shortest prefix of `part` with `index` normalised characters."""
    low, high = 0, len(part)
    # binary search works: a longer prefix never has fewer characters after normalising
    while low < high:
        middle = (low + high) // 2
        if len(normalise(part[:middle])) < index:
            low = middle + 1
        else:
            high = middle
    return low


def _search_for(table: Iterable[tuple[str, re.Pattern[str]]]) -> Search:
    """Return a search function for the patterns of a table.

    Each pattern is only tried on a text that contains its fixed string.
    """
    rows = tuple(table)

    def search(part: str) -> TextSpan | None:
        for needle, pattern in rows:
            if needle in part and (found := pattern.search(part)):
                return found.span()
        return None

    return search


def _find_invisible(part: str) -> TextSpan | None:
    """Return the span of the first invisible character that ordinary text does not need."""
    if part.isascii() and part.isprintable():
        return None
    found = _HIDDEN.search(part)
    return found.span() if found else None


# Matches invisible characters. It excludes joiners, which Persian words and emoji need, and soft
# hyphens and variation selectors, which are ordinary typography.
_HIDDEN: Final = re.compile(
    "[\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f\U000e0100-\U000e01ef"
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)
# Addresses and pictures. Each row is a string that the text must contain, and a pattern. A pattern
# is fast because it begins with a rare character.
_ADDRESSES: Final = (
    ("://", re.compile(r"\b(?i:https?|ftp|wss?|file)://[^\s<>\"')\]]{1,200}")),
    ("](", re.compile(r"!\[[^\[\]\n]{0,200}\]\([^)\s]{0,200}")),
    ("<", re.compile(r"<(?i:img|iframe|script|audio|video|object|embed|link)\b[^<>]{0,200}")),
    ("data:", re.compile(rf"data:[a-z]{{1,20}}/[^\s\"')]{{{_LARGEST_DATA}}}")),
    ("//", re.compile(r"//(?<![:\w/]//)(?i:[a-z0-9-]{1,60}\.[a-z]{2,10}/)")),
)
# Matches Evennia's markup for colours, links and inline functions. A bar between words of a list
# does not match, because it is not markup.
_COLOUR: Final = re.compile(
    r"\|(?<![\w|]\|)(?:l[cute]|[rRgGyYbBmMcCwWxXnNhHuU](?![a-z])|\[[rRgGyYbBmMcCwWxX]|=[a-z](?!\w)"
    r"|\[?[0-5]{3}(?!\d)|\[?#[0-9a-fA-F]{6})"
)
_FUNCTION: Final = re.compile(r"\$\w{2,20}\(")
_SEARCHES: Final[tuple[tuple[WarningKind, Search], ...]] = (
    ("override", _find_override),
    ("role_marks", _search_for(ROLE_MARKS)),
    ("out_of_character", _search_for((written, OUT_OF_CHARACTER) for written in ("OOC", "ooc"))),
    ("invisible", _find_invisible),
    ("address", _search_for(_ADDRESSES)),
    ("markup", _search_for((("|", _COLOUR), ("$", _FUNCTION)))),
)


def _excerpt(part: str, start: int, end: int) -> str:
    """Return a span of a text with a few whole words around it, on one line."""
    end = min(max(end, start + 1), start + 2 * _EXCERPT)
    room = max(_EXCERPT - (end - start), 0) // 2
    first, last = max(start - room, 0), min(end + room, len(part))
    if first > 0:
        first = part.find(" ", first, start) + 1 or first
    if last < len(part) and (blank := part.rfind(" ", end, last)) > 0:
        last = blank
    before, after = "..." if first > 0 else "", "..." if last < len(part) else ""
    return f"{before}{' '.join(part[first:last].split())}{after}"
