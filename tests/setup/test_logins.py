"""Test the passwords of the demo: made for each checkout, readable only by its owner."""

import json
import re
import stat

import pytest

from server.logins import FILE, ONE_PASSWORD, Logins, keep_logins, read_logins
from server.steps import StepError

ONE = {ONE_PASSWORD: "open-sesame"}


@pytest.fixture
def root(tmp_path):
    """The folder of a game that was never started."""
    (tmp_path / "server").mkdir()
    return tmp_path


def passwords(logins):
    return [password for _, password in (logins.superuser, logins.builder, logins.player)]


def test_passwords_of_two_games_are_different():
    made = [password for _ in range(20) for password in passwords(Logins.made({}))]

    assert len(set(made)) == 60
    assert all(re.fullmatch("[0-9a-f]{24}", password) for password in made)


def test_login_file_is_readable_only_by_its_owner(root):
    keep_logins(root, {})

    assert stat.S_IMODE((root / FILE).stat().st_mode) == 0o600
    assert [path.name for path in (root / "server").iterdir()] == [FILE.name]


def test_game_keeps_its_passwords(root):
    first = keep_logins(root, {})

    assert keep_logins(root, {}) == first == read_logins(root)


def test_one_variable_sets_the_password_of_all_accounts(root):
    assert passwords(keep_logins(root, ONE)) == ["open-sesame"] * 3


def test_chosen_password_stays_when_the_variable_is_gone(root):
    chosen = keep_logins(root, ONE)

    assert keep_logins(root, {}) == chosen


def test_another_password_gives_another_edition(root):
    first = keep_logins(root, {})
    second = keep_logins(root, ONE)

    assert second.edition != first.edition
    assert keep_logins(root, ONE).edition == second.edition


def test_superuser_follows_evennias_variables(root):
    chosen = {"EVENNIA_SUPERUSER_USERNAME": "root", "EVENNIA_SUPERUSER_PASSWORD": "of-my-own"}

    assert keep_logins(root, {**ONE, **chosen}).superuser == ("root", "of-my-own")


@pytest.mark.parametrize(
    "chosen", ["short", "with a blank", "a|rpipe-red", 'quo"ted-one', "x" * 65]
)
def test_untypeable_password_is_refused_with_the_rule(root, chosen):
    with pytest.raises(StepError, match=r"EVENNIA_AI_DEMO_PASSWORD must be 8 to 64 letters"):
        keep_logins(root, {ONE_PASSWORD: chosen})

    assert not (root / FILE).exists()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"superuser": ["admin"]}', "\x00"])
def test_login_file_with_other_content_is_refused_with_advice(root, text):
    (root / FILE).write_text(text)

    with pytest.raises(StepError, match=r"does not contain logins: .* Delete it"):
        read_logins(root)


def test_login_file_says_whose_passwords_it_has(root):
    logins = keep_logins(root, {})

    assert json.loads((root / FILE).read_text())["player"] == ["anna", logins.player[1]]
