"""Test that Debian's packages for tests are installed, or reported as missing."""

from pathlib import Path

import pytest

from server import preparing
from server.steps import StepError

WANTED = {"postgresql": "knowledge bases"}
HERE = Path(__file__).parent


@pytest.fixture
def machine(monkeypatch):
    """A machine without any packages, whose commands are recorded."""
    state = {"installed": set(), "commands": [], "titles": [], "fails": False, "unknown": set()}

    def run(title, command, **_):
        state["commands"].append(command)
        state["titles"].append(title)
        if state["fails"]:
            raise StepError(f"{title}: failed with status 100")
        if state["unknown"] & set(command):
            raise StepError("E: Unable to locate package")
        if "install" in command:
            state["installed"].update(command)

    monkeypatch.setattr(preparing, "run", run)
    monkeypatch.setattr(preparing, "_is_installed", lambda name: name in state["installed"])
    monkeypatch.setattr(preparing, "_can_install", lambda: True)
    return state


def test_present_package_is_not_installed_again(machine, capsys):
    machine["installed"].add("postgresql")

    assert preparing.ensure(WANTED, root=HERE) == ()
    assert machine["commands"] == []
    assert "postgresql is here, to test: knowledge bases" in capsys.readouterr().out


def test_missing_package_is_installed_after_the_lists_were_read(machine):
    assert preparing.ensure(WANTED, root=HERE) == ()

    assert [command[3] for command in machine["commands"]] == ["update", "install"]
    assert machine["titles"][-1] == "Installing postgresql"


def test_user_without_root_is_told_what_is_not_tested(machine, monkeypatch, capsys):
    monkeypatch.setattr(preparing, "_can_install", lambda: False)

    assert preparing.ensure(WANTED, root=HERE) == ("postgresql",)
    assert machine["commands"] == []
    assert "postgresql is missing, so this is not tested" in capsys.readouterr().out


def test_uninstallable_package_is_reported_without_stopping(machine, capsys):
    machine["fails"] = True

    assert preparing.ensure(WANTED, root=HERE) == ("postgresql",)
    assert "!! Reading Debian's lists: failed" in capsys.readouterr().out


def test_unknown_package_is_replaced_and_does_not_block_the_others(machine, capsys):
    machine["unknown"].add("chromium-headless-shell")
    wanted = {"chromium-headless-shell": "pages", **WANTED}

    assert preparing.ensure(wanted, root=HERE) == ()
    assert machine["installed"] >= {"chromium", "postgresql"}
    assert "chromium-headless-shell is here, to test: pages" in capsys.readouterr().out


def test_replacement_is_enough_when_nothing_can_be_installed(machine, monkeypatch):
    monkeypatch.setattr(preparing, "_can_install", lambda: False)
    machine["installed"].add("chromium")

    assert preparing.ensure({"chromium-headless-shell": "pages"}, root=HERE) == ()


def test_nonexistent_package_is_not_installed():
    assert not preparing._is_installed("no-such-package-of-debian")
