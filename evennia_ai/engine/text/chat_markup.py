"""The marks with which chat templates of models frame a conversation, by family of models.

The table `FAMILIES` serves two purposes. In texts of players and authors a mark is neutralised,
because a server would obey it. In a model's output, a mark that begins a message of another role
ends the reply, and any other mark is removed. The table contains regular expressions. They ignore
case unless stated otherwise. None matches a line break, except between a mark and the role after
it. All are bounded, so that the time for a hostile text is linear in its length.

Sources: the chat templates and added tokens that the families publish with their models.
"""

import re
from dataclasses import dataclass
from itertools import chain
from typing import Final, Literal

OTHER_ROLES: Final = ("user", "human", "system", "developer", "gpt4 correct user")
"""Names of other speakers' roles, as in `User:`.

A model that writes `User:` is inventing the player's next message.
"""

OWN_ROLES: Final = ("assistant", "ai", "gpt4 correct assistant")
"""Names of the model's own role, as in `Assistant:`."""

OTHER_ROLES_IN_LINE: Final = ("USER", "HUMAN", "SYSTEM", "DEVELOPER", "GPT4 Correct User")
OWN_ROLES_IN_LINE: Final = ("ASSISTANT", "GPT4 Correct Assistant")
"""Role labels of the model that begin a message even in the middle of a line.

They count only in this letter case. Vicuna's chat template uses these labels.
"""

OTHER_HEADINGS: Final = ("instruction", "input")
"""Headings of other speakers' messages (`### Instruction:`), from Alpaca's template."""

OWN_HEADINGS: Final = ("response",)
"""Headings of the model's messages (`### Response:`), from Alpaca's template."""

# Role names that occur inside special tokens or after them
_OTHER: Final = (
    r"(?:user|human|prompter|system|developer|tool|ipython|function|observation|environment)"
)
_OWN: Final = r"(?:assistant|model|bot|chatbot|ai)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """The marks of one family of chat templates, as regular expressions."""

    name: str
    tokens: tuple[str, ...] = ()
    """Special tokens of the family.

    A tokenizer reads each of them as one token wherever it is written.
    """
    heads: tuple[str, ...] = ()
    """Special tokens that begin a message and are followed by the name of its role."""
    others: tuple[str, ...] = ()
    """Marks that begin a message of another role and are not followed by a role name."""
    call_begins: tuple[str, ...] = ()
    """Marks that begin a list of tool calls, one call, or a part of a call."""
    call_ends: tuple[str, ...] = ()
    """Marks that end tool calls, and tags around tool results."""
    answers: tuple[str, ...] = ()
    """Tags around the part of a model's reply that is meant for the reader."""
    switches: tuple[str, ...] = ()
    """Words in a prompt that switch reasoning on or off."""


FAMILIES: Final = (
    Family(
        # Tokens with a name between ASCII or full-width bars, such as <|im_start|>: ChatML, Llama 3
        # and 4, Phi, GLM, DeepSeek, Kimi, Hunyuan, Granite, OLMo, Falcon 3, Apertus, harmony,
        # StarChat, OpenAssistant.
        name="bars",
        tokens=(r"</?[|｜][^<>\n]{0,160}>",),
        heads=(
            r"<\|(?:im_start|start|start_header_id|header_start|role|role_start|start_of_role)\|>",
        ),
        others=(
            rf"<[|｜] ?(?:[a-z]{{1,16}}[_▁])?{_OTHER}(?:[_▁]?(?:start|token|prompt))? ?[|｜]>",
            r"<[|｜](?:tool|function)[_▁](?:response|result|output)s?(?:[_▁]begin)?[|｜]>",
        ),
        call_begins=(
            r"<[|｜](?:tool|function)[_▁]calls?(?:[_▁]section)?(?:[_▁]begin)?[|｜]>",
            r"<[|｜]DSML[|｜]\w{1,20}(?:\s[^<>\n]{0,80})?>",
            r"<\|(?:python_tag|action_start|start_action|tools_prefix)\|>",
        ),
        call_ends=(
            r"<[|｜](?:tool|function)[_▁]calls?(?:[_▁]section)?[_▁]end[|｜]>",
            r"<[|｜]/(?:tool|function)[_▁]calls?[|｜]>",
            r"</[|｜]DSML[|｜]\w{1,20}>",
            r"<\|(?:action_end|end_action|tools_suffix)\|>",
        ),
    ),
    Family(
        name="Llama 2",
        tokens=(r"</?s>", r"<</?SYS>>", r"\[/?INST\]"),
        others=(r"\[INST\]", r"<<SYS>>"),
    ),
    Family(
        name="Mistral",
        tokens=(
            r"\[/?(?:SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT)\]",
            r"\[/?(?:ARGS|CALL_ID|THINK|MODEL_SETTINGS)\]",
            r"\[control_\d{1,5}\]",
            r"\[(?-i:PREFIX|MIDDLE|SUFFIX|IMG|IMG_BREAK|IMG_END|AUDIO|BEGIN_AUDIO|TRANSCRIBE)\]",
        ),
        others=(r"\[(?:SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_RESULTS|TOOL_CONTENT)\]",),
        call_begins=(r"\[TOOL_CALLS\]",),
        call_ends=(r"\[/TOOL_CALLS\]",),
    ),
    Family(
        name="Gemma",
        tokens=(
            r"</?[^<>|｜\s]{1,60}[|｜]>",  # Gemma 4 has a bar on one side only: <|turn> and <turn|>
            r"</?(?:start|end)_of_(?:turn|image|audio)>",
            r"<(?:image|audio)_soft_token>",
            r"</?(?:start|end)_function_(?:call|response|declaration)>",
        ),
        heads=(r"<start_of_turn>", r"<\|turn>"),
        others=(r"<start_function_response>", r"<\|tool_response>"),
        call_begins=(r"<start_function_call>", r"<\|tool_call>"),
        call_ends=(r"<end_function_call>", r"<tool_call\|>"),
    ),
    Family(name="Command R", tokens=(r"<(?:[A-Z]{2,20}_){1,6}TOKEN>",)),
    Family(
        name="InternLM",
        tokens=(r"\[UNUSED_TOKEN_\d{1,5}\]", r"<(?:eoh|eoa|eosys)>"),
        heads=(r"\[UNUSED_TOKEN_146\]",),
    ),
    Family(
        name="Pangu",
        tokens=(r"\[unused\d{1,5}\]",),
        others=(r"\[unused9\][ \t]{0,4}(?:用户|系统|方法)",),
    ),
    Family(
        name="Seed",
        tokens=(r"</?seed:\w{1,40}>",),
        others=(rf"<seed:bos>\s{{0,4}}{_OTHER}\b",),
    ),
    Family(
        name="MiniMax",
        tokens=(r"\]~!?b[\[\]]", r"\[e~\[", r"<\][^<>\[\]\n]{1,40}\[>"),
        heads=(r"\]~b\]",),
    ),
    Family(
        name="EXAONE",
        tokens=(r"\[\|[^\[\]|\n]{0,60}\|\]",),
        others=(rf"\[\|{_OTHER}\|\]",),
    ),
    Family(
        name="TeleChat",
        tokens=(r"</?_(?:user|bot|end|system|start|observation)>",),
        others=(r"<_(?:user|system|observation)>",),
    ),
    Family(
        name="Bailing",
        tokens=(r"<role>(?:HUMAN|SYSTEM|ASSISTANT|OBSERVATION)</role>",),
        others=(r"<role>(?:HUMAN|SYSTEM|OBSERVATION)</role>",),
    ),
    Family(name="MiniCPM", tokens=(r"<(?:用户|(?-i:AI))>",), others=(r"<用户>",)),
    Family(
        name="Baichuan, Nemotron, T5",
        tokens=(r"<(?:unused|reserved_|extra_id_|SPECIAL_)\d{1,6}>",),
        others=(
            r"<reserved_106>",
            rf"<(?:extra_id_[01]|SPECIAL_1[01])>\s{{0,4}}{_OTHER}\b",
        ),
    ),
    Family(
        name="LongCat",
        tokens=(r"</?longcat_\w{1,40}>",),
        call_begins=(r"<longcat_(?:tool_call|arg_key|arg_value)>",),
        call_ends=(r"</longcat_(?:tool_call|arg_key|arg_value)>",),
    ),
    Family(
        name="beginnings and ends of many",
        tokens=(
            r"<(?:bos|eos|eot|pad|unk|mask|sep|cls|sop|eop|eod|startoftext|endoftext)>",
            r"</?(?:start|end|begin)_of_(?:text|role|sentence|document|utterance)>",
            r"\[(?:BOS|EOS|gMASK|sMASK)\]",
            r"\[(?-i:MASK|CLS|SEP|PAD|UNK)\]",
        ),
    ),
    Family(
        name="models of code",
        tokens=(
            r"<(?:fim|jupyter|issue|commit)_\w{1,24}>",
            r"<(?:reponame|gh_stars|file_sep|empty_output)>|<(?-i:PRE|SUF|MID)>",
        ),
    ),
    Family(
        name="tools",
        tokens=(r"<tool_sep>",),
        others=(r"<tool_response>", r"<(?:\w{1,20}:)?function_results?>"),
        call_begins=(
            r"<(?:\w{1,20}:)?(?:tool_?calls?|function_?calls?|tool_use)(?:\s[^<>\n]{0,80})?>",
            r"<(?:\w{1,20}:)?(?:function|parameter|invoke)(?:=|\s)[^<>\n]{0,80}>",
            r"<arg_(?:key|value)>",
        ),
        call_ends=(
            r"</(?:\w{1,20}:)?(?:tool_?calls?|function_?calls?|tool_use|function|parameter|invoke)>",
            r"</arg_(?:key|value)>",
            r"</?(?:\w{1,20}:)?(?:tool_response|function_results?)>",
        ),
    ),
    Family(name="answers", answers=(r"</?(?:answer|response|output|final_answer)>",)),
    Family(
        name="Qwen 3, GLM",
        switches=(r"(?<![\w/])/(?:no_?)?think(?![\w/>›])",),
    ),
)

THOUGHT_WORDS: Final = r"(?:think|thinking|thought|thoughts|reason|reasoning|reflection)"
"""Matches words for reasoning in tags, code fences and introductions of a reply."""

THOUGHT_MARKS: Final = (
    rf"<(?P<angle>/?)(?:\w{{1,12}}:|longcat_)?(?:{THOUGHT_WORDS}|analysis|scratchpad"
    r"|(?:inner_|internal_)?monologue)(?:[ \t]{1,3}\w{1,20}=[^<>\n]{0,80})?[ \t]{0,3}>"
    rf"|\[(?P<square>/?){THOUGHT_WORDS}\]"
    r"|◁(?P<triangle>/?)think▷"
    r"|(?P<begin><\|(?:start_thinking|begin_of_thought|think_start|think(?:ing)?|inner_prefix)\|>"
    r"|<\|channel>(?:thought|analysis)?|<unused94>)"
    r"|(?P<end><\|(?:end_thinking|end_of_thought|think_end|/think(?:ing)?|inner_suffix)\|>"
    r"|<channel\|>|<unused95>)"
)
"""Regular expressions for the marks around a model's reasoning.

A match ends the reasoning if one of its groups is "/" or if the group `end` matched.
"""


MARK_START: Final = r"(?=<(?!<)|<</?SYS|[\[\]◁/])"
"""A lookahead for the first characters of a chat template's mark.

It avoids trying the long alternatives at most positions.
"""

Kind = Literal["tokens", "heads", "others", "call_begins", "call_ends", "answers", "switches"]
"""The name of a field of `Family`."""


def mark_pattern(*kinds: Kind) -> str:
    """Return a regular expression that matches all chat template marks of these kinds."""
    found = chain.from_iterable(getattr(family, kind) for family in FAMILIES for kind in kinds)
    return "|".join(found)


_HEADS: Final = rf"(?:{mark_pattern('heads')})\s{{0,4}}"

ROLE_MARKS: Final = (
    rf"(?P<other>{mark_pattern('others')}|{_HEADS}(?!{_OWN}\b)\w{{1,20}})"
    rf"|(?P<own>{_HEADS}(?:{_OWN}\b)?)"
)
"""Regular expressions for the chat template marks that begin a message.

`other` is for messages of another role, `own` for messages of the model.
"""


_LOOK_ALIKE: Final = str.maketrans("<>[]◁▷", "‹›()‹›")
_OTHER_SLASH: Final = "∕"


def neutralize_marks(marks: re.Pattern[str], text: str) -> str:
    """Replace the brackets of chat template marks with similar ones, so that servers ignore them.

    People can still read the marks. A hostile text can nest one mark inside another, so that
    replacing the inner mark completes the outer one. Then all brackets of the text are replaced.
    """
    changed, count = marks.subn(_look_alike, text)
    return changed.translate(_LOOK_ALIKE) if count and marks.search(changed) else changed


def _look_alike(mark: re.Match[str]) -> str:
    written = mark[0]
    if written.startswith("/"):
        return _OTHER_SLASH + written[1:]
    return written.translate(_LOOK_ALIKE)
