"""Test stored tasks of the lorekeeper."""

import pytest

from evennia_ai.store.knowledge import page_drafts
from evennia_ai.store.knowledge.page_drafts import NewTask

pytestmark = pytest.mark.usefixtures("db")


def a_task(who: str = "7", **fields: str) -> NewTask:
    told = {"base": "harbour", "task": "Write", "request": "[]", "sha256": "0" * 64, **fields}
    return NewTask(asked_by=who, context_meta={"pages": ["A"]}, **told)


@pytest.mark.req("S4-01")
def test_task_is_stored_before_its_answer():
    number = page_drafts.begin_task(a_task(task="Write \x00 it"))
    kept = page_drafts.newest_task("7")
    assert (kept.number, kept.task, kept.ended_at) == (number, "Write \ufffd it", None)
    assert kept.context_meta == {"pages": ["A"]}


def test_end_of_a_task_changes_no_other_task():
    first, second = page_drafts.begin_task(a_task()), page_drafts.begin_task(a_task("8"))
    page_drafts.end_task(first, text="Done.", context_meta={"model": "m"})
    page_drafts.keep_drafts(first, (3, 4))
    page_drafts.fail_task(second, "away")
    done, failed = page_drafts.newest_task("7"), page_drafts.newest_task("8")
    assert (done.text, done.drafts, done.error) == ("Done.", (3, 4), "")
    assert (failed.text, failed.drafts, failed.error) == ("", (), "away")
    assert failed.context_meta == {"pages": ["A"]}


def test_newest_task_is_the_last_one_given():
    page_drafts.begin_task(a_task(task="first"))
    page_drafts.begin_task(a_task(task="second"))
    assert page_drafts.newest_task("7").task == "second"
    assert page_drafts.newest_task("9") is None
