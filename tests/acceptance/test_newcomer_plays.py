"""A newcomer's first minutes: a real server is started, spoken with over telnet, and stopped."""

import re
import urllib.request

import pytest

from server.evennia_process import is_running, recorded_ports
from server.newcomer import play, read_demo
from server.ports import HOST
from tests.acceptance.crawling import Crawler
from tests.acceptance.games import builder_beside_npc, logs_of, shown, untouched_game
from tests.docs.fences import REFUSED, blocks, typed_lines
from tests.docs.test_tutorial import steps

FIRST_STEPS = {
    ("README.md", "Try it: two commands"),
    ("knowledge.md", "The first base"),
}

pytestmark = [pytest.mark.server, pytest.mark.minutes(2)]


@pytest.fixture(scope="module")
def game(tmp_path_factory):
    evennia = untouched_game(tmp_path_factory.mktemp("game"))
    yield evennia
    if is_running(evennia.root):
        evennia.stop()


@pytest.fixture(scope="module")
def first(game):
    """The first exchange, and what was printed around it."""
    return play(game)


def test_the_npc_answers_as_a_client_sees_it(first):
    assert first.reply.startswith('Oren says, "')


def test_the_prompt_of_the_answer_is_shown_with_what_was_said(first):
    assert first.said.removeprefix("say ").split(", ", 1)[1] in first.prompt


def test_the_web_client_answers_on_this_machine(game, first):
    address = f"http://localhost:{game.ports.web}/webclient/"
    with urllib.request.urlopen(address, timeout=20) as response:
        assert response.status == 200


def test_playing_again_uses_the_running_game_and_says_how_to_get_in(game, first, capsys):
    play(game)

    printed = capsys.readouterr().out
    assert "The game is running already" in printed
    assert f"telnet localhost {game.ports.telnet}" in printed
    assert f"http://localhost:{game.ports.web}/webclient/" in printed
    demo = read_demo(game.root / "world" / "build_demo.py")
    assert f"anna / {demo.player[1]}" in printed
    assert f"builder / {demo.builder[1]}" in printed
    assert printed.index(demo.builder[1]) < printed.index(demo.superuser[1])


def test_what_the_pages_say_to_type_first_works_over_telnet(game, first):
    found = [one for one in blocks("typed") if (one.page, one.heading) in FIRST_STEPS]
    lines = typed_lines("".join(one.text for one in found), editing=lambda: _in_the_editor(told))
    told = []
    with builder_beside_npc(game) as builder:
        for line in lines:
            answer = shown(builder, line)
            assert answer.strip(), line
            assert not REFUSED.search(answer), f"{line}: {answer}"
            told.append(answer)

    assert {one.page for one in found} == {page for page, _ in FIRST_STEPS}
    assert "".join(told).count("Left the editor.") == 1
    assert 'Oren says, "' in "".join(told)


def test_every_page_answers_after_the_tutorial_was_played(game, first):
    with builder_beside_npc(game) as builder:
        corrected = ""
        for typed, _ in steps():
            line = re.sub(r"#\d+", f"#{corrected}", typed)
            told = shown(builder, line, until=_until(typed))
            assert not REFUSED.search(told), f"{line}: {told}"
            if typed == "ai/history mira":
                replies = re.findall(r"^#(\d+) .* assistant$", told, re.MULTILINE)
                corrected = replies[1]
    assert corrected

    site = f"http://{HOST}:{game.ports.web}"
    demo = read_demo(game.root / "world" / "build_demo.py")
    for account in (demo.builder, demo.superuser):
        visits = list(Crawler(site, *account).all_pages("/ai/", "/ai/last/"))
        wrong = {one.address: (one.status, one.text[-400:]) for one in visits if one.status != 200}
        assert not wrong, wrong
        addresses = {one.address for one in visits}
        assert any(re.match(r"/ai/npc/\d+~\d+/turn/1/", one) for one in addresses), addresses
        kinds = ("turn/", "diff/", "next/", "memory/", "settings/", "/entry/", "/revision/")
        wanted = (*kinds, "/lints/", "/turns/", "/export/", "/page/", "/vault/")
        assert [kind for kind in wanted if not any(kind in one for one in addresses)] == []
    logs = logs_of(game)
    assert "Traceback" not in logs
    assert "evennia_ai: the page" not in logs


def _until(typed):
    """What the answer to a line of the tutorial ends with."""
    if typed.startswith("say "):
        return "Mira says|Mira .*\\."
    return "In your branch of Mira:" if typed.startswith("ai/branch mira =") else r"\S"


def test_stopping_ends_every_process_and_a_new_start_loses_nothing(game, first):
    game.stop()
    assert not is_running(game.root)
    assert recorded_ports(game.root) is None

    again = play(game)

    assert "ferry" in again.prompt
    game.stop()
    assert not is_running(game.root)


def _in_the_editor(told):
    """Whether the line editor was opened, and not left since."""
    text = "".join(told)
    return text.rfind("Line Editor [") > text.rfind("Left the editor.")
