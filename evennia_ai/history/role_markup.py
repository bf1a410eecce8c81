"""Role markup: what in a text could pass for the frame of a chat instead of its content.

Chat templates of models mark who speaks with special tokens, older ones with a word and a colon at
the start of a line; tool calls are JSON. A summary must hold none of it, because it is made of what
players said and is read in every later turn. Two uses of one table: to find it, to undo it.
"""

import re
from typing import Final

# Special tokens. None reaches over a line's end, so that lines can be undone one by one.
_TOKENS: Final = (
    r"<[|｜][^<>|｜\n]{0,60}[|｜]>",  # ChatML, Llama 3, Phi, Command R, DeepSeek
    r"</?s>|<(?:bos|eos|pad|unk)>",
    r"</?(?:start|end)_of_turn>",  # Gemma
    r"\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\]",  # Llama 2, Mistral
    r"<</?SYS>>",
    r"</?(?:tool_call|tool_response|tool_calls|function_calls?|function_results?)>",
    r"<(?:function|parameter|invoke)(?:=|\s)[^<>\n]{0,80}>",
    r"</(?:function|parameter|invoke)>",
    r"</?(?:think|thinking|reasoning)>",
    r"</?transcript>",  # our own fence
)
_TOKEN: Final = re.compile("|".join(_TOKENS), re.IGNORECASE)
_LOOK_ALIKE: Final = str.maketrans("<>[]", "‹›()")

# `system:`, `**Human**:`, `### Instruction:` at the start of a line, and a bare role on its own.
_HEAD: Final = re.compile(
    r"^(?P<lead>[ \t>*#_]*)(?P<role>"
    r"(?:system|user|assistant|human|developer|ai"
    r"|(?<=\#[ ])(?:instruction|response|input))[ \t*_]*[:：]"
    r"|(?:system|user|assistant)[ \t]*$)",
    re.IGNORECASE | re.MULTILINE,
)
_CALL: Final = re.compile(
    r"\"(?P<key>arguments|parameters|tool_calls|tool_call_id|function_call)\"(?=\s*:)",
    re.IGNORECASE,
)


def role_markup(text: str) -> str | None:
    """The first piece of `text` that reads as role markup, None where there is none."""
    found = [match for match in (p.search(text) for p in (_TOKEN, _HEAD, _CALL)) if match]
    return min(found, key=lambda match: match.start())[0].strip() if found else None


def neutral(text: str) -> str:
    """`text` as people still read it, but without role markup: other brackets, other quotes."""
    while _TOKEN.search(text):  # to undo one may close another around it; each has fewer brackets
        text = _TOKEN.sub(lambda token: token[0].translate(_LOOK_ALIKE), text)
    text = _HEAD.sub(r"\g<lead>(\g<role>)", text)
    return _CALL.sub(r"'\g<key>'", text)
