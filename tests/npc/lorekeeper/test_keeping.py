"""The lorekeeper: from a task to an answer, with one call of the model that writes."""

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
def test_the_package_stands_before_the_system_prompt(stage, mara):
    writer = keeps(stage)
    answer(mara)
    (system, said), (user, task) = writer.sent
    assert (system, user, task) == ("system", "user", TASK)
    assert said.startswith(FIRST)
    assert "\n\nYou are the lorekeeper of Ebbwick" in said
    assert said.index("[SOURCES]") < said.index("You are the lorekeeper")


@pytest.mark.req("S4-02", "S4-09")
def test_a_cheap_model_sorts_the_task_and_one_call_writes(stage, mara):
    writer = keeps(stage)
    answer(mara)
    assert (len(writer.planned), len(writer.asked)) == (1, 1)
    assert writer.asked[0].tools == ()


def test_the_words_of_the_task_go_to_the_planner_as_data(stage, mara):
    writer = keeps(stage)
    answer(mara)
    (request,) = writer.planned
    assert [message.content for message in request.messages if TASK in message.content] == [
        f"<task>\n{TASK}\n</task>"
    ]


def test_a_planner_that_writes_rubbish_is_not_asked_again(stage, mara):
    writer = keeps(stage, Writer(plan="I would say an article."))
    told = answer(mara).context_meta
    assert (told["task_type"], told["type_from"]) == ("unknown", "fallback")
    assert len(writer.planned) == 1
    assert REPAIR[:20] not in str(writer.asked)


def test_a_planner_that_is_away_does_not_stop_the_work(stage, mara):
    keeps(stage, Writer(plan=ModelUnavailable("stub", "broken")))
    told = answer(mara)
    assert told.drafts
    assert "broken" in str(told.context_meta["warnings"])


@pytest.mark.req("S4-04", "S4-50", "S4-52")
def test_a_query_goes_to_the_writer_without_planner_or_package(stage, mara):
    writer = keeps(stage, Writer("The ferry."))
    told = answer(mara, QUERY)
    assert (told.text, told.drafts) == ("The ferry.", ())
    assert (len(writer.planned), len(writer.asked)) == (0, 1)
    assert "[INSTRUCTIONS]" not in str(writer.sent)
    assert told.context_meta["bypassed"] is True
    assert told.context_meta["reason"]


def test_what_the_planner_calls_a_query_has_no_package_either(stage, mara):
    writer = keeps(stage, Writer("Two.", plan=("query", [])))
    told = answer(mara, "How tall is the ferry, and did anybody measure it?").context_meta
    assert told["bypassed"] is True
    assert len(writer.asked) == 1


@pytest.mark.req("S4-03")
def test_switched_off_the_writer_is_asked_directly(stage, mara):
    writer = keeps(stage, enabled=False)
    told = answer(mara)
    assert (len(writer.planned), len(writer.asked)) == (0, 1)
    assert (told.context_meta["bypassed"], told.context_meta["reason"]) == (True, SWITCHED_OFF)


@pytest.mark.req("S4-50")
def test_every_answer_tells_what_it_was_made_from(stage, mara):
    keeps(stage)
    told = answer(mara).context_meta
    assert (told["base"], told["bypassed"], told["entities"]) == ("harbour", False, ["The Ferry"])
    assert len(told["steps"]) == 15
    assert told["pages"][0]["page"] == "Instructions:World Bible"


@pytest.mark.req("S4-53")
def test_a_type_that_was_given_is_not_asked_for_and_its_pages_are_read(stage, mara):
    writer = keeps(stage)
    told = answer(mara, type_override="create_source", custom_pages=[page_name("Oren")])
    assert writer.planned == []
    assert (told.context_meta["task_type"], told.context_meta["type_from"]) == (
        "create_source",
        "override",
    )
    assert "--- Oren ---" in writer.sent[0][1]


@pytest.mark.req("S4-55")
def test_a_page_that_is_hidden_from_who_asks_is_not_read(stage, mara):
    writer = keeps(stage, Writer(plan=("unknown", ["The Vault", "The Ferry"])))
    told = answer(mara)
    assert "seventeen" not in str(writer.sent)
    assert "seventeen" not in str(told.context_meta)


@pytest.mark.req("S4-55")
def test_a_source_that_is_hidden_from_who_asks_is_not_found(stage, mara):
    write("harbour", "Sources:The Safe", f"{FOR_ADMINS}The ferry carries the seal of the vault.")
    writer = keeps(stage)
    told = answer(mara).context_meta
    assert "--- Sources:The Log ---" in writer.sent[0][1]
    assert "seal" not in str(writer.sent)
    assert "Safe" not in str(told)
    assert "1 of the sources for The Ferry may not be read here" in told["warnings"]


@pytest.mark.req("S4-55")
def test_whoever_may_read_it_is_shown_it(stage, mara):
    write("harbour", "Sources:The Safe", f"{FOR_ADMINS}The ferry carries the seal of the vault.")
    mara.permissions.add("Admin")
    writer = keeps(stage, Writer(plan=("unknown", ["The Vault", "The Ferry"])))
    answer(mara)
    assert "seventeen" in writer.sent[0][1]
    assert "seal of the vault" in writer.sent[0][1]


@pytest.mark.req("S4-55")
def test_a_player_is_told_of_no_base(stage, mara):
    writer = keeps(stage)
    assert "harbour" in refused(stage.anna)
    assert writer.asked == []


@pytest.mark.req("S4-55")
def test_a_base_behind_a_lock_is_not_there(stage, mara):
    keeps(stage)
    a_wiki("crypt", texts={}, locks="view:perm(Admin)")
    told = done(lorekeeper(TASK, base="crypt", by=mara)).getErrorMessage()
    assert "harbour" in told


def test_instructions_that_do_not_fit_are_an_error_before_anybody_writes(stage, mara):
    write("harbour", "Instructions:World Bible", "A harbour. " * 4000)
    writer = keeps(stage)
    failure = done(lorekeeper(TASK, base="harbour", by=mara))
    assert failure.check(ContextBudgetError)
    assert writer.asked == []


def test_a_package_too_large_for_the_model_is_an_error_before_anybody_writes(stage, mara):
    write("harbour", "Instructions:Config", "---\nbudget_tokens: 100000\n---\n")
    write("harbour", "The Ferry", "The ferry sails. " * 4000)
    writer = keeps(stage)
    assert "takes 8192" in refused(mara)
    assert writer.asked == []


def test_in_a_conversation_the_instructions_alone_stand_in_front(stage, mara):
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


def test_the_setting_splits_single_tasks_as_well(stage, mara):
    writer = keeps(stage, package_placement="split")
    told = answer(mara)
    assert [role for role, _ in writer.sent] == ["system", "user", "user"]
    assert told.context_meta["placement"] == "split"


def test_nothing_waits_for_a_model(stage, mara):
    stage.talks_with(Writer(), delay_seconds=5.0)
    results: list[Any] = []
    lorekeeper(TASK, base="harbour", by=mara).addBoth(results.append)
    assert results == []
    stage.passes(5)
    stage.passes(5)
    assert results[0].drafts


def test_a_model_that_is_away_is_an_error_and_nothing_is_kept(stage, mara):
    keeps(stage, Writer(ModelUnavailable("stub", "is broken")))
    assert "is broken" in refused(mara)


def test_without_a_model_the_error_says_what_to_set(stage, mara):
    stage.opens(None)
    assert "EVENNIA_AI_MODEL_ROLES['lorekeeper']" in refused(mara)


def test_an_empty_task_is_refused(stage, mara):
    writer = keeps(stage)
    assert "empty" in refused(mara, "  ")
    assert writer.planned == []


def test_whoever_asked_too_much_is_told_so(stage, mara):
    limits = read_quotas({"player": {"calls_per_minute": 2}}, where="L")
    stage.talks_with(Writer(), limits=limits)
    answer(mara)
    assert "the lorekeeper may not ask a model" in refused(mara)


def test_wikipedia_is_not_asked_where_the_settings_name_no_address(stage, mara):
    write("harbour", "Instructions:Config", "---\nwikipedia: true\n---\n")
    keeps(stage)
    told = answer(mara).context_meta
    assert "EVENNIA_AI_KNOWLEDGE_WIKIPEDIA names no address" in str(told["warnings"])


@pytest.mark.req("S4-55")
def test_of_a_restricted_base_no_watcher_hears_a_word(stage, mara, monkeypatch):
    restricted(a_wiki("secret", texts={**PAGES, "The Ferry": "It carries canaries."}))
    keeps(stage)
    heard: list[Any] = []
    watch = stage.running.runtime().watch
    monkeypatch.setattr(watch, "asked", lambda *told: heard.append(told))
    monkeypatch.setattr(watch, "answered", lambda *told: heard.append(told))
    done(lorekeeper(TASK, base="secret", by=mara))
    assert heard
    assert "canaries" not in str(heard)


def test_the_budget_of_the_settings_holds_where_the_page_says_nothing(stage, mara):
    keeps(stage, budget_tokens=900)
    assert answer(mara).context_meta["tokens"]["limit"] == 400
    assert replace(conf()).lorekeeper == LorekeeperSettings()


@pytest.mark.req("S4-55")
def test_an_npc_that_guards_a_base_is_not_shown_its_pages(stage, mara):
    restricted(a_wiki("secret"))
    keeps(stage)
    stage.npc.permissions.add("Builder")
    told = done(lorekeeper(TASK, base="secret", by=stage.npc)).getErrorMessage()
    assert "gets only safe summaries of it" in told
    assert done(lorekeeper(TASK, base="harbour", by=stage.npc)).drafts
