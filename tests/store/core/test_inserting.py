"""Test inserts of many rows in few statements."""

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from evennia_ai import models
from evennia_ai.store.core.inserting import Insert

COLUMNS = ("npc_ref", "halted_by", "halted_at", "reason")
halted = Insert(models.Halt, COLUMNS)


def rows(count):
    return [(str(number), "Mira", float(number), "") for number in range(count)]


pytestmark = pytest.mark.usefixtures("db")


@pytest.mark.req("S2-01")
@pytest.mark.parametrize("count", [1, 2, 50, 51, 120])
def test_inserted_ids_have_the_order_of_the_rows(count):
    ids = halted(rows(count))
    stored = dict(models.Halt.objects.values_list("pk", "npc_ref"))
    assert [stored[found] for found in ids] == [str(number) for number in range(count)]


def test_inserting_nothing_makes_no_query():
    with CaptureQueriesContext(connection) as made:
        assert halted([]) == []
    assert made.captured_queries == []


def test_fifty_rows_are_one_statement():
    with CaptureQueriesContext(connection) as made:
        halted(rows(50))
    assert len(made.captured_queries) == 1


def test_every_inserted_value_is_read_unchanged():
    (pk,) = halted([("12", 'Anna\'s % "quoted" \N{SNOWMAN} name', 2.5, "why?\n%s")])
    row = models.Halt.objects.get(pk=pk)
    assert (row.halted_by, row.halted_at, row.reason) == (
        'Anna\'s % "quoted" \N{SNOWMAN} name',
        2.5,
        "why?\n%s",
    )


def test_forbidden_row_is_refused():
    with pytest.raises(IntegrityError), transaction.atomic():
        halted([*rows(1), *rows(1)])
    assert not models.Halt.objects.exists()
