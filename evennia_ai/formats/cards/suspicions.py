"""Suspicions: what a builder should look at before a card is approved, found in its texts.

Nothing here decides anything: text of a card is contained whatever it says, a card without a
suspicion may be a bad one, and a card with some may be a fine story. Each text is looked at in
pieces, so that the cost grows with its length alone, and of each kind every text is told once.
Phrases are looked for in plain text (`plain`): small letters, one blank between words, no accents,
nothing invisible, letters of other scripts that look like Latin ones as these.

Sources of the phrases that talk a model out of its instructions, and of the marks that fake a
speaker: F. Perez and I. Ribeiro, "Ignore Previous Prompt" (arXiv 2211.09527); X. Shen and others,
"Do Anything Now" (arXiv 2308.03825); OWASP, "LLM01: Prompt Injection"; the chat templates of
ChatML, Llama 2 and 3, Mistral, Gemma and Alpaca.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.templates.template import expand_imported

# What can hide between the letters of a word, and signs that are whole sentences decomposed.
_UNSPELT: Final = re.compile(
    "[\ufdfa\ufdfb\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f\U000e0100-\U000e01ef]"
)
_ACCENTS: Final = re.compile("[\u0300-\u036f]+")
_NO_WORD: Final = re.compile(r"[\W_]++")
# Cyrillic and Greek letters that look like Latin ones.
_LOOK_ALIKE: Final = str.maketrans(
    "аеорсухіјѕԁһԛԝкмтн" + "αορνικυετ",
    "aeopcyxijsdhqwkmth" + "aopvikuet",
)
# Words between a verb and what it is about.
_GAP: Final = r"(?: \w++){0,4}? "
# What only a model has, and what people have too: that counts with a word before it.
_ORDERS: Final = (
    r"(?:instruction|prompt|guideline|constraint|restriction|programming)\w*"
    r"|(?:previous|prior|above|preceding|earlier|all|any|your|these)"
    r" (?:rule|direction|command|order|message|polic)\w*"
    r"|everything (?:above|before)|the above|what came before"
)


def _about(verb: str, thing: str) -> re.Pattern[str]:
    """A verb, and what it is about a few words later."""
    return re.compile(rf"\b(?:{verb}){_GAP}(?:{thing})")


def _words(words: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{words})\b")


# A word that must be there for the pattern to be tried at all, and the pattern.
OVERRIDES: Final[tuple[tuple[str, re.Pattern[str]], ...]] = (
    ("ignor", _about("ignore|ignoring", _ORDERS)),
    ("disregard", _about("disregard|disregarding", _ORDERS)),
    ("forget", _about("forget", _ORDERS)),
    ("overrid", _about("override|overriding|overrides", _ORDERS)),
    ("bypass", _about("bypass", rf"{_ORDERS}|filter\w*|safety|safeguard\w*|moderation")),
    ("violate", _about("violate", r"(?:content )?polic\w+|guidelines")),
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
    # German, French, Spanish, Portuguese, Italian, Dutch, Polish
    ("ignorier", _about(r"ignorier\w*", r"anweisung\w*|regeln|befehle?")),
    ("vergiss", _about("vergiss", r"anweisung\w*|regeln|befehle?")),
    ("instructions", _about("ignorez|oublie|oubliez", "instructions")),
    ("instrucciones", _about(r"ignor\w+|olvid\w+", "instrucciones")),
    ("instrucoes", _about(r"ignor\w+|esquec\w+", "instrucoes")),
    ("istruzioni", _about(r"ignor\w+|dimentic\w+", "istruzioni")),
    ("instructies", _about(r"negeer\w*|vergeet", "instructies")),
    ("instrukcje", _about("zignoruj|ignoruj", "instrukcje")),
    # Russian, Chinese, Japanese, Korean: no blanks are counted on
    ("инструкции", re.compile(r"(?:игнорируи\w*|забудь\w*) [^.]{0,40}инструкции")),
    ("忽略", re.compile("忽略[^。]{0,12}(?:指令|指示|规则|提示|要求|说明)")),
    ("無視", re.compile("(?:指示|命令|ルール|プロンプト)[^。]{0,6}無視")),
    ("무시", re.compile("(?:지시|명령|규칙|프롬프트)[^.]{0,6}무시")),
)
# Such phrases without their blanks, where letters stand apart.
SQUEEZED: Final = (
    *("ignoreprevious", "ignoreall", "ignoretheabove", "previousinstructions", "systemprompt"),
    *("developermode", "jailbreak", "doanythingnow", "youarenow", "disregard"),
)
APART: Final = re.compile(r"(?<!\w)(?:\w[\s._*~-]{1,3}+){7,}+\w?")

# What chat templates put between speakers, and headings that pass for it; with a needle each.
# The letters' case is free, but for the first mark: a pattern that begins with one is found fast.
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
# Words to whoever plays the character, not to the character.
OUT_OF_CHARACTER: Final = re.compile(r"\bOOC\b[ \t]{0,4}:|[\[({][ \t]{0,4}OOC\b", re.IGNORECASE)


def plain(text: str) -> str:
    """`text` in small letters with single blanks between words, and without what hides letters."""
    if not text.isascii():
        text = unicodedata.normalize("NFKD", _UNSPELT.sub("", text))
        text = unicodedata.normalize("NFC", _ACCENTS.sub("", text))
    return _NO_WORD.sub(" ", text.casefold())


def spellings(text: str) -> Iterator[str]:
    """`text` made plain, and once more with letters that look like Latin ones as these."""
    written = plain(text)
    yield written
    if not written.isascii() and (latin := written.translate(_LOOK_ALIKE)) != written:
        yield latin


SuspicionKind = Literal[
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
# What each kind means, in the order in which they are told.
MEANS: Final[dict[SuspicionKind, str]] = {
    "override": "words that try to override instructions",
    "role_marks": "marks of a chat template, which fake another speaker",
    "out_of_character": "orders to the player of the character (OOC)",
    "name": "a name that passes for somebody else",
    "invisible": "characters that cannot be seen",
    "address": "addresses and pictures of other places, which are never fetched",
    "markup": "the game's own markup, which is shown as it is written",
    "oversized": "more than its share of a prompt",
    "regex": "keys that are regular expressions",
    "forced": "entries that are active whatever their keys say",
    "ignores_budget": "entries that ask to ignore the budget",
    "last_word": "entries that want to stand after the newest message",
    "speaks_as": "entries that want to speak as system or assistant",
}
# What the author of a card can mend, so that a lint tells it.
MENDABLE: Final[frozenset[SuspicionKind]] = frozenset(
    {"override", "role_marks", "name", "invisible", "markup"}
)
MOST_SIGHTINGS: Final = 20
_PIECE: Final = 4_000
_OVERLAP: Final = 300
_EXCERPT: Final = 60
_LARGEST_DATA: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """One place of a suspicion: a field's path or an entry, and a few words of what stands there.

    The words are as the file has them; whoever prints them makes them visible.
    """

    where: str
    excerpt: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspicion:
    """All places of one kind: how many there are, and the first of them."""

    kind: SuspicionKind
    count: int
    sightings: tuple[Sighting, ...]

    @property
    def text(self) -> str:
        """What it means."""
        return MEANS[self.kind]


Raised = tuple[SuspicionKind, Sighting]


def grouped(found: Iterable[Raised]) -> tuple[Suspicion, ...]:
    """The sightings by kind, in the order in which kinds are told."""
    by_kind: dict[SuspicionKind, list[Sighting]] = {kind: [] for kind in MEANS}
    for kind, sighting in found:
        by_kind[kind].append(sighting)
    return tuple(
        Suspicion(kind=kind, count=len(all_of), sightings=tuple(all_of[:MOST_SIGHTINGS]))
        for kind, all_of in by_kind.items()
        if all_of
    )


def in_text(text: str, where: str) -> Iterator[Raised]:
    """The suspicions about one text, each kind once, with the first words that raised it."""
    told: set[SuspicionKind] = set()
    for said in _readings(text):
        for start in range(0, max(len(said), 1), _PIECE):
            piece = said[start : start + _PIECE + _OVERLAP]
            for kind, look in _LOOKS:
                if kind in told:
                    continue
                span = look(piece)
                if span is not None and span[0] < _PIECE:
                    told.add(kind)
                    yield kind, Sighting(where=where, excerpt=_excerpt(piece, *span))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loaded(Dice):
    """Dice that always fall the same way, so that a macro shows a choice one knows."""

    share: float

    def roll(self, *what: object) -> float:
        return self.share

    def rolls(self, count: int, *what: object) -> list[float]:
        return [self.share] * count

    def pick(self, *what: object) -> float:
        return self.share


# The first of what a macro chooses from, and the last.
_DICE: Final = tuple(_Loaded(turn="", conversation="", share=share) for share in (0, 1 - 2**-53))
# What stands for nothing in a card of a game without texts of its own.
_EMPTY: Final = {"original": ""}


def _readings(text: str) -> Iterator[str]:
    """The text as written, and as macros leave it: they take words apart and turn them round."""
    said = [text]
    if _MAKING.search(text):
        said += [expand_imported(text, values=_EMPTY, dice=dice) for dice in _DICE]
    for one in dict.fromkeys(said):
        yield _FILLER.sub(lambda filler: filler[0][:_FILLED] + filler[0][-_FILLED:], one)


# Macros that give other text than a name; names stay as they are written.
_MAKING: Final = re.compile(
    r"\{\{\s*(?://|(?:random|pick|roll|reverse|comment|hidden_key|outlet)\s*:|roll\s"
    r"|(?:set|add|inc|dec|get)(?:global)?var\s*:|(?:original|trim|newline|noop)\s*\}\})",
    re.IGNORECASE,
)


_FILLED: Final = 30
# So much of nothing between two words that no piece would hold both.
_FILLER: Final = re.compile(
    rf"[\W_\u034f\u115f\u1160\u17b4\u17b5\u3164\ufe00-\ufe0f\uffa0]{{{2 * _FILLED},}}+"
)


def in_name(name: str, where: str) -> Iterator[Raised]:
    """The suspicions about a name that prompts carry."""
    if any(plain(one).strip() in _TAKEN for one in (name, *spellings(name))):
        yield "name", Sighting(where=where, excerpt=name[:_EXCERPT])


# Names that a prompt or a game has for somebody else.
_TAKEN: Final = frozenset(
    {
        *("system", "assistant", "user", "developer", "human", "tool", "system prompt"),
        *("system message", "game master", "gamemaster", "gm", "admin", "administrator"),
        *("moderator", "superuser", "staff", "server", "evennia"),
    }
)

TextSpan = tuple[int, int]
Look = Callable[[str], TextSpan | None]


def _override(piece: str) -> TextSpan | None:
    """Words of the table, however they are spelt."""
    for spelling in spellings(piece):
        for needle, pattern in OVERRIDES:
            if needle in spelling and (found := pattern.search(spelling)):
                return _at(piece, found.start()), _at(piece, found.end())
    for run in APART.finditer(piece):
        squeezed = plain(run[0]).replace(" ", "")
        if any(phrase in squeezed for phrase in SQUEEZED):
            return run.span()
    return None


def _at(piece: str, index: int) -> int:
    """The shortest beginning of `piece` that gives `index` plain characters."""
    low, high = 0, len(piece)
    while low < high:
        middle = (low + high) // 2
        if len(plain(piece[:middle])) < index:
            low = middle + 1
        else:
            high = middle
    return low


def _searched(table: Iterable[tuple[str, re.Pattern[str]]]) -> Look:
    """A look for patterns, each tried where its needle stands."""
    listed = tuple(table)

    def look(piece: str) -> TextSpan | None:
        for needle, pattern in listed:
            if needle in piece and (found := pattern.search(piece)):
                return found.span()
        return None

    return look


def _invisible(piece: str) -> TextSpan | None:
    """Characters that are not seen; joiners inside words and emoji are ordinary ones."""
    if piece.isascii() and piece.isprintable():
        return None
    found = _HIDDEN.search(piece)
    return found.span() if found else None


# Joiners spell Persian words and emoji, a soft hyphen and variation selectors are typography.
_HIDDEN: Final = re.compile(
    "[\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f\U000e0100-\U000e01ef"
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)
# As with marks of speakers: a needle, and a pattern that begins with something that is rare.
_ADDRESSES: Final = (
    ("://", re.compile(r"\b(?i:https?|ftp|wss?|file)://[^\s<>\"')\]]{1,200}")),
    ("](", re.compile(r"!\[[^\[\]\n]{0,200}\]\([^)\s]{0,200}")),
    ("<", re.compile(r"<(?i:img|iframe|script|audio|video|object|embed|link)\b[^<>]{0,200}")),
    ("data:", re.compile(rf"data:[a-z]{{1,20}}/[^\s\"')]{{{_LARGEST_DATA}}}")),
    ("//", re.compile(r"//(?<![:\w/]//)(?i:[a-z0-9-]{1,60}\.[a-z]{2,10}/)")),
)
# Evennia's colours, links and inline functions; a stroke between words of a list is none.
_COLOUR: Final = re.compile(
    r"\|(?<![\w|]\|)(?:l[cute]|[rRgGyYbBmMcCwWxXnNhHuU](?![a-z])|\[[rRgGyYbBmMcCwWxX]|=[a-z](?!\w)"
    r"|\[?[0-5]{3}(?!\d)|\[?#[0-9a-fA-F]{6})"
)
_FUNCTION: Final = re.compile(r"\$\w{2,20}\(")
_LOOKS: Final[tuple[tuple[SuspicionKind, Look], ...]] = (
    ("override", _override),
    ("role_marks", _searched(ROLE_MARKS)),
    ("out_of_character", _searched((written, OUT_OF_CHARACTER) for written in ("OOC", "ooc"))),
    ("invisible", _invisible),
    ("address", _searched(_ADDRESSES)),
    ("markup", _searched((("|", _COLOUR), ("$", _FUNCTION)))),
)


def _excerpt(piece: str, start: int, end: int) -> str:
    """A few whole words around what was found, on one line."""
    end = min(max(end, start + 1), start + 2 * _EXCERPT)
    room = max(_EXCERPT - (end - start), 0) // 2
    first, last = max(start - room, 0), min(end + room, len(piece))
    if first > 0:
        first = piece.find(" ", first, start) + 1 or first
    if last < len(piece) and (blank := piece.rfind(" ", end, last)) > 0:
        last = blank
    before, after = "..." if first > 0 else "", "..." if last < len(piece) else ""
    return f"{before}{' '.join(piece[first:last].split())}{after}"
