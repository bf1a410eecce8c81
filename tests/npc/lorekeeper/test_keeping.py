"""A task of the lorekeeper, from its words to an answer, with one call of the writing model."""

from dataclasses import replace
from typing import Any

import pytest

from evennia_ai.engine.errors import ModelUnavailable
from evennia_ai.engine.knowledge.assembly.packages import ContextBudgetError
from evennia_ai.engine.knowledge.pages.page import page_name
from evennia_ai.engine.knowledge.settings import LorekeeperSettings
from evennia_ai.engine.prompt.messages import Message
from evennia_ai.npc.lorekeeper.keeping import SWITCHED_OFF, lorekeeper
from evennia_ai.services.llm.quotas import read_quotas
from evennia_ai.services.llm.structured import REPAIR
from evennia_ai.services.settings.conf import conf
from tests.npc.lorekeeper.wikis import (
    A_PAGE,
    PAGES,
    TASK,
    Writer,
    a_wiki,
    answer,
    done,
    keeps,
    refused,
    restricted,
    write,
)

FIRST = "[INSTRUCTIONS]\n--- Instructions:World Bible ---\nA harbour, and no magic.\n"
QUERY = "List the boats"
FOR_ADMINS = "---\nlocks: view:perm(Admin)\n---\n"


@pytest.mark.req("S4-01", "S4-24")
def test_package_is_placed_before_the_system_prompt(stage, mara):
    writer = keeps(stage)
    answer(mara)
    (system, said), (user, task) = writer.sent
    assert (system, user, task) == ("system", "user", TASK)
    assert said.startswith(FIRST)
    assert "\n\nYou are the lorekeeper of Ebbwick" in said
    assert said.index("[SOURCES]") < said.index("You are the lorekeeper")


@pytest.mark.req("S4-02", "S4-09")
def test_planner_chooses_the_task_type_and_the_writer_is_asked_once(stage, mara):
    writer = keeps(stage)
    answer(mara)
    assert (len(writer.planned), len(writer.asked)) == (1, 1)
    assert writer.asked[0].tools == ()


def test_planner_gets_the_task_as_data(stage, mara):
    writer = keeps(stage)
    answer(mara)
    (request,) = writer.planned
    assert [message.content for message in request.messages if TASK in message.content] == [
        f"<task>\n{TASK}\n</task>"
    ]


def test_planner_is_not_asked_again_after_a_useless_answer(stage, mara):
    writer = keeps(stage, Writer(plan="I would say an article."))
    told = answer(mara).context_meta
    assert (told["task_type"], told["type_from"]) == ("unknown", "fallback")
    assert len(writer.planned) == 1
    assert REPAIR[:20] not in str(writer.asked)


def test_task_is_done_when_the_planner_is_unavailable(stage, mara):
    keeps(stage, Writer(plan=ModelUnavailable("stub", "broken")))
    told = answer(mara)
    assert told.drafts
    assert "broken" in str(told.context_meta["warnings"])


@pytest.mark.req("S4-04", "S4-50", "S4-52")
def test_query_goes_to_the_writer_without_planner_or_package(stage, mara):
    writer = keeps(stage, Writer("The ferry."))
    told = answer(mara, QUERY)
    assert (told.text, told.drafts) == ("The ferry.", ())
    assert (len(writer.planned), len(writer.asked)) == (0, 1)
    assert "[INSTRUCTIONS]" not in str(writer.sent)
    assert told.context_meta["bypassed"] is True
    assert told.context_meta["reason"]


def test_task_has_no_package_when_the_planner_calls_it_a_query(stage, mara):
    writer = keeps(stage, Writer("Two.", plan=("query", [])))
    told = answer(mara, "How tall is the ferry, and did anybody measure it?").context_meta
    assert told["bypassed"] is True
    assert len(writer.asked) == 1


@pytest.mark.req("S4-03")
def test_writer_is_asked_directly_when_the_assembly_is_switched_off(stage, mara):
    writer = keeps(stage, enabled=False)
    told = answer(mara)
    assert (len(writer.planned), len(writer.asked)) == (0, 1)
    assert (told.context_meta["bypassed"], told.context_meta["reason"]) == (True, SWITCHED_OFF)


@pytest.mark.req("S4-50")
def test_answer_says_in_context_meta_what_it_was_made_from(stage, mara):
    keeps(stage)
    told = answer(mara).context_meta
    assert (told["base"], told["bypassed"], told["entities"]) == ("harbour", False, ["The Ferry"])
    assert len(told["steps"]) == 15
    assert told["pages"][0]["page"] == "Instructions:World Bible"


@pytest.mark.req("S4-53")
def test_planner_is_not_asked_for_the_type_when_a_type_is_given(stage, mara):
    writer = keeps(stage)
    told = answer(mara, type_override="create_source", custom_pages=[page_name("Oren")])
    assert writer.planned == []
    assert (told.context_meta["task_type"], told.context_meta["type_from"]) == (
        "create_source",
        "override",
    )
    assert "--- Oren ---" in writer.sent[0][1]


@pytest.mark.req("S4-55")
def test_page_hidden_from_the_builder_is_not_in_the_package(stage, mara):
    writer = keeps(stage, Writer(plan=("unknown", ["The Vault", "The Ferry"])))
    told = answer(mara)
    assert "seventeen" not in str(writer.sent)
    assert "seventeen" not in str(told.context_meta)


@pytest.mark.req("S4-55")
def test_source_hidden_from_the_builder_is_not_found(stage, mara):
    write("harbour", "Sources:The Safe", f"{FOR_ADMINS}The ferry carries the seal of the vault.")
    writer = keeps(stage)
    told = answer(mara).context_meta
    assert "--- Sources:The Log ---" in writer.sent[0][1]
    assert "seal" not in str(writer.sent)
    assert "Safe" not in str(told)
    assert "1 of the sources for The Ferry may not be read here" in told["warnings"]


@pytest.mark.req("S4-55")
def test_page_is_in_the_package_when_the_builder_may_read_it(stage, mara):
    write("harbour", "Sources:The Safe", f"{FOR_ADMINS}The ferry carries the seal of the vault.")
    mara.permissions.add("Admin")
    writer = keeps(stage, Writer(plan=("unknown", ["The Vault", "The Ferry"])))
    answer(mara)
    assert "seventeen" in writer.sent[0][1]
    assert "seal of the vault" in writer.sent[0][1]


@pytest.mark.req("S4-55")
def test_knowledge_base_counts_as_missing_for_a_player(stage, mara):
    writer = keeps(stage)
    assert "harbour" in refused(stage.anna)
    assert writer.asked == []


@pytest.mark.req("S4-55")
def test_knowledge_base_counts_as_missing_when_its_lock_hides_it(stage, mara):
    keeps(stage)
    a_wiki("crypt", texts={}, locks="view:perm(Admin)")
    told = done(lorekeeper(TASK, base="crypt", by=mara)).getErrorMessage()
    assert "harbour" in told


def test_task_fails_before_the_writer_is_asked_when_instructions_do_not_fit(stage, mara):
    write("harbour", "Instructions:World Bible", "A harbour. " * 4000)
    writer = keeps(stage)
    failure = done(lorekeeper(TASK, base="harbour", by=mara))
    assert failure.check(ContextBudgetError)
    assert writer.asked == []


def test_task_fails_before_the_writer_is_asked_when_the_package_is_too_large(stage, mara):
    write("harbour", "Instructions:Config", "---\nbudget_tokens: 100000\n---\n")
    write("harbour", "The Ferry", "The ferry sails. " * 4000)
    writer = keeps(stage)
    assert "takes 8192" in refused(mara)
    assert writer.asked == []


def test_request_in_a_conversation_begins_with_the_instructions_only(stage, mara):
    earlier = [Message(role="user", content=TASK), Message(role="assistant", content=A_PAGE)]
    writer = keeps(stage)
    answer(mara, "Half as long", earlier=earlier)
    roles = [role for role, _ in writer.sent]
    system, *between, context, task = [content for _, content in writer.sent]
    assert roles == ["system", "user", "assistant", "user", "user"]
    assert between == [TASK, A_PAGE]
    assert system.startswith(FIRST)
    assert "[ENCYCLOPEDIA CONTEXT]" not in system
    assert context.startswith("[ENCYCLOPEDIA CONTEXT]\n--- The Ferry ---")
    assert task == "Half as long"


def test_placement_setting_splits_the_package_of_a_single_task(stage, mara):
    writer = keeps(stage, package_placement="split")
    told = answer(mara)
    assert [role for role, _ in writer.sent] == ["system", "user", "user"]
    assert told.context_meta["placement"] == "split"


def test_lorekeeper_returns_before_the_model_has_answered(stage, mara):
    stage.talks_with(Writer(), delay_seconds=5.0)
    results: list[Any] = []
    lorekeeper(TASK, base="harbour", by=mara).addBoth(results.append)
    assert results == []
    stage.passes(5)
    stage.passes(5)
    assert results[0].drafts


def test_task_fails_and_stores_no_draft_when_the_model_is_unavailable(stage, mara):
    keeps(stage, Writer(ModelUnavailable("stub", "is broken")))
    assert "is broken" in refused(mara)


def test_error_names_the_settings_when_there_is_no_writing_model(stage, mara):
    stage.opens(None)
    assert "EVENNIA_AI_MODEL_ROLES['lorekeeper']" in refused(mara)


def test_empty_task_is_refused(stage, mara):
    writer = keeps(stage)
    assert "empty" in refused(mara, "  ")
    assert writer.planned == []


def test_task_is_refused_with_the_limit_when_the_builder_reached_it(stage, mara):
    limits = read_quotas({"player": {"calls_per_minute": 2}}, where="L")
    stage.talks_with(Writer(), limits=limits)
    answer(mara)
    assert "the lorekeeper may not ask a model" in refused(mara)


def test_wikipedia_is_not_asked_when_the_settings_name_no_address(stage, mara):
    write("harbour", "Instructions:Config", "---\nwikipedia: true\n---\n")
    keeps(stage)
    told = answer(mara).context_meta
    assert "EVENNIA_AI_KNOWLEDGE_WIKIPEDIA is not set to the address of a wiki" in str(
        told["warnings"]
    )


@pytest.mark.req("S4-55")
def test_watchers_get_no_words_of_a_restricted_knowledge_base(stage, mara, monkeypatch):
    restricted(a_wiki("secret", texts={**PAGES, "The Ferry": "It carries canaries."}))
    keeps(stage)
    heard: list[Any] = []
    watch = stage.running.runtime().watch
    monkeypatch.setattr(watch, "asked", lambda *told: heard.append(told))
    monkeypatch.setattr(watch, "answered", lambda *told: heard.append(told))
    done(lorekeeper(TASK, base="secret", by=mara))
    assert heard
    assert "canaries" not in str(heard)


def test_token_budget_of_the_settings_applies_when_the_config_page_has_no_budget(stage, mara):
    keeps(stage, budget_tokens=900)
    assert answer(mara).context_meta["tokens"]["limit"] == 400
    assert replace(conf()).lorekeeper == LorekeeperSettings()


@pytest.mark.req("S4-55")
def test_npc_that_guards_a_knowledge_base_may_not_give_a_task_for_it(stage, mara):
    restricted(a_wiki("secret"))
    keeps(stage)
    stage.npc.permissions.add("Builder")
    told = done(lorekeeper(TASK, base="secret", by=stage.npc)).getErrorMessage()
    assert "gets only safe summaries of it" in told
    assert done(lorekeeper(TASK, base="harbour", by=stage.npc)).drafts
