"""Let pytest show the compared values when a check of this folder fails."""

import pytest

pytest.register_assert_rewrite("tests.npc.hostile.invariants")
