"""Tests of all fifteen steps together: the order of requests, and missing answers."""

from dataclasses import replace

import pytest

from evennia_ai.engine.knowledge.assembly.config import AssemblyRules
from evennia_ai.engine.knowledge.assembly.packages import ContextBudgetError
from evennia_ai.engine.knowledge.assembly.requests import (
    STEPS,
    AskPlanner,
    Failed,
    Fetch,
    Introduction,
    LoreTask,
    PageSearch,
)
from tests.engine.knowledge.assembly.driver import (
    AnArticle,
    AnswersFrom,
    a_page,
    a_plan,
    assembled,
    named,
    the_wiki,
)

TASK = "Write an interview with Agda Rook"


def answers(*entities: str, task_type: str = "create_source", **more) -> AnswersFrom:
    return AnswersFrom(**{"pages": the_wiki(), "plan": a_plan(task_type, *entities), **more})


def titles(package, bucket: str) -> list[str]:
    return [one.heading for one in package.sections.get(bucket, ())]


def asked(answered: AnswersFrom, kind: type) -> list:
    return [one for one in answered.asked if isinstance(one, kind)]


@pytest.mark.req("S4-01")
def test_assembly_trace_has_fifteen_steps_in_order():
    package = assembled(TASK, answers("Agda Rook"))
    heads = [line.partition(":")[0] for line in package.steps]

    assert [line for line, step in zip(package.steps, STEPS, strict=True) if step not in line] == []
    assert [head.partition(".")[0] for head in heads] == [str(n) for n in range(1, 16)]


@pytest.mark.req("S4-07")
@pytest.mark.parametrize("task", [TASK, "show exits"])
def test_config_page_is_requested_first(task):
    answered = answers("Agda Rook")
    assembled(task, answered)

    assert answered.asked[0] == Fetch(named("Instructions:Config"))


@pytest.mark.req("S4-07")
def test_rules_of_the_game_apply_without_a_config_page():
    answered = answers("Lowmark", pages=[a_page("Lowmark", "A [[Brass]] [[Mill]]")])
    package = assembled(TASK, answered, rules=AssemblyRules(world="Game", budget_tokens=900))

    assert (package.world, package.limit_tokens) == ("Game", 400)
    assert package.steps[0].endswith("there is no such page; the settings of the game apply")


@pytest.mark.req("S4-07")
def test_invalid_config_page_gives_a_warning_and_a_package():
    broken = a_page("Instructions:Config", "---\nbudget_tokens: plenty\n---\n")
    package = assembled(TASK, answers("Agda Rook", pages=[broken]))

    assert package.limit_tokens == AssemblyRules().limit_tokens
    assert package.warnings[0].startswith("Instructions:Config: budget_tokens must be")


@pytest.mark.req("S4-08", "S4-50")
def test_task_that_starts_like_a_question_requests_no_pages():
    answered = answers()
    package = assembled("Show exits", answered)

    assert len(answered.asked) == 1
    assert package.render() == ""
    told = package.context_meta()
    assert (told["bypassed"], told["reason"]) == (True, "the task is obviously a query")
    assert (told["task_type"], told["type_from"]) == ("query", "precheck")


@pytest.mark.req("S4-04", "S4-50")
def test_task_that_the_planner_calls_a_query_reads_no_page():
    answered = answers("Agda Rook", task_type="query")
    told = assembled("The miller, and who she is", answered).context_meta()

    assert [type(one) for one in answered.asked] == [Fetch, AskPlanner]
    assert (told["bypassed"], told["entities"]) == (True, ["Agda Rook"])


@pytest.mark.req("S4-05")
def test_report_task_that_writes_no_page_gets_no_package():
    plan = a_plan("maintenance_report", "Brass", writes_page=False)

    assert assembled("Count the stubs", answers(plan=plan)).bypassed


@pytest.mark.req("S4-43")
@pytest.mark.parametrize(
    "plan",
    [
        "rubbish",
        Failed("no model answers"),
        a_plan("unknown", writes_page=False),
        a_plan("write_opera", writes_page=False),
    ],
)
def test_unknown_task_gets_a_package(plan):
    package = assembled(TASK, answers(plan=plan))

    assert (package.task_type, package.bypassed) == ("unknown", False)
    assert package.render().startswith("[INSTRUCTIONS]")


@pytest.mark.req("S4-09")
def test_entities_are_the_names_in_the_task_without_a_planner():
    package = assembled(TASK, answers(plan=Failed("no model answers")))

    assert package.entities == ("Agda Rook",)
    assert package.type_from == "fallback"


@pytest.mark.req("S4-10")
def test_page_on_the_world_is_first_when_others_require_it():
    package = assembled(TASK, answers("Agda Rook"))

    assert titles(package, "instructions")[0] == "Instructions:World Bible"
    assert titles(package, "instructions").count("Instructions:World Bible") == 1


@pytest.mark.req("S4-11")
def test_instructions_are_core_then_default_then_of_the_task_type():
    package = assembled(TASK, answers("Agda Rook"))

    assert titles(package, "instructions")[1:6] == [
        "Instructions:Core/Canon Policy",
        "Instructions:Core/Continuity Rules",
        "Instructions:Style/Voice",
        "Instructions:Create/Source (Base Workflow)",
        "Instructions:Create/Source/Interview",
    ]


@pytest.mark.req("S4-11", "S4-44")
def test_task_type_of_the_config_page_adds_its_instructions():
    package = assembled("Invent a rumour", answers(task_type="create_rumour"))

    assert package.task_type == "create_rumour"
    assert titles(package, "instructions")[-1] == "Instructions:Create/Rumour"


def test_missing_instructions_give_a_warning():
    package = assembled(TASK, answers("Brass", pages=[a_page("Brass", "An otter.")]))

    assert package.sections.keys() == {"encyclopedia"}
    assert package.warnings[:2] == (
        "Instructions:World Bible is missing: the model gets no page that describes the world",
        "there is no page Instructions:Core/Canon Policy that may be read here",
    )


def test_too_many_instruction_pages_give_a_warning():
    many = [a_page(f"Instructions:P{number:03}") for number in range(230)]
    answered = answers(pages=many)
    package = assembled(TASK, answered)

    assert max(len(one.names) for one in asked(answered, Fetch)) == 200
    assert any("there are 230 instruction pages" in one for one in package.warnings)


@pytest.mark.req("S4-07", "S4-12", "S4-46", "S4-47")
@pytest.mark.parametrize(
    ("config", "last"), [("max_depth: 1", "B"), ("max_depth: 2", "C"), ("fully_resolve: true", "D")]
)
def test_requires_links_are_followed_to_the_configured_depth(config, last):
    chain = [
        a_page(f"Instructions:{one}", f"---\nrequires: [{to}]\n---\n")
        for one, to in ("AB", "BC", "CD")
    ]
    page = a_page("Instructions:Config", f"---\ncore_instructions: [A]\n{config}\n---\n")
    package = assembled(TASK, answers(pages=[page, *chain, a_page("Instructions:D")]))

    assert titles(package, "instructions")[-1] == f"Instructions:{last}"


@pytest.mark.req("S4-13")
def test_entity_page_is_found_by_title_alias_or_redirect():
    package = assembled(TASK, answers("brass", "Watermill", "The Miller"))
    found = [one.heading for one in package.pages if one.why == "the task is about it"]

    assert sorted(found) == ["Agda Rook", "Brass", "The Mill"]


@pytest.mark.req("S4-13")
def test_entity_without_a_page_gives_a_warning():
    package = assembled(TASK, answers("The Reeve"))

    (warning,) = package.context_meta()["warnings"]
    assert warning == "there is no page The Reeve that may be read here"


@pytest.mark.req("S4-14")
def test_linked_pages_are_the_existing_pages_with_most_links():
    pages = [
        a_page("A", "[[Red]] [[C]] [[E]] [[Also C]]"),
        a_page("B", "[[Red]] [[C]] [[D]] [[D]]"),
        *(a_page(one) for one in "DE"),
        a_page("C", "---\naliases: [Also C]\n---\nText."),
    ]
    package = assembled(TASK, answers("A", "B", pages=pages), rules=AssemblyRules(linked_pages=2))
    linked = [(one.heading, one.why) for one in package.pages if "linked" in one.why]

    assert linked == [("C", "linked from 2 of 2 pages"), ("D", "linked from 1 of 2 pages")]


@pytest.mark.req("S4-15")
def test_sources_are_searched_for_each_entity_within_the_limit():
    answered = answers("Agda Rook", "Brass")
    package = assembled(TASK, answered)

    assert asked(answered, PageSearch) == [
        PageSearch("Agda Rook", ("Sources",), 1),
        PageSearch("Brass", ("Sources",), 1),
    ]
    assert sorted(titles(package, "sources")) == [
        "Sources:Ledger of the Mill",
        "Sources:Song of the Fair",
    ]


def test_named_source_is_included_without_a_search():
    answered = answers("Sources:Song of the Fair")
    rules = AssemblyRules(sources_per_entity=0)
    pages = [one for one in the_wiki() if one.name.title != "Config"]
    package = assembled(TASK, replace(answered, pages=pages), rules=rules)

    assert titles(package, "sources") == ["Sources:Song of the Fair"]


@pytest.mark.req("S4-16")
def test_package_has_only_three_sections_of_talk_pages():
    text = assembled(TASK, answers("Agda Rook", "The Weir")).render("talk")

    assert "High for flour" in text
    assert "father of the otter" not in text
    assert "prove it" not in text


@pytest.mark.req("S4-16")
def test_whole_talk_page_is_dropped_from_other_sections():
    sneaky = a_page("Instructions:World Bible", "---\nrequires: ['Talk:Agda Rook']\n---\nText.")
    pages = [one for one in the_wiki() if one.name.title != "World Bible"]
    task = LoreTask(text=TASK, custom_pages=named("Talk:Agda Rook"))
    package = assembled(task, answers("Brass", pages=[sneaky, *pages]))

    assert "prove it" not in package.render()
    assert "talk pages are never shown whole" in {one.why for one in package.dropped}


@pytest.mark.req("S4-17")
def test_wikipedia_is_requested_only_if_the_rules_allow():
    answered = answers("Brass", articles={"Brass": AnArticle(title="Brass", text="An alloy.")})
    package = assembled(TASK, answered)

    assert asked(answered, Introduction) == []
    assert package.steps[10] == "11. Wikipedia: off"


@pytest.mark.req("S4-17")
def test_wikipedia_failure_gives_a_warning():
    articles = {
        "Brass": Failed("it did not answer in 5 seconds"),
        "The Weir": AnArticle(title="Weir", text="A barrier."),
        "The Mill": AnArticle(title="Mill", text=" "),
    }
    answered = answers("Brass", "Agda Rook", "The Weir", "The Mill", articles=articles)
    package = assembled(TASK, answered, rules=AssemblyRules(wikipedia=True))

    assert titles(package, "wikipedia") == ["The Weir"]
    assert package.warnings == (
        "no Wikipedia introduction for Brass: it did not answer in 5 seconds",
    )


@pytest.mark.req("S4-18")
def test_page_found_in_two_steps_stays_in_its_first_section():
    task = LoreTask(
        text=TASK, custom_pages=named("Instructions:Style/Voice", "Sources:Song of the Fair")
    )
    package = assembled(task, answers("Brass"))
    text = package.render()

    assert text.count("--- Instructions:Style/Voice ---") == 1
    assert "Instructions:Style/Voice" in titles(package, "instructions")
    assert titles(package, "sources") == []
    assert [(one.page.heading, one.why) for one in package.dropped] == [
        ("Instructions:Style/Voice", "it is already in the section instructions"),
        ("Sources:Song of the Fair", "it is already in the section encyclopedia"),
    ]


@pytest.mark.req("S4-22")
def test_assembly_fails_when_instructions_are_too_long():
    with pytest.raises(ContextBudgetError, match="Instructions:World Bible"):
        assembled(TASK, answers("Brass"), rules=AssemblyRules(budget_tokens=60, reserve_tokens=0))


@pytest.mark.req("S4-53")
def test_task_with_a_given_type_skips_precheck_and_planner():
    answered = answers()
    task = LoreTask(text="Show the mill in winter", type_override="create_encyclopedia_article")
    package = assembled(task, answered)

    assert asked(answered, AskPlanner) == []
    assert (package.task_type, package.type_from) == ("create_encyclopedia_article", "override")
    assert "Instructions:Create/Article" in titles(package, "instructions")


@pytest.mark.req("S4-53")
def test_pages_named_by_the_author_are_first_and_dropped_last():
    custom = LoreTask(text=TASK, custom_pages=named("The Otter Fair", "Watermill"))
    whole = assembled(custom, answers("Agda Rook"))
    rules = AssemblyRules(budget_tokens=whole.tokens["instructions"] + 62, reserve_tokens=0)
    pages = [one for one in the_wiki() if one.name.title != "Config"]
    short = assembled(custom, answers("Agda Rook", pages=pages), rules=rules)

    assert titles(whole, "encyclopedia")[:2] == ["The Otter Fair", "The Mill"]
    assert titles(short, "encyclopedia") == ["The Otter Fair"]


@pytest.mark.req("S4-54")
def test_record_of_a_package_has_revision_and_hash_of_every_page():
    package = assembled(TASK, answers("Agda Rook", "Brass"))
    wiki = {one.name.full: one for one in the_wiki()}
    told = package.context_meta()["pages"]

    assert told
    assert [
        one
        for one in told
        if (one["revision"], one["sha256"])
        != (wiki[one["page"]].revision, wiki[one["page"]].sha256)
    ] == []


@pytest.mark.req("S4-55")
def test_hidden_pages_are_in_no_package():
    hidden = named("Agda Rook", "Sources:Ledger of the Mill", "Instructions:Style/Voice", "Brass")
    package = assembled(TASK, answers("Agda Rook", "The Mill", hidden=hidden))
    shown = {one.name for one in package.pages}

    assert shown & set(hidden) == set()
    about = [one for one in package.warnings if "page Agda Rook" in one]
    assert about == ["there is no page Agda Rook that may be read here"]
    assert "1 of the sources for Agda Rook may not be read here" in package.warnings


@pytest.mark.req("S4-55")
def test_hidden_instruction_pages_are_counted_without_names():
    hidden = named("Instructions:Style/Voice", "Instructions:Create/Source/Letter")
    package = assembled(TASK, answers("Agda Rook", hidden=hidden))
    told = str(package.context_meta())

    assert package.warnings == ("2 of the listed pages may not be read here",)
    assert "Voice" not in told
    assert "Letter" not in told


@pytest.mark.req("S4-55")
def test_hidden_source_page_is_not_named_in_warnings():
    hidden = named("Sources:Ledger of the Mill")
    package = assembled(TASK, answers("Agda Rook", hidden=hidden))

    assert "Ledger" not in str(package.context_meta())


def test_world_name_is_taken_from_the_task():
    task = LoreTask(text=TASK, world="Highmark")

    assert assembled(task, answers("Brass")).world == "Highmark"


def test_assembly_is_deterministic():
    one, other = (assembled(TASK, answers("Agda Rook", "Brass")) for _ in range(2))

    assert one == other


def test_package_has_instructions_without_entities():
    package = assembled("Write", answers())

    assert package.sections.keys() == {"instructions"}
