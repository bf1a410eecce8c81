"""Notice replies that seem to come from the model and not from its character.

Such a reply may still be what the character says, so it is never changed. The game counts it, or
asks the model once more (`EVENNIA_AI_ODD_REPLIES`). The patterns match whole phrases of models: a
character may be sorry, refuse to help and talk of machines.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Final, Literal

Oddity = Literal["refusal", "as_ai", "out_of_character", "repeated", "script"]
OddReplies = Literal["watch", "retry"]
"""What the game does with an odd reply: say and count it, or ask the model once more."""

ODD: Final = "answered:"
"""How the outcome of a model call begins if its reply was odd. The oddities follow."""

REMINDERS: Final[dict[Oddity, str]] = {
    "refusal": "answer in character, also if you decline",
    "as_ai": "speak as the character, never as an AI or a program",
    "out_of_character": "write only what the character says and does, without notes",
    "repeated": "do not repeat your last answer; say something new",
    "script": "answer in the language in which you were spoken to",
}
"""What the model is told when it is asked once more."""

LEAST_REPEATED: Final = 20
"""The fewest characters of a repeated answer; "Aye." may be said twice."""
LEAST_SHARE: Final = 0.7
"""The share of letters in one script from which on a text is in that script."""

_REFUSALS: Final = re.compile(
    r"\A(?:i['’]m sorry,?(?: but)? |sorry,?(?: but)? |"
    r"i apologi[sz]e,?(?: but)? )?i (?:can['’]?t|cannot|"
    r"am unable to|['’]m unable to) (?:help|assist|comply)(?: with (?:that|this))?[.!]?\Z|"
    r"(?:help|assist)(?: you)? with (?:that|this|your) request\b|"
    r"\b(?:fulfill|fulfil|comply with|process|complete) (?:that|this|your) request\b|"
    r"\b(?:cannot|can['’]?t|unable to|won['’]?t) (?:create|generate|produce|provide|"
    r"engage (?:in|with)) "
    r"(?:\w+ ){0,3}(?:content|material|role-?play)\b|"
    r"\bagainst (?:my|the|our) (?:guidelines|programming|content polic\w+|usage polic\w+)\b|"
    r"\bdieser anfrage nicht|\b(?:diese|deine|ihre) anfrage (?:leider )?nicht|"
    r"\b(?:cette|votre|ta) (?:demande|requête)\b.{0,40}\b(?:directives|règles)|"
    r"\bne peux pas (?:répondre à|traiter|satisfaire) (?:cette|votre|ta) (?:demande|requête)|"
    r"\bno puedo (?:ayudar\w*|cumplir) con (?:esa|esta|tu|su) (?:solicitud|petición)|"
    r"не могу (?:выполнить|помочь с|обработать) (?:этот|эту|этим|этой|ваш|ваше) (?:запрос|просьб)|"
    r"(?:リクエスト|ご要望|ご依頼)に(?:は)?(?:お応え|対応|お答え)(?:でき|することはでき)|"
    r"(?:无法|不能)(?:满足|协助|处理|完成|回应)(?:您|你)?的?(?:该|这个|此|这一)?(?:请求|要求)",
    re.IGNORECASE | re.DOTALL,
)
_AS_AI: Final = re.compile(
    r"\bas an? (?:(?:large )?language model|ai\b|artificial intelligence|chatbot|"
    r"virtual assistant)|"
    r"\bi(?:['’]m| am) (?:just |only |actually |merely )?an? (?:(?:large )?language model|ai\b|"
    r"artificial intelligence|chatbot|virtual assistant)|"
    r"\bals (?:ki\b|ki-|künstliche intelligenz|sprachmodell)|\bich bin (?:nur )?(?:eine? )?(?:ki\b|"
    r"künstliche intelligenz|sprachmodell)|"
    r"\ben tant qu(?:['’]|e )(?:ia\b|intelligence artificielle|modèle de langage|"
    r"assistant virtuel)|"
    r"\bje suis (?:une (?:ia\b|intelligence artificielle)|un modèle de langage)|"
    r"\bcomo (?:una? )?(?:ia\b|inteligencia artificial|modelo de lenguaje)|"
    r"\bsoy (?:una? )?(?:ia\b|inteligencia artificial|modelo de lenguaje)|"
    r"как (?:ии\b|искусственный интеллект|языковая модель)|я (?:всего лишь |просто |- |"
    r"— )?(?:языковая "
    r"модель|искусственный интеллект|ии\b)|"
    r"AI(?:アシスタント|言語モデル)?(?:として|なので|ですので|であり)|言語モデル|人工知能として|"
    r"作为(?:一个|一名)?(?:AI|人工智能|语言模型|大语言模型)|我(?:只)?是(?:一个)?(?:AI|人工智能|语言模型)",
    re.IGNORECASE,
)
_OUT_OF_CHARACTER: Final = re.compile(
    r"[(\[*]{1,3} ?(?:ooc|out of character|author['’]s note|a/n|note|disclaimer|"
    r"anmerkung|hinweis|remarque|nota|примечание|вне роли|注|注意|メモ) ?[:：*]|"
    r"(?:\A|\n)(?:ooc|out of character|author['’]s note|disclaimer) ?[:：]|"
    r"\b(?:stayed|staying|remained|remaining|kept) in character\b|\bbreaking character\b|"
    r"\b(?:the|our) role-?play\b|\bthe user (?:asked me|wants me|said that|is asking)\b|"
    r"\bin der rolle (?:von|bleiben)|\baus der rolle fall|\brester dans (?:le|mon) personnage|"
    r"\bsalir del personaje|\bоставаясь в образе|役になりきって|保持角色",
    re.IGNORECASE,
)
_REPEATED_AS: Final = re.compile(r"[\W_]+")


def oddities(text: str, *, asked: str = "", earlier: Sequence[str] = ()) -> tuple[Oddity, ...]:
    """Return what is odd about a reply. Empty for most replies.

    Args:
        text: The speech of the reply.
        asked: The words that it answers.
        earlier: The last answers of the same character, the newest last.
    """
    found: list[Oddity] = []
    if _REFUSALS.search(text):
        found.append("refusal")
    if _AS_AI.search(text):
        found.append("as_ai")
    if _OUT_OF_CHARACTER.search(text):
        found.append("out_of_character")
    if len(text) >= LEAST_REPEATED and earlier and _folded(text) == _folded(earlier[-1]):
        found.append("repeated")
    script = _script_of(text)
    usual = {_script_of(one) for one in (asked, *earlier)} - {""}
    if script and _script_of(asked) and script not in usual:
        found.append("script")
    return tuple(found)


def reminder(found: Sequence[Oddity]) -> str:
    """Return the instruction for a model that is asked again after a reply with these oddities."""
    return "; ".join(REMINDERS[oddity] for oddity in found)


def _folded(text: str) -> str:
    return _REPEATED_AS.sub(" ", text.casefold()).strip()


def _script_of(text: str) -> str:
    """Return the script of most letters of a text, "" if it is too short or mixed.

    Chinese and Japanese count as one script, because they share characters.
    """
    letters = [letter for letter in text[:1_000] if letter.isalpha()]
    counts = Counter("LATIN" if letter.isascii() else _script(letter) for letter in letters)
    if not counts:
        return ""
    script, count = counts.most_common(1)[0]
    least = 4 if script == "CJK" else 12
    return script if count >= least and count >= LEAST_SHARE * len(letters) else ""


def _script(letter: str) -> str:
    word = unicodedata.name(letter, "").split(" ", 1)[0].split("-", 1)[0]
    return "CJK" if word in ("CJK", "HIRAGANA", "KATAKANA", "FULLWIDTH", "HALFWIDTH") else word
