"""Stored tasks: everything that a model is sent is committed before the model is asked."""

from typing import Any

import pytest

from evennia_ai.engine.errors import ModelRefused, ModelUnavailable, StoreError
from evennia_ai.npc.lorekeeper.writing import read_request
from evennia_ai.services.llm.chat import sent_sha256
from evennia_ai.services.llm.roles import chat_messages
from evennia_ai.store.knowledge import page_drafts
from tests.npc.lorekeeper.wikis import (
    PAGES,
    TASK,
    Writer,
    a_wiki,
    answer,
    done,
    keeps,
    lorekeeper,
    refused,
    restricted,
)


class Witness(Writer):
    """A writing model that reads, while it is asked, what the store holds for a builder."""

    def __init__(self, who: Any, *told: Any, **plan: Any) -> None:
        super().__init__(*told, **plan)
        self.who = who
        self.seen: list[Any] = []

    def __call__(self, request: Any) -> Any:
        text = super().__call__(request)
        if request in self.asked:
            self.seen.append(page_drafts.newest_task(str(self.who.id)))
        return text


@pytest.mark.req("S2-01", "S4-01")
def test_package_and_request_are_stored_before_the_model_is_asked(stage, mara):
    witness = Witness(mara)
    keeps(stage, witness)
    told = answer(mara)
    seen = witness.seen[-1]
    sent = [(one.role, one.content) for one in read_request(seen.request)]
    assert sent == witness.sent
    assert seen.sha256 == sent_sha256(chat_messages(read_request(seen.request)))
    assert (seen.number, seen.task, seen.ended_at, seen.text) == (told.number, TASK, None, "")
    assert [one["page"] for one in seen.context_meta["pages"]] == [
        one["page"] for one in told.context_meta["pages"]
    ]


@pytest.mark.req("S2-01", "S4-01")
def test_model_is_not_asked_when_the_task_cannot_be_stored(stage, mara, monkeypatch):
    writer = keeps(stage)

    def refuse(new: Any) -> int:
        raise StoreError("the disk is full")

    monkeypatch.setattr(page_drafts, "begin_task", refuse)
    assert "the disk is full" in refused(mara)
    assert writer.asked == []


@pytest.mark.req("S4-01")
@pytest.mark.parametrize(
    ("task", "text"), [(TASK, "I would rather not."), ("List the boats", "Two boats.")]
)
def test_answer_without_a_page_is_stored(stage, mara, task, text):
    keeps(stage, Writer(text))
    told = answer(mara, task)
    kept = page_drafts.newest_task(str(mara.id))
    assert (kept.text, kept.drafts, kept.error) == (text, (), "")
    assert kept.context_meta == told.context_meta
    assert kept.ended_at >= kept.began_at


def test_stored_task_has_the_numbers_of_its_drafts(stage, mara):
    keeps(stage)
    told = answer(mara)
    assert page_drafts.newest_task(str(mara.id)).drafts == told.drafts != ()


def test_stored_task_says_why_there_is_no_answer(stage, mara):
    keeps(stage, Writer(ModelUnavailable("stub", "is broken")))
    refused(mara)
    kept = page_drafts.newest_task(str(mara.id))
    assert "is broken" in kept.error
    assert kept.request


def test_stored_task_has_only_the_kind_of_an_error_about_a_restricted_knowledge_base(stage, mara):
    restricted(a_wiki("secret", texts=PAGES))
    keeps(stage, Writer(ModelRefused("stub", 400, "cannot read canaries")))
    done(lorekeeper(TASK, base="secret", by=mara))
    assert page_drafts.newest_task(str(mara.id)).error == "ModelRefused"


def test_answer_is_returned_when_its_end_cannot_be_stored(stage, mara, monkeypatch):
    keeps(stage)

    def refuse(*args: Any, **fields: Any) -> None:
        raise StoreError("away")

    monkeypatch.setattr(page_drafts, "end_task", refuse)
    assert answer(mara).drafts


def test_builder_sees_only_own_tasks(stage, mara):
    keeps(stage)
    answer(mara)
    assert page_drafts.newest_task(str(stage.anna.id)) is None
