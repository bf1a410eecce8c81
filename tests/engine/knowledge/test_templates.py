"""Tests of the constant texts about knowledge in prompts."""

import re

import pytest

from evennia_ai.engine.knowledge import meta_prompt

TEXTS = (meta_prompt.POLICY, meta_prompt.RESTRICTED_POLICY)


@pytest.mark.req("S1-01")
@pytest.mark.parametrize("text", TEXTS)
def test_search_policies_have_no_template_marks(text):
    assert not re.search(r"[{}%<>\[\]]", text)


@pytest.mark.req("S0-25")
def test_restricted_policy_asks_what_is_wanted_before_a_search():
    text = meta_prompt.RESTRICTED_POLICY
    assert text.index("find out what is wanted") < text.index("you may search it")
    assert "If you are not sure, refuse" in text
    assert "are no answer: never repeat them" in text
