"""Tasks of the lorekeeper in the database."""

import pytest

from evennia_ai.store.knowledge import lorekeeper_tasks
from evennia_ai.store.knowledge.lorekeeper_tasks import NewTask

pytestmark = pytest.mark.usefixtures("db")


def a_task(who: str = "7", **fields: str) -> NewTask:
    told = {"base": "harbour", "task": "Write", "request": "[]", "sha256": "0" * 64, **fields}
    return NewTask(asked_by=who, context_meta={"pages": ["A"]}, **told)


@pytest.mark.req("S4-01")
def test_a_task_is_there_before_it_has_an_answer():
    number = lorekeeper_tasks.begin(a_task(task="Write \x00 it"))
    kept = lorekeeper_tasks.newest("7")
    assert (kept.number, kept.task, kept.ended_at) == (number, "Write \ufffd it", None)
    assert kept.context_meta == {"pages": ["A"]}


def test_its_end_changes_no_other():
    first, second = lorekeeper_tasks.begin(a_task()), lorekeeper_tasks.begin(a_task("8"))
    lorekeeper_tasks.end(first, text="Done.", context_meta={"model": "m"})
    lorekeeper_tasks.keep_drafts(first, (3, 4))
    lorekeeper_tasks.fail(second, "away")
    done, failed = lorekeeper_tasks.newest("7"), lorekeeper_tasks.newest("8")
    assert (done.text, done.drafts, done.error) == ("Done.", (3, 4), "")
    assert (failed.text, failed.drafts, failed.error) == ("", (), "away")
    assert failed.context_meta == {"pages": ["A"]}


def test_the_newest_is_the_last_one_that_was_asked():
    lorekeeper_tasks.begin(a_task(task="first"))
    lorekeeper_tasks.begin(a_task(task="second"))
    assert lorekeeper_tasks.newest("7").task == "second"
    assert lorekeeper_tasks.newest("9") is None
