"""Tests of the config page of a wiki: it changes the rules, and errors on it give warnings."""

from dataclasses import fields

import pytest

from evennia_ai.engine.knowledge.assembly.config import PARSERS, AssemblyRules, apply_config_page
from tests.engine.knowledge.assembly.driver import a_page, named

RULES = AssemblyRules()


def config(*lines: str):
    return a_page("Instructions:Config", "\n".join(["---", *lines, "---", "Text."]))


def rules_of(*lines: str) -> AssemblyRules:
    rules, warnings = apply_config_page(RULES, config(*lines))
    assert warnings == ()
    return rules


def test_config_page_can_set_every_field():
    assert {*PARSERS, "task_types"} == {one.name for one in fields(AssemblyRules)}


def test_config_page_keeps_fields_it_does_not_name():
    assert rules_of("type: config", "priority: 3") == RULES


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("world: The  Valley", "world", "The Valley"),
        ("max_depth: 4", "max_depth", 4),
        ('max_depth: "4"', "max_depth", 4),
        ("fully_resolve: true", "fully_resolve", True),
        ('wikipedia: "Yes"', "wikipedia", True),
        ("talk_sections: [Doubts]", "talk_sections", ("Doubts",)),
        ("talk_sections: Doubts, Praise", "talk_sections", ("Doubts", "Praise")),
        ("talk_sections: 'Doubts, , Praise,'", "talk_sections", ("Doubts", "Praise")),
        ("talk_sections: []", "talk_sections", ()),
        ("query_starters: [zeig mir]", "query_starters", ("zeig mir",)),
        ("stop_words: [Der, die]", "stop_words", frozenset({"der", "die"})),
        ("world_bible: Bible", "world_bible", named("Instructions:Bible")[0]),
        ("core_instructions: []", "core_instructions", ()),
        ("budget_tokens: 900", "budget_tokens", 900),
    ],
)
def test_config_page_field_is_parsed(line, field, value):
    assert getattr(rules_of(line), field) == value


@pytest.mark.req("S4-07")
@pytest.mark.parametrize(
    ("line", "warning"),
    [
        ("max_depth: deep", "max_depth must be a whole number from 0 to 20"),
        ("max_depth: true", "max_depth must be a whole number from 0 to 20"),
        ("max_depth: -1", "max_depth must be a whole number from 0 to 20"),
        ("max_depth: 2.5", "max_depth must be a whole number from 0 to 20"),
        ("wikipedia: perhaps", "wikipedia must be true or false"),
        ("talk_sections: {a: b}", "talk_sections must be a list of at most 200 texts"),
        ("query_starters: ['!!']", "query_starters must be a list of texts with at least one word"),
        ("world_bible: 'a|b'", "world_bible must be the title of a page"),
        ("world: ''", "world must be a text of at most 2000 characters"),
        ("budget: 900", "budget must be one of the known fields"),
        ("task_types: [a]", "task_types must be at most 50 types"),
        ("task_types: {a: b}", "task_types must be keys with a description each"),
        ("task_types: {a: {bypass: often}}", "task_types must be types whose bypass is one of"),
        ("task_types: {a: {by: 1}}", "task_types must be types with only the fields"),
    ],
)
def test_invalid_value_on_the_config_page_gives_a_warning(line, warning):
    rules, warnings = apply_config_page(RULES, config(line))

    assert rules == RULES
    assert len(warnings) == 1
    assert warnings[0].startswith(f"Instructions:Config: {warning}")


def test_invalid_value_on_the_config_page_keeps_the_other_fields():
    rules, warnings = apply_config_page(RULES, config("max_depth: deep", "linked_pages: 7"))

    assert (rules.linked_pages, len(warnings)) == (7, 1)


def test_token_reserve_is_ignored_when_it_exceeds_the_budget():
    rules, warnings = apply_config_page(RULES, config("budget_tokens: 600", "reserve_tokens: 600"))

    assert rules == RULES
    assert "reserve_tokens must be less than budget_tokens" in warnings[0]


@pytest.mark.req("S4-44")
def test_config_page_adds_a_task_type():
    new = rules_of(
        *("task_types:", "  create_rumour:", "    description: Invent what people say"),
        *("    instructions: [Create/Rumour]", "    bypass: read_only"),
    ).task_types[-1]

    assert (new.key, new.description, new.bypass) == (
        *("create_rumour", "Invent what people say"),
        "read_only",
    )
    assert new.instructions == named("Instructions:Create/Rumour")


@pytest.mark.parametrize(("written", "bypass"), [("true", "always"), ("'no'", "never")])
def test_config_page_changes_a_task_type_in_its_place(written, bypass):
    rules = rules_of(f"task_types: {{edit_page: {{bypass: {written}}}}}")

    assert [one.key for one in rules.task_types] == [one.key for one in RULES.task_types]
    assert rules.task_type("edit_page").bypass == bypass


@pytest.mark.req("S4-45")
def test_config_table_is_read_like_front_matter():
    table = "{|\n! type\n| config\n|-\n! max_depth\n| 3\n|-\n! fully_resolve\n| yes\n|}\nText."
    rules, warnings = apply_config_page(RULES, a_page("Instructions:Config", table))

    assert (rules.max_depth, rules.fully_resolve, warnings) == (3, True, ())
