"""Role markup: what in a text could pass for the frame of a chat instead of its content.

Chat templates of models mark who speaks with special tokens, and a server reads them wherever they
stand, inside a player's words too; older templates mark it with a word and a colon at the start of
a line; tool calls are JSON. Uses of one table: to find it, and to undo it by degrees. What is sent
to a model holds no special token at all. A summary holds no role markup of any kind, because it is
made of what players said and is read in every later turn.
"""

import re
from typing import Final

from evennia_ai.prompt.names import FACTS

# Special tokens. None reaches over a line's end, so that lines can be undone one by one.
_SPECIAL: Final = (
    # ChatML, Llama 3 and 4, Phi, Command R, DeepSeek, harmony, GLM, Kimi; Gemma has one bar alone.
    r"<[|｜][^<>|｜\n]{0,60}[|｜]?>",
    r"<[^<>|｜\s]{1,60}[|｜]>",
    r"</?s>|<(?:bos|eos|pad|unk|mask|sop|eop|eod|eoh|eoa)>",
    r"<(?:[A-Z]{2,20}_){1,6}TOKEN>",  # Command R
    r"<(?:unused|reserved_|extra_id_|SPECIAL_)\d{1,6}>",
    r"</?(?:start|end)_of_(?:turn|image|audio|role|text)>",  # Gemma
    r"\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT)\]",  # Mistral
    r"\[/?(?:ARGS|CALL_ID|THINK|MODEL_SETTINGS|BOS|EOS|gMASK|sMASK)\]",  # Mistral, Kimi, GLM
    r"<</?SYS>>",
    r"\[\|[^\[\]|\n]{0,60}\|\]",  # EXAONE
    r"\]~!?b[\[\]]|\[e~\[",  # MiniMax
)
# Tags that models write around calls, results and thoughts; some authors write them on purpose.
_TAGS: Final = (
    r"</?(?:\w{1,20}:)?(?:tool_call|tool_response|tool_calls|function_calls?|function_results?)>",
    r"<(?:\w{1,20}:)?(?:function|parameter|invoke)(?:=|\s)[^<>\n]{0,80}>",
    r"</(?:\w{1,20}:)?(?:function|parameter|invoke)>",
    r"</?(?:think|thinking|reasoning)>",
)
_OWN_FENCE: Final = r"</?transcript>"
_TOKEN: Final = re.compile("|".join(_SPECIAL), re.IGNORECASE)
_TOKEN_OR_TAG: Final = re.compile("|".join((*_SPECIAL, *_TAGS)), re.IGNORECASE)
_TOKEN_TAG_OR_FENCE: Final = re.compile("|".join((*_SPECIAL, *_TAGS, _OWN_FENCE)), re.IGNORECASE)
_LOOK_ALIKE: Final = str.maketrans("<>[]", "‹›()")

# `system:`, `**Human**:`, `### Instruction:` at the start of a line, and a bare role on its own.
_HEAD: Final = re.compile(
    r"^(?P<lead>[ \t>*#_]*)(?P<role>"
    r"(?:system|user|assistant|human|developer|ai"
    r"|(?<=\#[ ])(?:instruction|response|input))[ \t*_]*[:：]"
    r"|(?:system|user|assistant)[ \t]*$)",
    re.IGNORECASE | re.MULTILINE,
)
# `Who speaks:` at the start of a line or a sentence: how the game itself tells facts to a model.
_FACT: Final = re.compile(
    r"(?P<lead>^[ \t>*#_-]*|[.!?…][\"'”’)]*[ \t]+)(?P<fact>"
    rf"(?:{'|'.join(sorted(FACTS, key=len, reverse=True))}"
    r"|what you remember of [^:：\n]{1,80}"
    r"|what [^:：\n]{1,80}? (?:is to you|has shown you before)))"
    r"[ \t*_]*[:：]",
    re.IGNORECASE | re.MULTILINE,
)
# `[Tool result]`, `[Game instruction]`, `[Summary of ...]`, `(event, give)` are the game's own.
_OWN_HEAD: Final = re.compile(
    r"[\[［](?P<head>\s*/?\s*(?:tool\s+results?|game\s+instruction|summary\s+of)\b"
    r"[^\[\]［］\n]{0,80})[\]］]",
    re.IGNORECASE,
)
_EVENT: Final = re.compile(r"^(?P<lead>[ \t]*)\((?=event, )", re.IGNORECASE | re.MULTILINE)
_CALL: Final = re.compile(
    r"\"(?P<key>arguments|parameters|tool_calls|tool_call_id|function_call)\"(?=\s*:)",
    re.IGNORECASE,
)


def role_markup(text: str) -> str | None:
    """The first piece of `text` that reads as role markup, None where there is none."""
    tables = (_TOKEN_TAG_OR_FENCE, _HEAD, _CALL)
    found = [match for match in (p.search(text) for p in tables) if match]
    return min(found, key=lambda match: match.start())[0].strip() if found else None


def neutral(text: str) -> str:
    """`text` as people still read it, but without role markup: other brackets, other quotes."""
    text = _undone(_TOKEN_TAG_OR_FENCE, text)
    text = _HEAD.sub(r"\g<lead>(\g<role>)", text)
    text = _FACT.sub(r"\g<lead>(\g<fact>)", text)
    text = _EVENT.sub(r"\g<lead>", _OWN_HEAD.sub(r"(\g<head>)", text))
    return _CALL.sub(r"'\g<key>'", text)


def without_tags(text: str) -> str:
    """`text` with other brackets where special tokens and tags of models stand."""
    return _undone(_TOKEN_OR_TAG, text)


def without_tokens(text: str) -> str:
    """`text` with other brackets where special tokens of chat templates stand."""
    return _undone(_TOKEN, text)


def _undone(pattern: re.Pattern[str], text: str) -> str:
    if "<" not in text and "[" not in text and "]" not in text:
        return text
    while pattern.search(text):  # to undo one may close another around it; each has fewer brackets
        text = pattern.sub(lambda token: token[0].translate(_LOOK_ALIKE), text)
    return text
