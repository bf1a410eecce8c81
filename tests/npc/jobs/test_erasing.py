"""A worker offers a result while its conversation is erased: no erased word remains."""

import json
import os
import subprocess
import sys

import pytest

from tests.npc.jobs.processes import ROOT

pytestmark = [pytest.mark.service, pytest.mark.minutes(1)]


@pytest.fixture
def both(place):
    done = subprocess.run(
        [sys.executable, "-m", "tests.npc.jobs.erasing_apart"],
        cwd=ROOT,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.npc.jobs.tables_settings",
            "EVENNIA_AI_TEST_DATABASE": place.address,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_offer_waits_for_an_uncommitted_erasure_and_then_fails(both):
    assert (both["erased first"]["state"], both["erased first"]["body"]) == ("failed", "")
    assert "another segment" in both["erased first"]["reason"]


def test_erasure_waits_for_an_uncommitted_offer_and_then_empties_it(both):
    assert (both["offered first"]["state"], both["offered first"]["body"]) == ("stale", "")
    assert "erased" in both["offered first"]["reason"]
