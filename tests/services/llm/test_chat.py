"""Test that chat messages are made from a prompt's messages."""

from evennia_ai.engine.prompt.messages import Message
from evennia_ai.services.llm.chat import ChatMessage
from evennia_ai.services.llm.roles import chat_messages
from tests.services.llm.builders import a_call


def test_chat_messages_keep_only_what_a_model_sees() -> None:
    prompt = [
        Message(role="user", content="Look.", name="Anna", record="r1", injected=True),
        Message(role="assistant", content="", tool_calls=(a_call(),)),
        Message(role="tool", content="a boat", tool_call_id="c1", block="tool"),
    ]
    assert chat_messages(prompt) == (
        ChatMessage(role="user", content="Look.", name="Anna"),
        ChatMessage(role="assistant", content="", tool_calls=(a_call(),)),
        ChatMessage(role="tool", content="a boat", tool_call_id="c1"),
    )


def test_empty_prompt_has_no_chat_messages() -> None:
    assert chat_messages([]) == ()
