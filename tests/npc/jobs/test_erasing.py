"""No word of what is erased is left in what a worker offers at the same moment."""

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


def test_of_an_erasure_that_is_not_committed_yet_the_offer_waits(both):
    assert (both["erased first"]["state"], both["erased first"]["body"]) == ("failed", "")
    assert "another segment" in both["erased first"]["reason"]


def test_an_offer_that_is_not_committed_yet_is_waited_for(both):
    assert (both["offered first"]["state"], both["offered first"]["body"]) == ("stale", "")
    assert "erased" in both["offered first"]["reason"]
