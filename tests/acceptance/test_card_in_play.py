"""Test imported cards on a real server: a harmless card with grants, a hostile one without.

The same NPC plays the two cards one after the other. The tests read what the game printed.
"""

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from evennia_ai.formats.cards.card import Card
from evennia_ai.formats.cards.exporting import dump_card
from server.evennia_process import Evennia
from server.newcomer import read_demo
from server.telnet import Connection
from tests.acceptance.games import (
    builder_beside_npc,
    copied_game,
    logged_in,
    logs_of,
    shown,
    started,
)
from tests.commands.card_files import an_entry, hostile

pytestmark = pytest.mark.server

_SECTION = re.compile(r"^-- (.*?) -*$", re.MULTILINE)
WICK = Card(
    name="Wick",
    description="WICK-DESCRIPTION {{char}} keeps the lantern on the mole.",
    first_mes="Mind the step.",
    character_book={
        "entries": [
            an_entry("The lantern on the mole burns whale oil.", keys=["lantern"], comment="oil")
        ]
    },
)
MOST_ENTRIES = 10_000
SOON_SECONDS = 30.0
"""A reply takes a fraction of a second. A regular expression that backtracks takes days."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What the game printed about one card: the report, the commands, one reply and its prompt."""

    report: str
    approved: str
    assigned: str
    reply: str
    reply_seconds: float
    context: str

    def section(self, name: str) -> str:
        """Return the messages of the prompt below headings that begin with `name`."""
        messages = self.context.partition("-- kept")[0]
        pieces = _SECTION.split(messages)[1:]
        titled = zip(pieces[::2], pieces[1::2], strict=True)
        return "".join(text for title, text in titled if title.startswith(name))


@pytest.fixture(scope="module")
def game(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evennia]:
    evennia = copied_game(
        tmp_path_factory.mktemp("game"), settings="EVENNIA_AI_COOLDOWN_SECONDS = 0.0"
    )
    put_cards(evennia.root / "world" / "demo" / "cards")
    with started(evennia):
        yield evennia


def put_cards(folder: Path) -> None:
    (folder / "wick.png").write_bytes(dump_card(WICK, "png", modified_at=0))
    (folder / "vex.json").write_text(json.dumps(hostile(entries=MOST_ENTRIES)), encoding="utf-8")


@pytest.fixture(scope="module")
def builder(game: Evennia) -> Iterator[Connection]:
    """The demo builder, in the room of the ferryman."""
    with builder_beside_npc(game) as connection:
        yield connection


@pytest.fixture(scope="module")
def kind(builder: Connection) -> Played:
    return played(
        builder,
        import_line="card/import wick.png",
        approve_line="card/approve Wick = fields, positions",
        assign_line="card/assign Wick = oren",
        said="say Oren, what burns in the lantern?",
    )


@pytest.fixture(scope="module")
def evil(builder: Connection, kind: Played) -> Played:
    return played(
        builder,
        import_line="card/import vex.json",
        approve_line="card/approve Vex",
        assign_line="card/assign Vex = oren",
        said=f"say Oren, does the ferry run? {'a' * 40}!",
    )


def played(
    builder: Connection, *, import_line: str, approve_line: str, assign_line: str, said: str
) -> Played:
    """Import a card, approve it, let Oren play it and speak to him."""
    builder.send(import_line)
    report = builder.wait_for("To approve it: ", seconds=60)
    approved, assigned = shown(builder, approve_line), shown(builder, assign_line)
    began = time.monotonic()
    builder.send(said)
    reply = builder.wait_for(r'^Oren says, ".*$', seconds=60)
    seconds = time.monotonic() - began
    builder.wait_for_quiet()
    return Played(
        report=report,
        approved=approved,
        assigned=assigned,
        reply=reply,
        reply_seconds=seconds,
        context=shown(builder, "ai/context oren = full"),
    )


def test_card_import_shows_a_report_for_a_png_file(kind: Played) -> None:
    assert "Reading wick.png" in kind.report
    assert "Import 1 of card Wick" in kind.report
    assert "with grant fields" in kind.report


def test_approved_card_is_assigned_with_its_grants(kind: Played) -> None:
    assert "Card Wick is approved, revision 2" in kind.approved
    assert "Oren plays the card Wick (revision 2, with the grants fields, positions)" in (
        kind.assigned
    )


def test_reply_uses_the_lore_of_the_assigned_card(kind: Played) -> None:
    assert "whale oil" in kind.reply
    assert "lore:Wick#0" in kind.context


def test_card_description_precedes_the_history_when_granted(kind: Played) -> None:
    assert "WICK-DESCRIPTION" in kind.section("at their IDs")
    assert "WICK-DESCRIPTION" not in kind.section("history")


def test_import_report_lists_all_suspicious_content_of_a_hostile_card(evil: Played) -> None:
    for words in ("override", "Ignore all previous", "depth 99999", "/(a+)+$/", "10003"):
        assert words in evil.report, words


def test_card_text_stays_inside_the_history_without_grants(evil: Played) -> None:
    assert "EVIL-DESCRIPTION" in evil.section("history")
    assert "lore:Vex#" in evil.section("history")
    for section in ("at their IDs", "dynamic context"):
        assert "EVIL" not in evil.section(section), section
        assert "lore:Vex#" not in evil.section(section), section


def test_card_text_has_the_user_role_without_grants(evil: Played) -> None:
    roles = re.findall(
        r"^ *#?\d+ \|>(\w+) .*(?:lore:Vex#|component:char_|component:card_)",
        evil.section("history"),
        re.MULTILINE,
    )
    assert set(roles) == {"user"}


def test_card_system_prompt_is_left_out_without_its_grant(evil: Played) -> None:
    assert "EVIL-SYSTEM" not in evil.context


def test_npc_with_a_hostile_card_replies_within_the_time_limit(evil: Played) -> None:
    assert evil.reply_seconds < SOON_SECONDS


def test_other_commands_are_answered_while_a_huge_card_is_imported(
    game: Evennia, builder: Connection, evil: Played
) -> None:
    demo = read_demo(game.root / "world" / "build_demo.py")
    with logged_in(game, *demo.player) as player:
        builder.send("card/import vex.json = Another")
        builder.wait_for("Reading vex.json", seconds=60)
        player.send("look")
        player.wait_for("Exits", seconds=60)
        assert "To approve it:" not in builder.wait_for_quiet(quiet_seconds=0.01)
    assert "Import 1 of card Another" in builder.wait_for("To approve it:", seconds=60)


def test_new_character_replies_after_card_create_and_card_spawn(
    builder: Connection, evil: Played
) -> None:
    shown(builder, "card/create Mira = Mira sells herbs on the quay. She is kind.")
    assert "is here now and plays the card Mira" in shown(builder, "card/spawn Mira")
    builder.send("say Mira, what do you sell?")
    assert builder.wait_for(r'^Mira says, ".*$', seconds=60)
    builder.wait_for_quiet()
    assert "Mira sells herbs on the quay." in shown(builder, "ai/context mira = full")


def test_card_fields_are_edited_as_revisions_and_exported(
    builder: Connection, evil: Played
) -> None:
    shown(builder, "card/create Tam")
    told = shown(builder, "card/edit Tam/personality = Gruff. Old.")
    assert "Wrote personality of card Tam, revision 2; played by nobody." in told
    assert "+ Gruff." in told
    shown(builder, "card/edit Tam/personality = Gruff. Young.")
    assert "- Old." in shown(builder, "card/revisions Tam = 3")
    shown(builder, "card/edit Tam/scenario")
    shown(builder, "A storm is coming.")
    assert "revision 4" in shown(builder, ":wq", until="Wrote scenario of card Tam")
    assert "Wrote card Tam, revision 4, to" in shown(builder, "card/export Tam")


def test_lorebook_of_a_card_and_note_are_edited_as_revisions(
    builder: Connection, evil: Played
) -> None:
    shown(builder, "card/create Ida = Ida mends nets.")
    typed = "lore/create card:Ida/nets = net: A net a day."
    made = shown(builder, typed, until="Created card:Ida#0")
    assert "in the card's new book" in made
    shown(builder, "lore/keys card:Ida/nets = twine", until="Revision 3")
    assert "+ twine" in shown(builder, "card/revisions Ida = 3")
    assert "A net a day." in shown(builder, "lore card:Ida/nets")
    shown(builder, "note oren/scene = The tavern closes.")
    assert "- The tavern closes." in shown(builder, "note oren/scene = The tavern opens.")
    asked = shown(builder, "note/revert oren/scene = 1", until=r"yes/\[no\]")
    assert "+ The tavern closes." in asked
    assert "- The tavern opens." in asked
    assert "what it was at revision 1" in shown(builder, "yes", until="revision 3")
    assert "note:scene" in shown(builder, "component/preview/full oren")


def test_server_log_has_no_traceback_after_playing_cards(game: Evennia, evil: Played) -> None:
    assert "Traceback" not in logs_of(game)
