"""Test the parts of `make play` that need no running game."""

import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from server import evennia_process
from server.evennia_process import Evennia, lost_its_server, refuse_taken
from server.installation import Installation
from server.logins import keep_logins
from server.newcomer import main, read_demo
from server.ports import PORTS, Ports
from server.steps import StepError, run

ROOT = Path(__file__).resolve().parents[2]


def test_compiled_files_are_kept_whatever_the_shell_says(monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    environment = Installation(root=ROOT, programs=Path(sys.executable).parent).environment()
    asked = [sys.executable, "-c", "import sys; print(sys.dont_write_bytecode)"]
    said = subprocess.run(asked, env=environment, capture_output=True, text=True, check=True)
    assert said.stdout == "False\n"


def test_ports_are_evennias_without_variables():
    ports = Ports.from_environment({})

    assert (ports.telnet, ports.web, ports.websocket) == (4000, 4001, 4002)
    assert (ports.web_internal, ports.amp) == (4005, 4006)


@pytest.mark.parametrize("name", PORTS)
def test_one_variable_sets_one_port(name):
    changed = Ports.from_environment({PORTS[name].variable: "5123"})

    assert getattr(changed, name) == 5123
    assert list(changed.as_environment().values()).count("5123") == 1


def test_variables_of_ports_give_the_same_ports():
    ports = Ports(telnet=1, web=2, websocket=3, web_internal=4, amp=5)

    assert Ports.from_environment(ports.as_environment()) == ports


@pytest.mark.parametrize("text", ["web", "0", "65536", "-1", "4.5", "²"])
def test_invalid_port_is_refused_with_its_variable(text):
    with pytest.raises(ValueError, match=r"EVENNIA_AI_TELNET_PORT is .* from 1 to 65535"):
        Ports.from_environment({"EVENNIA_AI_TELNET_PORT": text})


def test_taken_port_is_reported_with_its_variable():
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = server.getsockname()[1]
        ports = Ports.from_environment({"EVENNIA_AI_TELNET_PORT": str(taken)})
        with pytest.raises(StepError) as refusal:
            refuse_taken(ports)

    assert re.fullmatch(
        rf"port {taken} \(telnet\) .+ make play EVENNIA_AI_TELNET_PORT=\d+", str(refusal.value)
    )


def test_server_is_started_by_a_second_call_if_the_launcher_gave_up(tmp_path):
    launcher = tmp_path / "evennia"
    launcher.write_text(
        "#!/bin/sh\n"
        "if [ -e once ]; then echo Evennia Server successfully started > server/logs/server.log\n"
        "else touch once; echo Connection to Evennia timed out. Try again.; fi\n",
        encoding="utf-8",
    )
    launcher.chmod(0o755)
    (tmp_path / "server" / "logs").mkdir(parents=True)
    with socket.create_server(("127.0.0.1", 0)) as portal:
        ports = Ports.from_environment({PORTS["amp"].variable: str(portal.getsockname()[1])})
        game = Evennia(installation=Installation(root=tmp_path, programs=tmp_path), ports=ports)
        game.start()

    assert (tmp_path / "server" / "logs" / "server.log").exists()


@pytest.fixture
def demo_path(tmp_path):
    """The source of a demo world, in the folder of a game that was never started."""
    path = tmp_path / "world" / "build_demo.py"
    path.parent.mkdir()
    (tmp_path / "server").mkdir()
    path.write_text(
        "import a_module_that_does_not_exist\n"
        "DEMO_NAMES: tuple[str, str] = ('b', 'p')\n"
        "DEMO_QUESTION = ('oren', 'why?')\n"
    )
    return path


def test_demo_is_read_without_importing_it(demo_path, tmp_path):
    logins = keep_logins(tmp_path, {})

    demo = read_demo(demo_path)

    assert (demo.builder, demo.player) == (logins.builder, logins.player)
    assert (demo.npc, demo.question) == ("oren", "why?")


def test_demo_without_passwords_is_refused_with_advice(demo_path):
    with pytest.raises(StepError, match=r"no passwords yet; `make stop`, then `make play`"):
        read_demo(demo_path)


def test_unknown_action_is_refused_with_the_usage(capsys):
    assert main(["fly"]) == 2
    assert "play|stop|test|check" in capsys.readouterr().out


def test_failing_step_shows_its_hidden_output(capsys, tmp_path):
    command = [sys.executable, "-c", "print('the reason'); raise SystemExit(3)"]
    with pytest.raises(StepError, match="Looking: failed with status 3"):
        run("Looking", command, cwd=tmp_path, environment={}, shown=lambda line: None)

    assert "the reason" in capsys.readouterr().out


def test_code_before_installation_needs_only_the_standard_library():
    script = (
        "import sys\n"
        "import server.newcomer, server.checks\n"
        "ours = {'server', '__main__'} | sys.stdlib_module_names\n"
        "print(*sorted({name.split('.')[0] for name in sys.modules} - ours))"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            "-c",
            f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{script}",
        ],
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.split() == []


def test_portal_without_server_is_recognized(tmp_path, monkeypatch):
    monkeypatch.setattr(evennia_process, "is_process", lambda pid, word: True)
    (tmp_path / "server").mkdir()
    assert not lost_its_server(tmp_path, patience_seconds=0)

    (tmp_path / "server" / "portal.pid").write_text("7")
    assert lost_its_server(tmp_path, patience_seconds=0)

    (tmp_path / "server" / "server.pid").write_text("8")
    assert not lost_its_server(tmp_path, patience_seconds=0)
