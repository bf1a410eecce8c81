"""Find the question whether an NPC is a machine, asked by a player and not by a character.

A character may ask a golem whether it is a machine. Therefore words that belong to a game's world,
such as "robot" or "human", count only in a line that is marked as out of character. Words such as
"language model" count always. Each pattern looks at a bounded number of words.

English and German have patterns here. The catalogue of any other language has a list of questions,
and each of them counts always.
"""

import re
from functools import lru_cache
from typing import Final

from evennia_ai.engine.text.phrases import translatable
from evennia_ai.npc.senses.languages import catalogue_languages, translate

QUESTIONS: Final = translatable(
    "Are you an AI? Are you a bot? Are you a chatbot? Are you a language model?"
    " Am I talking to an AI? Am I talking to a bot?"
)
"""The questions for translators. Each ends with a question mark."""

_MARK: Final = re.compile(r"\booc\b|\bout of character\b|\(\(|\baußerhalb der rolle\b", re.I)
_MOST: Final = 2000
"""The most characters of a line that are searched."""

_AI: Final = (
    r"(?:a\.?i\.?|artificial intelligence|(?:chat|ai)[- ]?bot|bot|llm|(?:large )?language model|"
    r"chat ?gpt|gpt)"
)
_EN_FILL: Final = r"(?:(?:really|actually|just|maybe|secretly|only) ){0,2}"
_EN_PERSON: Final = r"(?:(?:an? )?(?:real |actual |living )?(?:human|person|player)(?: being)?)"
_EN_THING: Final = r"(?:an? )?(?:robot|machine|computer|program|npc|real)"
_KI: Final = (
    r"(?:k\.?i\.?|künstliche[n]? intelligenz|(?:chat|ki)[- ]?bot|bot|llm|sprachmodell|"
    r"chat ?gpt|gpt)"
)
_DE_FILL: Final = r"(?:(?:denn|eigentlich|wirklich|etwa|nur|vielleicht|hier|gerade) ){0,3}"
_DE_PERSON: Final = (
    r"(?:(?:eine? )?(?:echte[rn]? |wirkliche[rn]? )?(?:mensch|person|spieler(?:in)?))"
)
_DE_THING: Final = r"(?:eine? )?(?:roboter|maschine|computer|programm|npc|nsc|echt)"


def _question(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


_ALWAYS: Final[tuple[tuple[str, re.Pattern[str]], ...]] = (
    (
        "en",
        _question(
            rf"\b(?:are|r) (?:you|u) {_EN_FILL}(?:{_EN_PERSON},? or )?{_EN_FILL}(?:an? )?{_AI}\b"
            rf"|\b(?:am i|are we) {_EN_FILL}(?:talking|speaking|chatting) (?:to|with) "
            rf"(?:{_EN_PERSON},? or )?(?:an? )?{_AI}\b"
        ),
    ),
    (
        "de",
        _question(
            rf"\b(?:bist du|sind sie|seid ihr) {_DE_FILL}(?:{_DE_PERSON},? oder )?"
            rf"(?:eine? )?{_KI}\b"
            rf"|\b(?:rede|spreche|schreibe|chatte) ich {_DE_FILL}mit "
            rf"(?:einer?|einem) {_KI}\b"
        ),
    ),
)
_IF_MARKED: Final[tuple[tuple[str, re.Pattern[str]], ...]] = (
    (
        "en",
        _question(
            rf"\b(?:are|r) (?:you|u) {_EN_FILL}(?:{_EN_PERSON}|{_EN_THING})\b"
            rf"|\b(?:am i|are we) {_EN_FILL}(?:talking|speaking|chatting) (?:to|with) "
            rf"(?:{_EN_PERSON}|{_EN_THING})\b"
        ),
    ),
    (
        "de",
        _question(
            rf"\b(?:bist du|sind sie|seid ihr) {_DE_FILL}(?:{_DE_PERSON}|{_DE_THING})\b"
            rf"|\b(?:rede|spreche|schreibe|chatte) ich {_DE_FILL}mit "
            r"(?:einer?|einem) (?:echten )?(?:menschen|person|roboter|maschine|computer|npc)\b"
        ),
    ),
)


@lru_cache(maxsize=16)
def language_of_sincere_question(line: str) -> str:
    """Return the language in which a line asks whether an NPC is a machine, "" if it does not.

    The cache can be small, because all listeners in a room get the same line one after the other.
    """
    text = " ".join(line[:_MOST].split())
    patterns = (*_ALWAYS, *_IF_MARKED) if _MARK.search(text) else _ALWAYS
    patterns = (*patterns, *_of_catalogues())
    return next((language for language, asks in patterns if asks.search(text)), "")


@lru_cache(maxsize=1)
def _of_catalogues() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return a pattern of the questions in each catalogue whose language has no pattern here."""
    found = []
    for language in catalogue_languages():
        if all(language != known for known, _ in _ALWAYS):
            asked = re.split("[?？;؟]", translate(QUESTIONS, language))
            words = [" ".join(one.split()) for one in asked if one.strip(" ¿")]
            any_of = "|".join(re.escape(one.strip("¿ ")) for one in words)
            found.append((language, _question(rf"(?<!\w)(?:{any_of})(?!\w)")))
    return tuple(found)
