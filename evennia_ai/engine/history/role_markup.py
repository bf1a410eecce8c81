"""Role markup: text that a model could take for the frame of a chat instead of its content.

Servers obey the special tokens of their models' chat templates anywhere, also in a player's words.
Older templates mark a role with a word and a colon at the start of a line. Tool calls are JSON.
`evennia_ai.engine.text.chat_markup` lists these marks. This module finds them and makes them
harmless, in three degrees:

* `without_tokens` is for texts of the game itself, whose authors may write tags on purpose.
* `without_tags` is for everything else that goes to a model.
* `neutralize_markup` is for players' words that the game states as facts, and for summaries.
  Summaries contain players' words and are read in every later turn.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from evennia_ai.engine.prompt.names import FACTS
from evennia_ai.engine.text.chat_markup import (
    MARK_START,
    OTHER_HEADINGS,
    OTHER_ROLES,
    OTHER_ROLES_IN_LINE,
    OWN_HEADINGS,
    OWN_ROLES,
    OWN_ROLES_IN_LINE,
    THOUGHT_MARKS,
    mark_pattern,
    neutralize_marks,
)
from evennia_ai.engine.text.words import fold_letters

_TAGS: Final = (
    f"{mark_pattern('tokens', 'call_begins', 'call_ends', 'answers', 'switches')}|{THOUGHT_MARKS}"
)
_OWN_FENCE: Final = r"</?transcript>"
_TOKEN: Final = re.compile(f"{MARK_START}(?:{mark_pattern('tokens')})", re.IGNORECASE)
_TOKEN_OR_TAG: Final = re.compile(f"{MARK_START}(?:{_TAGS})", re.IGNORECASE)
_TOKEN_TAG_OR_FENCE: Final = re.compile(f"{MARK_START}(?:{_TAGS}|{_OWN_FENCE})", re.IGNORECASE)

# Matches `system:`, `**Human**:` or `### Instruction:` at the start of a line, and a line with
# only the name of a role.
_ROLES: Final = "|".join((*OTHER_ROLES, *OWN_ROLES))
_HEADINGS: Final = "|".join((*OTHER_HEADINGS, *OWN_HEADINGS))
_HEAD: Final = re.compile(
    r"^(?P<lead>[ \t>*#_]*)"
    rf"(?P<head>(?:{_ROLES}|(?<=\#[ ])(?:{_HEADINGS}))(?=[ \t*_]*[:：])"
    r"|(?:system|user|assistant)(?=[ \t]*$))(?:[ \t*_]*[:：])?",
    re.IGNORECASE | re.MULTILINE,
)
_HEAD_IN_LINE: Final = re.compile(
    rf"(?P<lead>(?<=[^\w\n]))(?P<head>{'|'.join((*OTHER_ROLES_IN_LINE, *OWN_ROLES_IN_LINE))}):"
)
# Matches labels such as `Who speaks:` or `System:` at the start of a line or after a punctuation
# mark. The game states facts with such labels, so players must not imitate them.
_FACT: Final = re.compile(
    r"(?P<lead>^[ \t>*#_-]*|[^\w\s][\"'”’)]*[ \t]*)(?P<head>"
    rf"(?:{'|'.join(sorted(FACTS, key=len, reverse=True))}|{_ROLES}"
    r"|what you remember of [^:\n]{1,80}"
    r"|what [^:\n]{1,80}? (?:is to you|has shown you before)"
    r"|how you answer this time[^:\n]{0,80}"
    r"|how [^:\n]{1,80}? is described by their player[^:\n]{0,80}))"
    r"[ \t*_]*:",
    re.IGNORECASE | re.MULTILINE,
)
# Matches headings in brackets that only the game may write, such as `[Tool result]`,
# `[Game instruction]`, `[Summary of ...]` and `(event, give)`.
_OWN_HEAD: Final = re.compile(
    r"(?P<lead>)\[(?P<head>\s*/?\s*(?:tool\s+results?|game\s+instructions?|summary\s+of)\b"
    r"[^\[\]\n]{0,80})\]",
    re.IGNORECASE,
)
_EVENT: Final = re.compile(r"(?P<lead>)\((?=(?P<head>\s*event\s*,))", re.IGNORECASE)
_CALL: Final = re.compile(
    r"\"(?P<key>arguments|parameters|tool_calls|tool_call_id|function_call)\"(?=\s*:)",
    re.IGNORECASE,
)
# Signs that read like those of a heading and that Unicode does not call variants of them.
_SIGNS: Final = {
    **dict.fromkeys("∶꞉ː˸", ":"),
    **dict.fromkeys("【〔〖⟦", "["),
    **dict.fromkeys("】〕〗⟧", "]"),
    **dict.fromkeys("❨⦅", "("),
}


def find_role_markup(text: str) -> str | None:
    """Return the first role markup in a text, such as `<|im_start|>`, or None."""
    tables = (_TOKEN_TAG_OR_FENCE, _HEAD, _HEAD_IN_LINE, _CALL)
    found = [match for match in (p.search(text) for p in tables) if match]
    return min(found, key=lambda match: match.start())[0].strip() if found else None


def neutralize_markup(text: str) -> str:
    """Return the text with brackets and quotes of role markup replaced, readable for people.

    A heading is also found in letters and signs that only look like its own.
    """
    text = neutralize_marks(_TOKEN_TAG_OR_FENCE, text)
    for headings in (_HEAD_IN_LINE, _HEAD, _FACT, _OWN_HEAD):
        text = _replace_headings(headings, "({})", text)
    text = _replace_headings(_EVENT, "", text)
    return _CALL.sub(r"'\g<key>'", text)


def _replace_headings(headings: re.Pattern[str], form: str, text: str) -> str:
    """Write each heading in another form, with the letters that the text has for it."""
    letters, places = _read_as(text)
    kept, at = [], 0
    for found in headings.finditer(letters):
        first, end = places[found.start("head")], places[found.end("head")]
        kept += [text[at : places[found.end("lead")]], form.format(text[first:end])]
        at = places[found.end()]
    return "".join((*kept, text[at:])) if kept else text


def _read_as(text: str) -> tuple[str, Sequence[int]]:
    """Return a text with look-alike letters replaced, and the index of each letter in the text.

    The list of indexes has one more item: the length of the text.
    """
    if text.isascii():
        return text, range(len(text) + 1)
    read = [(letter, place) for place, sign in enumerate(text) for letter in _letters_of(sign)]
    return "".join(letter for letter, _ in read), [*(place for _, place in read), len(text)]


@lru_cache(maxsize=4096)
def _letters_of(sign: str) -> str:
    """Return the letters that people read in one sign, in its case."""
    if sign.isascii():
        return sign
    letters = fold_letters(_SIGNS.get(sign, sign))
    return letters.upper() if sign.isupper() else letters


def without_tags(text: str) -> str:
    """Return a text with brackets replaced in special tokens and in tags that models use."""
    return neutralize_marks(_TOKEN_OR_TAG, text)


def without_tokens(text: str) -> str:
    """Return a text with brackets replaced in the special tokens of chat templates."""
    return neutralize_marks(_TOKEN, text)
