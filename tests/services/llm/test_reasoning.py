"""Test that hidden reasoning is removed in every format."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evennia_ai.engine.history.role_markup import without_tags
from evennia_ai.services.llm.reasoning import LeadingReasoning, without_reasoning
from tests.effort import little_work
from tests.properties import up_to


def left(text: str) -> str:
    return without_reasoning(text).strip()


@pytest.mark.parametrize(
    "text",
    [
        # Pairs of marks
        "<seed:think>She lies.</seed:think>Aye.",
        "<longcat_think>\nShe lies.\n</longcat_think>\nAye.",
        '<thinking type="long">She lies.</thinking >Aye.',
        "<analysis>She lies.</analysis>Aye.",
        "<inner_monologue>She lies.</inner_monologue>Aye.",
        "<scratchpad>She lies.</scratchpad>Aye.",
        "◁think▷She lies.◁/think▷Aye.",
        "<|START_THINKING|>She lies.<|END_THINKING|><|START_RESPONSE|>Aye.<|END_RESPONSE|>",
        "<|begin_of_thought|>She lies.<|end_of_thought|>\nAye.",
        "<|inner_prefix|>She lies.<|inner_suffix|>Aye.",
        "<|channel>thought\nShe lies.<channel|>Aye.",
        "<unused94>thought\nShe lies.<unused95>Aye.",
        # The opening mark is in the prompt
        "She lies.</seed:think>Aye.",
        "She lies.◁/think▷Aye.",
        "She lies.<|END_THINKING|>Aye.",
        "She lies.<channel|>Aye.",
        "She lies.<think>No.</think>He lies.</think>Aye.",
        # Cut text
        "Aye.◁think▷She lies.",
        "Aye.<|channel>thought\nShe",
        # Channels
        (
            "<|channel|>analysis<|message|>She lies.<|end|>"
            "<|start|>assistant<|channel|>final<|message|>Aye.<|return|>"
        ),
        "She lies.<|end|><|start|>assistant<|channel|>final<|message|>Aye.",
        (
            "<|channel|>commentary to=functions.look <|constrain|>json<|message|>{}<|call|>"
            "<|start|>assistant<|channel|>final<|message|>Aye."
        ),
        (
            "<|channel|>final<|message|>Aye.<|end|><|start|>assistant"
            "<|channel|>analysis<|message|>She lies."
        ),
        # Channels of a server that removes the marks
        "analysisShe lies.assistantfinalAye.",
        "analysisShe lies. assistantfinal? No.assistantfinalAye.",
        # Preambles with their end
        "Here is my thought process: She lies. Here is my response: Aye.",
        "Here's my thought process:\nShe lies.\n\nHere's my response:\nAye.",
        "Reasoning: She lies.\nResponse: Aye.",
        "**Thinking:** She lies.\n\n**Final answer:** Aye.",
        "## Thought process:\nShe lies.\nReply: no\nI say.\nMy reply: Aye.",
        # Another role
        "Aye.<|im_end|>\n<|im_start|>user\nShe lies.",
        "<|im_start|>assistant\nAye.<|im_end|>",
        "<|start_header_id|>assistant<|end_header_id|>\n\nAye.<|eot_id|>",
        "<start_of_turn>model\nAye.<end_of_turn>\n<start_of_turn>user\nShe lies.",
        "Aye.</s>",
        "<think/>Aye.",
    ],
)
def test_reasoning_of_every_format_is_hidden(text: str) -> None:
    assert left(text) == "Aye."


@pytest.mark.parametrize(
    "text",
    [
        "<|channel|>analysis<|message|>She lies.",
        "<|channel|>analysis",
        "<think>",
        "<|channel|>analysis<|message|>She lies.<|end|><|start|>assistant<|channel|>",
    ],
)
def test_reply_with_only_reasoning_is_empty(text: str) -> None:
    assert left(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        "Reasoning: that is what scribes do.",
        "Thought: Aye.",
        "Analysis of the tide: it is late.",
        "Here is my thought process: I have none.",
        "I think <b>so</b>, [thinking about it] and 1 < 2.",
        "<think about it>, he wrote.",
        "◁ this way ▷",
        "My answer: Aye.",
        "analysis of the tide",
    ],
)
def test_speech_that_resembles_reasoning_is_kept(text: str) -> None:
    assert left(text) == text


def test_late_end_mark_hides_nothing_if_the_model_opens_its_marks() -> None:
    assert without_reasoning("Aye.</think> No.", late_end="hides_nothing") == "Aye. No."
    assert without_reasoning("<think>a</think>Aye.</think>", late_end="hides_nothing") == "Aye."


@pytest.mark.parametrize(
    "unit",
    [
        *("<", "[", "◁", "<think", "<think>", "</think>", "<think></think>", "<think a=", "<|"),
        *(
            "<|channel|>",
            "<|channel|>final",
            "<|channel|>a<|message|>",
            "<|im_start|>",
            "<|start|>",
        ),
        *("Reasoning:", "Reasoning:\n", "Reasoning:\nAnswer:\n", "analysisX", "assistantfinal"),
        *(
            "<｜",
            "<|user",
            "<seed:",
            "[INST",
            "[|",
            "]~",
            "[",
            "]",
            "/",
            "/no_",
            "<tool_",
            "<role>",
        ),
        *("```think\n", "```\n", " ", "\n", "\n ", "* ", "<channel|>", "Here's my response:"),
    ],
)
def test_hostile_reasoning_costs_linear_time(unit: str) -> None:
    text = unit * (50_000 // len(unit))
    with little_work():
        for hostile in (text, "Reasoning:" + text, "analysisX" + text):
            without_reasoning(hostile)


LEAKED = "Aye."
OTHERS = "And you?"


@pytest.mark.parametrize(
    "mark",
    [
        *(
            "<｜User｜>",
            "<|User|>:",
            "<|user|>\n",
            "<|USER|>",
            "<| user |>",
            "<|im_user|>user<|im_middle|>",
        ),
        *("<｜hy_User｜>", "<|user_start|>", "<|USER_TOKEN|>", "<|userprompt|>", "<|prompter|>"),
        *("<|system|>", "<|observation|>", "<|ipython|>", "<|im_system|>tool<|im_middle|>"),
        *(
            "<｜end▁of▁sentence｜><｜User｜>",
            "<｜tool▁outputs▁begin｜>",
            "<|tool_response>",
            "<|turn>user\n",
        ),
        *("<|header_start|>user<|header_end|>\n\n", "<|start_of_role|>user<|end_of_role|>"),
        *("<|START_OF_TURN_TOKEN|><|USER_TOKEN|>", "<|role_start|>human<|role_end|>"),
        *("[INST] ", " [/INST] [INST] ", "</s><s>[INST]", "<<SYS>> ", "[SYSTEM_PROMPT]"),
        *("[TOOL_RESULTS]", "[AVAILABLE_TOOLS]", "[UNUSED_TOKEN_145]\n[UNUSED_TOKEN_146]user\n"),
        *(
            "<seed:eos><seed:bos>user\n",
            "[e~[\n]~b]user\n",
            "[|endofturn|]\n[|user|]",
            "<_end><_user>",
        ),
        *(
            "<role>HUMAN</role>",
            "<用户>",
            "<reserved_106>",
            "<extra_id_1>User\n",
            "<SPECIAL_11>User\n",
        ),
        *(
            "[unused10][unused9]用户：",
            "<tool_response>\n",
            "<function_results>",
            "<start_function_response>",
        ),
        *("<start_of_turn>developer\n", "<|im_start|>Anna\n", "<|start|>functions.look"),
    ],
)
def test_reply_ends_where_a_mark_begins_another_role(mark: str) -> None:
    assert left(f"{LEAKED}{mark}{OTHERS}") == LEAKED
    assert left(f"{mark}{OTHERS}") == ""


@pytest.mark.parametrize(
    "token",
    [
        *(
            "<｜end▁of▁sentence｜>",
            "<｜Assistant｜>",
            "<|assistant|>",
            "<|Bot|>",
            "[EOS]",
            "<pad><unk>",
        ),
        *("</s>", "<s>", "[/INST]", "<</SYS>>", "<seed:bos>", "<seed:eos>", "[UNUSED_TOKEN_145]"),
        *("<jupyter_text>", "<fim_middle>", "<end_of_utterance>", "[control_8]", "<]minimax[>"),
        *("<_bot>", "<role>ASSISTANT</role>", "<AI>", "<turn|>", "<end_of_turn>", "<|im_end|>"),
        *(
            "]~b]ai\n",
            "[e~[",
            "[|assistant|]",
            "[|endofturn|]",
            "<answer>",
            "</response>",
            "<output>",
        ),
        *("/no_think ", "<|start_header_id|>assistant<|end_header_id|>", "<|turn>model\n"),
    ],
)
def test_other_tokens_are_removed_from_the_reply(token: str) -> None:
    assert left(f"{token}Aye. So.{token}") == "Aye. So."


@pytest.mark.parametrize(
    "text", ["<|a<s>|>", "[E[EOS]OS]", "<<s>s>", "]~[EOS]b]", "/no_[EOS]think"]
)
def test_removing_a_token_does_not_create_another_one(text: str) -> None:
    assert without_tags(left(text)) == left(text)


# In a stream

BLOCKS = st.sampled_from(
    [
        *("<think>", "</think>", "<thinking a=b>", "</thinking>", "◁think▷", "◁/think▷", "[think]"),
        *("<|START_THINKING|>", "<|END_THINKING|>", "a", " ", "\n", "<", "[", "Aye.", "</", "<th"),
    ]
)


@settings(deadline=None, max_examples=up_to(300))
@given(st.lists(BLOCKS, max_size=12).map("".join), st.integers(1, 9))
def test_leading_reasoning_is_skipped_in_any_pieces(text: str, size: int) -> None:
    leading = LeadingReasoning()
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    behind = "".join(leading.feed(piece) for piece in pieces)
    at_once = LeadingReasoning().feed(text)
    assert at_once.startswith(behind) or behind.startswith(at_once)
    shown = behind.partition("<")[0].partition("[")[0].partition("◁")[0]
    assert without_reasoning(text, late_end="hides_nothing").lstrip().startswith(shown)
