"""File paths in messages to builders begin in the game's folder and reveal nothing else."""

from pathlib import Path

import pytest
from django.conf import settings

from evennia_ai.commands.base import CommandError
from evennia_ai.commands.folder import new_file, offered, shown_path

GAME = Path(settings.GAME_DIR).resolve()


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        (GAME / "world" / "cards", "world/cards"),
        (Path("world/cards"), "world/cards"),
        (GAME / "world" / ".." / "cards", "cards"),
        (GAME, "."),
        (Path("/srv/secret/place/cards"), "cards"),
        (GAME.parent / f"{GAME.name}-beside" / "cards", "cards"),
    ],
)
def test_path_is_shown_from_the_folder_of_the_game_on(path, shown):
    assert shown_path(path) == shown


def test_messages_about_a_folder_elsewhere_name_no_part_of_its_path(tmp_path):
    gone = tmp_path / "private-part" / "cards"
    assert "private-part" not in " ".join(offered(gone))
    with pytest.raises(CommandError, match="written into cards") as caught:
        new_file(gone, "Mira", b"x")
    assert "private-part" not in str(caught.value)
