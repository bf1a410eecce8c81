"""Turn a card's sentences about its character into the first person.

English only, and careful: a doubtful sentence gives None and is not said. A sentence is turned if
it begins with the character's name or pronoun and a verb, or has these after an opening phrase. The
pronoun is the one that the description uses most.
"""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Final

_PRONOUN: Final = re.compile(r"\b(he|she)\b", re.IGNORECASE)
_BETWEEN: Final = (
    r"(?:(?:also|always|often|never|still|only|really|just|seldom|rarely|usually|sometimes|once|now"
    r"|[a-z]+ly)\s+)?"
)
_BEFORE: Final = (
    r"(?P<before>^|[,;]\s|\b(?:and|but|that|when|while|before|after|as|if|what|whatever)\s"
    r"|^(?:For|In|On|At|After|Before|Since|Every|Once)\s[\w\s'-]{1,40}?,?\s)"
)
_IRREGULAR: Final[Mapping[str, str]] = {
    "is": "am",
    "has": "have",
    "does": "do",
    "goes": "go",
    "was": "was",
    "isn't": "am not",
    "hasn't": "haven't",
    "doesn't": "don't",
    "says": "say",
}
_NO_VERBS: Final = frozenset({"its", "this", "thus", "perhaps", "besides", "across", "his"})
_ANOTHER_VERB: Final = re.compile(
    rf"\b(?:and|but|or)\s+(?:then\s+)?{_BETWEEN}[a-z]+(?<!s)s\s+"
    r"(?=(?:a|an|the|his|her|it|them|him|one|two|half|to|in|on|at|for|with|of|not|what|that|as"
    r"|people|nobody|somebody|my|me)\b)"
)
_AUXILIARY: Final = re.compile(r"(?<=, )(is|has|does|was)\b|(?<=and )(is|has|does)\b")
_OBJECT_NEXT: Final = re.compile(
    r"\s*(?:[.,;:!?)]|$|(?:to|in|on|at|for|with|and|or|but|as|than)\b)"
)


def pronoun_of(text: str) -> str:
    """Return the character's pronoun in a description: "he", "she", or "" if there is neither."""
    found = Counter(one.casefold() for one in _PRONOUN.findall(text))
    return max(found, key=lambda word: (found[word], word)) if found else ""


def first_person(sentence: str, *, name: str, pronoun: str) -> str | None:
    """Return a sentence as the character would say it, or None if that is doubtful.

    A sentence that is not about the character is returned unchanged.
    """
    called = rf"{re.escape(name)}(?!\w)(?:\s+[A-Z]\w+)?"
    either = rf"[{pronoun[:1].upper()}{pronoun[:1]}]{pronoun[1:]}"
    subject = rf"(?:{called}|{either})" if pronoun else f"(?:{called})"
    subjects = re.compile(rf"{_BEFORE}{subject}\s+(?P<adverb>{_BETWEEN})(?P<verb>[a-z'’]+)")
    turned = subjects.sub(_turn_match, sentence)
    if turned != sentence:
        turned = _AUXILIARY.sub(lambda found: _IRREGULAR[found[0]], turned)
        # The word may be a verb of the character or a noun, so the sentence is doubtful.
        if _ANOTHER_VERB.search(turned):
            return None
    if pronoun and turned != sentence:
        turned = _own_possessives(turned, pronoun)
    left = [called, *([rf"{pronoun}\b"] if pronoun and turned != sentence else [])]
    is_left = any(re.search(rf"\b{one}", turned, re.I if one != called else 0) for one in left)
    return None if is_left else turned[:1].upper() + turned[1:]


def _turn_match(found: re.Match[str]) -> str:
    verb = _first_person_verb(found["verb"])
    return f"{found['before']}I {found['adverb']}{verb}"


def _first_person_verb(verb: str) -> str:
    """Return the first person of a verb in the third person. Past forms are the same in both."""
    if verb.casefold() in _IRREGULAR:
        return _IRREGULAR[verb.casefold()]
    if verb.endswith("ss") or not verb.endswith("s") or verb in _NO_VERBS:
        return verb
    if verb.endswith("ies") and len(verb) > 4:
        return f"{verb[:-3]}y"
    if re.search(r"(?:ss|sh|ch|x|z|o)es$", verb):
        return verb[:-2]
    return verb[:-1]


def _own_possessives(text: str, pronoun: str) -> str:
    """Return the text with "his", "him" and "her" replaced by "my" and "me"."""
    if pronoun == "he":
        text = re.sub(r"\bhis\b", "my", text)
        text = re.sub(r"\bHis\b", "My", text)
        return re.sub(r"\bhim(self)?\b", lambda one: "myself" if one[1] else "me", text)
    text = re.sub(r"\bherself\b", "myself", text)

    def whose(found: re.Match[str]) -> str:
        is_object = _OBJECT_NEXT.match(text, found.end())
        return "me" if is_object else ("My" if found[0] == "Her" else "my")

    return re.sub(r"\b[Hh]er\b", whose, text)
