"""Test that the lookup of a page has the same cost however many pages its base has."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evennia_ai.engine.knowledge.pages.page import page_name
from evennia_ai.store.knowledge import pages
from tests.store.knowledge.knowledge_builders import a_base, a_page, a_saved_page, saved

FERRY = page_name("Ferry")
BOAT = page_name("Boat")


@pytest.fixture(autouse=True)
def _harbour():
    a_base()
    a_saved_page("Ferry", "[[Quay]]", aliases=["Boat"])
    pages.page_or_none("harbour", FERRY)


@pytest.mark.parametrize(
    "asked",
    [
        lambda: pages.page_or_none("harbour", FERRY),
        lambda: pages.page_or_none("harbour", BOAT),
        lambda: pages.pages_named("harbour", [FERRY, BOAT]),
        lambda: pages.linked_pages("harbour", [FERRY]),
        lambda: pages.pages_linking_to("harbour", FERRY),
        lambda: pages.page_revisions("harbour", FERRY),
        lambda: pages.page_at_revision("harbour", FERRY, 1),
        lambda: saved(a_page("Ferry", "new")),
    ],
)
def test_no_query_scans_a_whole_table(asked):
    with CaptureQueriesContext(connection) as queries:
        asked()

    selects = [one["sql"] for one in queries if one["sql"].startswith("SELECT")]
    plans = [line for sql in selects for line in plan_of(sql) if is_whole(line)]
    assert selects
    assert plans == []


def plan_of(sql: str) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {sql}".replace("%", "%%"))
        return [row[3] for row in cursor.fetchall()]


def is_whole(line: str) -> bool:
    """True if a step of a query plan reads all rows, or all pages of a base."""
    return ("SCAN" in line or "(base_id=?)" in line) and "knowledgebase" not in line


def test_many_names_take_few_queries():
    names = [page_name(f"Nothing {number}") for number in range(400)]

    with CaptureQueriesContext(connection) as queries:
        pages.pages_named("harbour", [*names, FERRY])

    assert len(queries) == 2
