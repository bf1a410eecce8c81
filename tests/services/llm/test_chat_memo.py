"""Test that values computed from messages are cached, and equal those of new messages."""

import gc
import weakref
from dataclasses import replace

import pytest

from evennia_ai.engine.prompt.memo import Memo
from evennia_ai.engine.prompt.messages import Message, messages_sha256, said
from evennia_ai.services.llm.chat import sent_sha256
from evennia_ai.services.llm.roles import OPEN, STRICT, RoleProfile, adapt_messages, chat_messages


def a_talk() -> list:
    return [
        said("system", "You are Oren."),
        said("user", "Hello?\nAnybody?", name="Anna"),
        said("assistant", "Evening."),
        said("user", "When does she sail?", name="Ben"),
    ]


def recorded(talk: list[Message]) -> list[Message]:
    """Return the messages as if they were made from records."""
    return [replace(one, record=str(at), memo=Memo()) for at, one in enumerate(talk, start=1)]


def test_message_sent_before_is_not_made_again():
    talk = recorded(a_talk())
    first = adapt_messages(chat_messages(talk), profile=OPEN)
    again = adapt_messages(chat_messages(talk), profile=OPEN)

    assert all(one is other for one, other in zip(first, again, strict=True))


def test_memo_of_a_one_off_message_is_freed_with_its_prompt():
    class Known(Memo):
        """A memo that reports when it is freed."""

        __slots__ = ("__weakref__",)

    talk = [replace(one, memo=Known()) for one in a_talk()]
    memos = [weakref.ref(one.memo) for one in talk]
    gc.disable()  # With it off, only objects in reference cycles survive.
    try:
        adapt_messages(chat_messages(talk), profile=OPEN)
        del talk
        assert [memo() for memo in memos] == [None] * 4
    finally:
        gc.enable()


def test_memo_for_one_provider_is_not_used_for_another():
    talk = a_talk()
    profiles = (OPEN, RoleProfile(speakers="name"), RoleProfile(speakers="none"), STRICT, OPEN)
    for profile in profiles:
        assert adapt_messages(chat_messages(talk), profile=profile) == adapt_messages(
            chat_messages(a_talk()), profile=profile
        )


def test_hash_of_sent_messages_equals_that_of_new_ones():
    talk = a_talk()
    for _ in range(2):
        outgoing = adapt_messages(chat_messages(talk), profile=OPEN)
        assert sent_sha256(outgoing) == sent_sha256(
            adapt_messages(chat_messages(a_talk()), profile=OPEN)
        )


def test_sent_hash_equals_the_prompts_hash_when_nothing_changed():
    assert sent_sha256(chat_messages(a_talk())) == messages_sha256(a_talk())


def test_unchanged_message_shares_its_bytes():
    talk = a_talk()
    outgoing = adapt_messages(chat_messages(talk), profile=OPEN)

    shared = [one.wire() is message.wire() for one, message in zip(outgoing, talk, strict=True)]
    assert shared == [True, False, True, False]  # The two messages that a person said are labelled.


@pytest.mark.req("S2-15")
def test_indented_message_shares_nothing_with_its_original():
    told = said("user", "Anna: I am here.")
    (outgoing,) = chat_messages([told])

    assert outgoing.wire() != told.wire() == said("user", "Anna: I am here.").wire()
