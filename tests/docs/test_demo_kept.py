"""Test the kept cases of the demo: they hold, fail after an edit of lore, and can be accepted."""

from typing import Any

import pytest

from evennia_ai.cli.game import kept
from evennia_ai.services.settings.conf import conf
from tests.docs.fences import ROOT

KEPT = ROOT / "world" / "demo" / "kept"


@pytest.fixture
def check(village: Any, capsys: pytest.CaptureFixture[str]) -> Any:
    """Return a function that checks the kept cases: the exit status and what was printed."""

    def check(*accept: str, only_changed: bool = False) -> tuple[int, str]:
        capsys.readouterr()
        status = kept.check(
            village.folder / "kept",
            conf(),
            accept=accept,
            only_changed=only_changed,
            ask=False,
            as_json=False,
            junit=None,
        )
        return status, capsys.readouterr().out

    return check


def test_eight_kept_cases_of_the_demo_hold(check: Any) -> None:
    status, told = check()
    assert status == 0, told
    assert "8 kept answers: 8 same, 0 different, 0 unreadable; +0 tokens in all" in told
    largest = "oren-why-there-is-no-ferry-at-night"
    assert f"budget: the largest prompt, of {largest}, has 1604 of 7792 tokens" in told
    assert "lorebooks and cards: 0 findings" in told


def test_kept_answer_fails_after_an_edit_of_lore_until_it_is_accepted(
    village: Any, check: Any
) -> None:
    village.types("say Oren, why did the night ferry stop running?")
    village.types("ai/keep oren = asks about the night ferry")
    assert check()[0] == 0

    told = village.types("lore/off harbour/the night ferry")
    assert "2 kept answers get another prompt: ai/kept" in told
    status, told = check()
    assert status == 1
    assert "DIFFERS    oren-asks-about-the-night-ferry: asks about the night ferry" in told
    assert "left lore:harbour#6 (the night ferry), -65 tokens" in told
    assert "- The night ferry to Saltholm stopped running after the winter" in told
    assert "9 kept answers: 7 same, 2 different, 0 unreadable; -130 tokens in all" in told
    assert check(only_changed=True)[0] == 1

    status, told = check("oren-asks-about-the-night-ferry")
    assert (status, told.count("accepted ")) == (1, 1)
    status, told = check("all")
    assert (status, told.count("accepted ")) == (0, 1)
    assert check() == (0, check()[1])
    assert check(only_changed=True)[0] == 0
