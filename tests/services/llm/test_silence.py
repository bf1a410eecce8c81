"""Test which replies mean that the NPC says nothing."""

import pytest

from evennia_ai.services.llm.speech import is_silence


@pytest.mark.parametrize(
    "text",
    [
        "-",
        "...",
        "…",
        "—",
        "(silence)",
        " (Silence.) ",
        "[silence]",
        "*says nothing*",
        '"..."',
        "- -",
    ],
)
def test_reply_may_choose_silence(text):
    assert is_silence(text)


@pytest.mark.parametrize(
    "text", ["", "Silence!", "silence", "...well.", "?!", "(silence is golden)", "*nods*", "No."]
)
def test_words_are_not_silence(text):
    assert not is_silence(text)
