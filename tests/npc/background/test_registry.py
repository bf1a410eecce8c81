"""Which kinds of work a worker does."""

import pytest

from evennia_ai.npc.jobs import registry
from evennia_ai.npc.jobs.registry import LackingKindError, UnknownKindError, kinds_of


@pytest.fixture
def without_numpy(monkeypatch):
    monkeypatch.setitem(registry.NEEDED, "embed", lambda: ("numpy", "tokenizers"))


def test_all_kinds_are_done_where_nothing_is_missing(monkeypatch):
    monkeypatch.setitem(registry.NEEDED, "embed", lambda: ())
    kinds = kinds_of()
    assert set(kinds) == set(registry.KINDS)
    assert {name: kind.name for name, kind in kinds.items()} == {name: name for name in kinds}


def test_what_lacks_its_packages_is_left_to_others(without_numpy):
    assert set(kinds_of()) == set(registry.KINDS) - {"embed"}


def test_what_lacks_its_packages_is_refused_where_it_is_named(without_numpy):
    with pytest.raises(LackingKindError, match="embed cannot be done here without numpy, tokeniz"):
        kinds_of(("embed",))


def test_a_kind_that_is_none_is_refused_by_name():
    with pytest.raises(UnknownKindError, match=r"'sums'; there are: compact, embed, observe"):
        kinds_of(("observe", "sums"))
