"""Which kinds of jobs a worker can do, depending on the installed packages."""

import pytest

from evennia_ai.npc.jobs import registry
from evennia_ai.npc.jobs.registry import LackingKindError, UnknownKindError, kinds_of


@pytest.fixture
def without_numpy(monkeypatch):
    monkeypatch.setitem(registry.NEEDED, "embed", lambda: ("numpy", "tokenizers"))


def test_worker_does_all_kinds_when_no_package_is_missing(monkeypatch):
    monkeypatch.setitem(registry.NEEDED, "embed", lambda: ())
    kinds = kinds_of()
    assert set(kinds) == set(registry.KINDS)
    assert {name: kind.name for name, kind in kinds.items()} == {name: name for name in kinds}


def test_worker_skips_a_kind_whose_packages_are_missing(without_numpy):
    assert set(kinds_of()) == set(registry.KINDS) - {"embed"}


def test_named_kind_is_refused_when_its_packages_are_missing(without_numpy):
    with pytest.raises(LackingKindError, match="embed cannot be done here without numpy, tokeniz"):
        kinds_of(("embed",))


def test_unknown_kind_is_refused_with_the_list_of_kinds():
    with pytest.raises(UnknownKindError, match=r"'sums'; there are: compact, embed, observe"):
        kinds_of(("observe", "sums"))
