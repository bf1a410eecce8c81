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
