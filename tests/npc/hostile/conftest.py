"""Failures of the checks of this folder tell what was compared."""

import pytest

pytest.register_assert_rewrite("tests.npc.hostile.invariants")
