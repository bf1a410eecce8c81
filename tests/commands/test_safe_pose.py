"""The demo game's own `pose` shows what players write and runs nothing in it."""

import pytest

from tests.commands.stage import hearing


@pytest.fixture
def posing(stage):
    """Return what the builder sees when the player poses with the demo game's commands."""
    from commands.default_cmdsets import CharacterCmdSet

    stage.player.cmdset.add(CharacterCmdSet)

    def pose(line):
        with hearing(stage.builder) as heard:
            stage.player.execute_cmd(line)
        return heard

    return pose


@pytest.mark.parametrize(
    "text", ["$space(99999999)", "$eval(1+1)", "{x}", "a } b", "{posed.__class__}", "waves."]
)
def test_a_pose_is_shown_as_it_was_written(posing, stage, text):
    assert posing(f"pose {text}") == [f"{stage.player.key} {text}"]


def test_a_pose_may_begin_with_a_possessive(posing, stage):
    assert posing("pose's hat is wet.") == [f"{stage.player.key}'s hat is wet."]


def test_an_empty_pose_shows_nothing(posing):
    assert posing("pose") == []
