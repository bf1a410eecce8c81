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
    r"^(?P<lead>[ \t>*#_]*)(?P<role>"
    rf"(?:{_ROLES}|(?<=\#[ ])(?:{_HEADINGS}))[ \t*_]*[:：]"
    r"|(?:system|user|assistant)[ \t]*$)",
    re.IGNORECASE | re.MULTILINE,
)
_HEAD_IN_LINE: Final = re.compile(
    rf"(?<=[^\w\n])(?P<role>{'|'.join((*OTHER_ROLES_IN_LINE, *OWN_ROLES_IN_LINE))}):"
)
# Matches labels such as `Who speaks:` at the start of a line or after a punctuation mark. The game
# states facts with these labels, so players must not imitate them.
_FACT: Final = re.compile(
    r"(?P<lead>^[ \t>*#_-]*|[^\w\s][\"'”’)]*[ \t]*)(?P<fact>"
    rf"(?:{'|'.join(sorted(FACTS, key=len, reverse=True))}"
    r"|what you remember of [^:：\n]{1,80}"
    r"|what [^:：\n]{1,80}? (?:is to you|has shown you before)))"
    r"[ \t*_]*[:：]",
    re.IGNORECASE | re.MULTILINE,
)
# Matches headings in brackets that only the game may write, such as `[Tool result]`,
# `[Game instruction]`, `[Summary of ...]` and `(event, give)`.
_OWN_HEAD: Final = re.compile(
    r"[\[［](?P<head>\s*/?\s*(?:tool\s+results?|game\s+instruction|summary\s+of)\b"
    r"[^\[\]［］\n]{0,80})[\]］]",
    re.IGNORECASE,
)
_EVENT: Final = re.compile(r"[(（](?=\s*event\s*[,，])", re.IGNORECASE)
_CALL: Final = re.compile(
    r"\"(?P<key>arguments|parameters|tool_calls|tool_call_id|function_call)\"(?=\s*:)",
    re.IGNORECASE,
)


def find_role_markup(text: str) -> str | None:
    """Return the first role markup in a text, such as `<|im_start|>`, or None."""
    tables = (_TOKEN_TAG_OR_FENCE, _HEAD, _HEAD_IN_LINE, _CALL)
    found = [match for match in (p.search(text) for p in tables) if match]
    return min(found, key=lambda match: match.start())[0].strip() if found else None


def neutralize_markup(text: str) -> str:
    """Return a text with brackets and quotes of role markup replaced, readable for people."""
    text = neutralize_marks(_TOKEN_TAG_OR_FENCE, text)
    text = _HEAD_IN_LINE.sub(r"(\g<role>)", text)
    text = _HEAD.sub(r"\g<lead>(\g<role>)", text)
    text = _FACT.sub(r"\g<lead>(\g<fact>)", text)
    text = _EVENT.sub("", _OWN_HEAD.sub(r"(\g<head>)", text))
    return _CALL.sub(r"'\g<key>'", text)


def without_tags(text: str) -> str:
    """Return a text with brackets replaced in special tokens and in tags that models use."""
    return neutralize_marks(_TOKEN_OR_TAG, text)


def without_tokens(text: str) -> str:
    """Return a text with brackets replaced in the special tokens of chat templates."""
    return neutralize_marks(_TOKEN, text)
