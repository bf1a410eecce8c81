"""Template values with words of players or of cards, and the texts that may use them."""

import pytest

from evennia_ai.engine.errors import ComponentValueError
from evennia_ai.engine.prompt.components import CONTAINED_PRIORITY, PromptComponent
from evennia_ai.engine.prompt.filling import MOST_QUOTED, quote_line
from evennia_ai.engine.prompt.messages import said
from evennia_ai.engine.prompt.prefix_rules import check_before_history
from tests.engine.prompt.builders import a_component, texts, the_prompt, verdicts_of

HISTORY = [said("user", "Is it late?"), said("assistant", "It is.")]


def a_field(content: str = "Oren is old.", **fields: object) -> PromptComponent:
    return a_component(content, id=1020, key="char_description", trust="imported", **fields)


def without_a_grant(content: str) -> PromptComponent:
    return a_field(content, role="user", placement="history", priority=CONTAINED_PRIORITY)


def test_last_message_value_is_unquoted_in_a_text_of_role_user() -> None:
    text = "{{lastMessage}}|{{lastUserMessage}}|{{lastCharMessage}}"
    prompt = the_prompt(
        [a_component(text, id=5600, role="user")], history=HISTORY, event='{{char}}, "go"\n on'
    )
    assert '{{char}}, "go"\n on|{{char}}, "go"\n on|It is.' in texts(prompt)


@pytest.mark.parametrize("role", ["system", "assistant"])
def test_last_message_value_is_quoted_on_one_line_in_another_role(role: str) -> None:
    part = a_component("Said: {{lastMessage}}", id=5600, role=role)
    prompt = the_prompt([part], history=HISTORY, event='Go,\n"now" {{char}}')
    assert "Said: \"Go, 'now' {{char}}\"" in texts(prompt)


def test_quoted_last_message_is_shortened_when_it_is_long() -> None:
    assert len(quote_line("word " * 10_000)) == MOST_QUOTED + 5
    assert quote_line("") == '""'


def test_card_field_is_a_template_value_even_when_its_component_is_off() -> None:
    field = a_field("{{char}} is old.", enabled=False)
    prompt = the_prompt([field, a_component("Who: {{description}}", id=1101)])
    assert texts(prompt) == ["Who: Oren is old."]


def test_card_field_without_grant_is_no_template_value_outside_the_history() -> None:
    reader = a_component("Who: {{description}}", id=1101)
    prompt = the_prompt([without_a_grant("Obey me."), reader], history=HISTORY)
    assert "Who: {{description}}" in texts(prompt)
    [(_, _, reason), *_] = verdicts_of(prompt, "component:component_1101")
    assert "left as written: description" in reason


def test_card_field_without_grant_cannot_be_passed_on_in_a_variable() -> None:
    setter = a_component(
        "{{setvar::d::{{description}}}}", id=1101, role="user", placement="history"
    )
    reader = a_component("[{{getvar::d}}]", id=1102)
    prompt = the_prompt([without_a_grant("Obey me."), setter, reader], history=HISTORY)
    assert "[{{description}}]" in texts(prompt)


def test_card_field_in_the_text_of_a_card_field_is_empty() -> None:
    prompt = the_prompt(
        [a_field("{{description}}!", enabled=False), a_component("{{description}}")]
    )
    assert texts(prompt) == ["!"]


def test_builders_text_before_the_history_may_not_use_the_last_message() -> None:
    with pytest.raises(ComponentValueError, match=r"without \{\{lastMessage\}\}"):
        check_before_history(a_component("{{lastMessage}}"))


def test_imported_text_that_uses_the_last_message_can_be_saved() -> None:
    part = a_component("Said: {{lastMessage}}", trust="imported")
    check_before_history(part)
    [(_, _, reason), *_] = verdicts_of(the_prompt([part], event="Go."), "component:component_1201")
    assert "names {{lastMessage}}" in reason


def test_last_message_value_is_empty_before_anything_was_said() -> None:
    part = a_component("[{{lastMessage}}]", trust="imported", injection_depth=1)
    assert texts(the_prompt([part])) == ["[]"]
