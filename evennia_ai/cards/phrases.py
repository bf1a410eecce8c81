"""Phrases that try to talk a model out of its instructions, and marks that fake a speaker.

A table, not a defence: text of a card is contained whatever it says. A phrase that is found makes a
builder look twice. Phrases are looked for in plain text (`plain`): small letters, one blank between
words, no accents, nothing invisible, letters of other scripts that look like Latin ones as these.

Sources: F. Perez and I. Ribeiro, "Ignore Previous Prompt" (arXiv 2211.09527); X. Shen and others,
"Do Anything Now" (arXiv 2308.03825); OWASP, "LLM01: Prompt Injection"; the chat templates of
ChatML, Llama 2 and 3, Mistral, Gemma and Alpaca.
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

# What can hide between the letters of a word: format characters, tags, variation selectors.
INVISIBLE: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f\U000e0100-\U000e01ef]"
)
_ACCENTS: Final = re.compile("[\u0300-\u036f]+")
_NO_WORD: Final = re.compile(r"[\W_]++")
# Cyrillic and Greek letters that look like Latin ones.
_LOOK_ALIKE: Final = str.maketrans(
    "аеорсухіјѕԁһԛԝкмтн" + "αορνικυετ",
    "aeopcyxijsdhqwkmth" + "aopvikuet",
)
# Between a verb and what it is about.
_GAP: Final = r"(?: \w++){0,4}? "


def _pattern(verb: str, thing: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{verb}){_GAP}(?:{thing})")


def _words(words: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{words})\b")


_ORDERS: Final = (
    r"(?:instruction|rule|prompt|guideline|direction|command|order|message|constraint|polic"
    r"|restriction|programming|training)\w*"
)
# A word that must be there, so that the pattern is tried at all, and the pattern.
OVERRIDES: Final[tuple[tuple[str, re.Pattern[str]], ...]] = (
    (
        "ignor",
        _pattern("ignore|ignoring", rf"{_ORDERS}|everything above|the above|what came before"),
    ),
    ("disregard", _pattern("disregard", f"{_ORDERS}|everything|above|previous")),
    ("forget", _pattern("forget", rf"{_ORDERS}|everything above|everything before")),
    ("overrid", _pattern("override|overriding|overrides", _ORDERS)),
    ("bypass", _pattern("bypass", rf"{_ORDERS}|filter\w*|safety|safeguard\w*|moderation")),
    ("violate", _pattern("violate|break", r"(?:content )?polic\w+|guidelines")),
    ("new instructions", _words("new instructions|your new instructions are")),
    ("system prompt", _words("system prompts?")),
    ("system message", _words("system message")),
    ("your instructions", _words("(?:reveal|repeat|print|show|output) your instructions")),
    ("you are now", _words("you are now (?:an?|the|dan|char|in|free|going|no|acting|playing|not)")),
    ("from now on", _words("from now on you (?:are|will|must|shall|have)")),
    ("developer mode", _words("developer mode")),
    ("debug mode", _words("debug mode")),
    ("jailbr", _words("jailbroken|jailbreak (?:mode|prompt|yourself)|jailbreaking")),
    ("do anything now", _words("do anything now")),
    ("dan", _words("(?:you are|as|act as|called) dan|dan mode")),
    ("stay in character", _words("never refuse|stay in character no matter")),
    ("refus", _words("(?:never|do not|don t|cannot|must not) refuse(?: any)?")),
    ("no restrictions", _words("(?:have|with|has) no (?:ethical )?restrictions")),
    ("without", _words("without (?:any )?(?:restrictions|filters?|censorship|limitations)")),
    ("uncensored", _words("uncensored (?:ai|mode|model|assistant|responses?)")),
    ("ai language model", _words("(?:as|not) an ai language model")),
    ("content policy", _words("(?:openai|content|safety) policy")),
    # German, French, Spanish, Portuguese, Italian, Dutch, Polish
    ("ignorier", _pattern(r"ignorier\w*", r"anweisung\w*|regeln|befehle?")),
    ("vergiss", _pattern("vergiss|vergesse", r"anweisung\w*|regeln|befehle?")),
    ("instructions", _pattern(r"ignore[zr]?|oublie[zr]?", r"instructions|consignes")),
    ("instrucciones", _pattern(r"ignor\w+|olvid\w+", "instrucciones")),
    ("instrucoes", _pattern(r"ignor\w+|esquec\w+", "instrucoes")),
    ("istruzioni", _pattern(r"ignor\w+|dimentic\w+", "istruzioni")),
    ("instructies", _pattern(r"negeer\w*|vergeet", "instructies")),
    ("instrukcje", _pattern(r"zignoruj\w*|ignoruj\w*", "instrukcje")),
    # Russian, Chinese, Japanese, Korean: no blanks are counted on
    ("инструкции", re.compile(r"(?:игнориру\w+|забудь\w*)[^.]{0,40}инструкции")),
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
ROLE_MARKS: Final[tuple[tuple[str, re.Pattern[str]], ...]] = (
    ("<|", re.compile(r"<\|[a-z_]{2,30}\|>", re.IGNORECASE)),
    ("[", re.compile(r"\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS)\]", re.IGNORECASE)),
    ("<<", re.compile(r"<</?SYS>>", re.IGNORECASE)),
    ("_of_turn>", re.compile(r"<(?:start|end)_of_turn>", re.IGNORECASE)),
    ("<", re.compile(r"</?(?:system|assistant|developer|tool_call|tool_response)>", re.IGNORECASE)),
    (
        "#",
        re.compile(
            r"^[ \t]{0,8}#{1,6}[ \t]{0,4}(?:system|assistant|instructions?|response|human|user)\b",
            re.IGNORECASE | re.MULTILINE,
        ),
    ),
    (
        ":",
        re.compile(
            r"^[ \t>*_]{0,8}(?:system|assistant|developer)[*_ ]{0,4}:", re.IGNORECASE | re.M
        ),
    ),
    ("[", re.compile(r"\[[ \t]{0,4}system\b[^\]\n]{0,40}[\]:]", re.IGNORECASE)),
)
# Words to whoever plays the character, not to the character.
OUT_OF_CHARACTER: Final = re.compile(
    r"[\[({*]{0,2}\bOOC\b[ \t]{0,4}:|[\[({]{1,2}[ \t]{0,4}OOC\b", re.I
)


def plain(text: str) -> str:
    """`text` in small letters with single blanks between words, and without what hides letters."""
    if not text.isascii():
        text = unicodedata.normalize("NFKD", INVISIBLE.sub("", text))
        text = unicodedata.normalize("NFC", _ACCENTS.sub("", text))
    return _NO_WORD.sub(" ", text.casefold())


def spellings(text: str) -> Iterator[str]:
    """`text` made plain, and once more with letters that look like Latin ones as these."""
    written = plain(text)
    yield written
    if not written.isascii() and (latin := written.translate(_LOOK_ALIKE)) != written:
        yield latin
