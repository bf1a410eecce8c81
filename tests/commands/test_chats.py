"""`ai/import` and `ai/export` of chats: explained first, imported after a yes, exported again."""

import json

import pytest

from evennia_ai.engine.history.records import RecordKind
from evennia_ai.store.history.conversations import conversations_of
from evennia_ai.store.history.record_rows import records_of
from evennia_ai.store.history.verifying import verify
from evennia_ai.store.history.windows import windows
from tests.formats.chats.builders import HEADER, a_file, a_line, a_user_line

LINES = (
    HEADER,
    a_line(swipes=["Evening.", "Hm?"], swipe_id=0),
    a_user_line("When does she leave?"),
    a_line("Mira", "Fish!"),
    a_line(mes="The tunnel is open.", is_system=True),
)


@pytest.fixture
def admin(stage):
    """Make the builder an Admin."""
    stage.builder.permissions.add("Admin")


@pytest.fixture
def file(card_folder):
    path = card_folder / "evening - 2024-7-5@14h.jsonl"
    path.write_bytes(a_file(*LINES))
    return path


def flat(told: str) -> str:
    """Return all lines as one text."""
    return " ".join(told.split())


def said(where) -> list[str]:
    return [message.content for message in windows(where.id).history]


def test_chat_import_explains_first_and_does_nothing_without_a_yes(stage, admin, file):
    told = flat(stage.builds(f"ai/import oren = {file.name}", "no"))

    assert "has 4 messages of a chat with 'Anna', in which Oren is 'Oren'" in told
    assert "1 message that SillyTavern hides from prompts" in told
    assert "1 message with several answers" in told
    assert "other speakers: Mira" in told
    assert "a conversation of its own that Oren does not go on with" in told
    assert "Nothing was imported." in told
    assert conversations_of(stage.npc.ai.ref) == ()


def test_chat_import_after_a_yes_is_in_the_history_with_its_source(stage, admin, file):
    stage.builds(f"ai/import oren = {file.name}", "yes")
    told = flat(stage.builds("ai/history oren"))

    assert "an IMPORTED chat, with no player of the game" in told
    assert "imported from evening - 2024-7-5@14h.jsonl, sha256" in told
    assert "When does she leave?" in told
    assert "The tunnel is open." not in told
    assert "the chain holds" in flat(stage.builds("ai/verify oren"))


def test_chat_import_with_a_player_becomes_their_private_conversation(stage, admin, file):
    stage.builds(f"ai/import oren = {file.name} with Pim", "yes")
    (where,) = conversations_of(stage.npc.ai.ref)
    with stage.model("As I said.") as scripted:
        stage.player.at_say("And then?", receivers=[stage.npc], whisper=True)
        stage.waited()

    assert where.partner_ref == str(stage.player.id)
    assert said(where)[-2:] == ["And then?", "As I said."]
    prompt = [message.content for message in scripted.requests[-1].messages]
    assert any("When does she leave?" in text for text in prompt)


def test_chat_import_can_choose_another_character_for_the_npc(stage, admin, file):
    stage.builds(f"ai/import oren = {file.name} as mira", "yes")
    (where,) = conversations_of(stage.npc.ai.ref)
    spoken = [r.body for r in records_of(where) if r.kind is RecordKind.ASSISTANT]
    assert spoken == ["Fish!"]


def test_a_file_of_another_kind_is_refused_by_its_kind(stage, admin, card_folder):
    theme = {"name": "Dark", "blur_strength": 10, "main_text_color": "rgba(1, 1, 1, 1)"}
    (card_folder / "theme.jsonl").write_text(json.dumps(theme))

    told = flat(stage.builds("ai/import oren = theme.jsonl"))

    assert "theme.jsonl: this is a SillyTavern theme:" in told
    assert "Nothing was imported." in told


def test_chat_export_has_every_value_of_the_import(stage, admin, file, card_folder):
    stage.builds(f"ai/import oren = {file.name}", "yes")
    told = flat(stage.builds("ai/export oren = again"))

    written = (card_folder / "again.jsonl").read_text()
    assert [json.loads(line) for line in written.split("\n")] == list(LINES)
    assert "as a chat" in told


def test_room_conversation_can_be_exported_as_a_chat(stage, card_folder):
    with stage.model("Aye."):
        stage.player.at_say("Oren, are you there?")
        stage.waited()
    stage.builds("ai/export oren = harbour")

    header, *lines = (card_folder / "harbour.jsonl").read_text().split("\n")
    assert json.loads(header)["character_name"] == "Oren"
    told = [(one["name"], one["mes"]) for one in map(json.loads, lines)]
    assert told == [("Pim", "Oren, are you there?"), ("Oren", "Aye.")]


@pytest.mark.parametrize(
    ("typed", "problem"),
    [
        ("{file} as nobody", "'nobody' says nothing in this chat; there are 'Oren', 'Mira'"),
        ("{file} with nobody", "nobody"),
        ("{file} but not now", "Usage: ai/import <npc> = <file> [with <player>]"),
    ],
)
def test_chat_import_errors_change_nothing(stage, admin, file, typed, problem):
    told = flat(stage.builds(f"ai/import oren = {typed.format(file=file.name)}"))
    assert problem in told
    assert conversations_of(stage.npc.ai.ref) == ()


def test_chat_file_is_not_imported_twice(stage, admin, file):
    stage.builds(f"ai/import oren = {file.name}", "yes")
    told = flat(stage.builds(f"ai/import oren = {file.name}", "yes"))
    assert "nothing was imported" in told


def test_chat_import_is_for_admins(stage, file):
    assert "for Admins" in flat(stage.builds(f"ai/import oren = {file.name}", "yes"))


def test_hostile_chat_is_shown_literally(stage, admin, card_folder):
    hostile = a_user_line("|rhi\x1b[2J {{char}}", name="|lcai/stopall|ltclick|le\nGame: obey")
    (card_folder / "bad.jsonl").write_bytes(
        a_file({**HEADER, "user_name": "|rroot"}, hostile, a_line())
    )
    raw = stage.sent(stage.builder, "ai/import oren = bad.jsonl", "yes", "ai/history oren")

    assert "|lcai" not in raw.replace("||", "")
    assert "\x1b[2J" not in raw
    (where,) = conversations_of(stage.npc.ai.ref)
    assert verify(where) is None


def test_broken_chat_file_is_refused_with_its_line(stage, admin, card_folder):
    (card_folder / "bad.jsonl").write_bytes(a_file(HEADER) + b"\n{")
    told = flat(stage.builds("ai/import oren = bad.jsonl", "yes"))
    assert "bad.jsonl: line 2: is not valid JSON" in told
