"""`ai/history`, `ai/replay` and `ai/cache`: the past, from stored records only."""

import json
import re
from hashlib import sha256

import pytest
from django.db import connection
from django.test import override_settings

from evennia_ai import models
from evennia_ai.engine.actors import THE_GAME, trusted
from evennia_ai.engine.history.records import NewRecord, RecordKind
from evennia_ai.engine.history.turn.manifest import number_in
from evennia_ai.engine.prompt.components import GAME
from evennia_ai.npc import npc_settings
from evennia_ai.store.authored import components, lorebooks
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.erasing import erase_private
from evennia_ai.store.history import conversations, record_rows, turns
from evennia_ai.store.history.conversations import conversations_of
from evennia_ai.store.history.record_rows import records_of
from tests.commands.stage import one_line


@pytest.fixture
def talked(stage, mood):
    """Let Oren answer Pim three times in the room and once in a whisper."""
    with stage.model("Aye.", "At dusk.", "So be it.", "I know.", "Yes?") as scripted:
        for said in ("Oren, are you there?", "Oren, when does the ferry sail?", "Thanks, Oren."):
            stage.player.at_say(said)
            stage.waited()
        stage.player.at_say("The tunnel is open.", receivers=[stage.npc], whisper=True)
        stage.waited()
        yield scripted


def ids_shown(told: str) -> list[str]:
    return re.findall(r"^#([0-9]+) ", told, flags=re.MULTILINE)


@pytest.mark.parametrize(
    "assembly", [{}, {"quote_user": True}, {"names": "content", "squash": True, "ties": "role"}]
)
def test_whisper_repeated_in_other_words_is_hidden(stage, mood, assembly):
    with (
        override_settings(EVENNIA_AI_ASSEMBLY=assembly),
        stage.model("Aye.", "I know.") as scripted,
    ):
        for said in ("The tunnel is open.", "And the lamp?"):
            stage.player.at_say(said, receivers=[stage.npc], whisper=True)
            stage.waited()
    sent = "".join(message.content for message in scripted.requests[-1].messages)
    assert "tunnel is open" in sent
    told = stage.builds("ai/context oren = full")
    assert ("tunnel is open" in told, "[said in private; for Admins]" in told) == (False, True)
    assert "I know" not in told
    stage.builder.permissions.add("Admin")
    assert "tunnel is open" in stage.builds("ai/context oren = full")


@pytest.mark.req("S2-24")
def test_history_shows_the_committed_records_and_nothing_else(stage, talked):
    stored = {
        record.id: record
        for known in conversations_of(stage.npc.ai.ref)
        for record in records_of(known)
        if record.kind not in ("component_rev", "context_block")
    }
    stage.builder.permissions.add("Admin")
    told = stage.builds("ai/history oren = full")
    assert sorted(ids_shown(told)) == sorted(stored)
    for record in stored.values():
        assert record.body in told


def test_history_marks_what_was_whispered_and_tells_its_words_to_admins(stage, talked):
    seen_by_builder = stage.builds("ai/history oren = full")
    stage.builder.permissions.add("Admin")
    told = stage.builds("ai/history oren")
    for screen, words in ((seen_by_builder, "[said in private; for Admins]"), (told, "The tunnel")):
        private = screen.index("WHISPERED, with Pim")
        assert screen.index("in the room Harbour") < screen.index("Thanks, Oren.") < private
        assert private < screen.index(words)
    assert "tunnel" not in seen_by_builder


@pytest.mark.parametrize(
    "typed",
    [
        "ai/context oren",
        "ai/context oren = full",
        "ai/replay oren = 4 full",
        "ai/why oren/4 = full",
    ],
)
def test_words_of_a_whisper_are_on_no_screen_of_a_builder(stage, talked, typed):
    assert "tunnel" not in stage.builds(typed)
    assert "I know." not in stage.builds(typed)
    stage.builder.permissions.add("Admin")
    assert "tunnel" in stage.builds(typed)


def test_history_shows_the_newest_page_first_and_older_ones_by_number(stage, talked):
    (room, _) = conversations_of(stage.npc.ai.ref)
    conversations.append_records(
        room,
        [NewRecord(kind=RecordKind.EVENT, role="system", body=f"No. {n}.") for n in range(30)],
    )
    newest = stage.builds("ai/history oren")
    older = stage.builds("ai/history oren/2")
    oldest = stage.builds("ai/history oren/3")
    assert "No. 29." in newest and "No. 10." in newest and "No. 9." not in newest
    assert "Older records: ai/history Oren/2" in newest
    assert "No. 9." in older
    assert "are you there" in oldest and "Older records" not in oldest
    assert not set(ids_shown(newest)) & set(ids_shown(older))
    assert "no page 4" in one_line(stage.builds("ai/history oren/4"))


def test_history_marks_erased_records_without_their_text(stage, talked):
    models.Record.objects.filter(body="Thanks, Oren.").erase()
    told = stage.builds("ai/history oren")
    assert "Thanks, Oren." not in told
    assert "(erased on request)" in told


@pytest.mark.req("S2-12")
def test_replay_gives_the_bytes_that_were_sent_after_everything_was_edited(stage, talked):
    sent = talked.requests[1].messages
    stored = turns.get_turn(stage.npc.ai.ref, 2)
    stage.builds("component/off system_prompt")
    components.update("mood", content="Nothing is as it was.", by=trusted("Mara"))
    lorebooks.save_book("new", '{"entries": []}', by=trusted("Mara"))
    stage.npc.key = "Orin"
    forget_everything()
    told = stage.builds("ai/replay orin = 2 full")
    assert "the same bytes as were sent" in told
    assert stored.manifest.sha256 in told
    assert "Nothing is as it was." not in told
    for message in sent:
        assert message.content.removeprefix("Pim: ").split("\n")[0] in told


def test_replay_names_the_record_that_was_tampered_with(stage, talked):
    (victim,) = models.Record.objects.filter(body="At dusk.")
    with connection.cursor() as cursor:
        cursor.execute("DROP TRIGGER evennia_ai_record_no_update")
        cursor.execute("UPDATE evennia_ai_record SET body = 'At dawn.' WHERE id = %s", [victim.pk])
    told = " ".join(stage.builds("ai/replay oren = 3").split())
    assert "It cannot be replayed" in told
    assert f"message #{victim.pk}: the record was changed in the database" in told


def test_replay_of_an_unknown_turn_names_the_newest(stage, talked):
    assert "the newest is 4" in one_line(stage.builds("ai/replay oren = 9"))


@pytest.mark.req("S2-02")
def test_cache_tells_what_each_prompt_shares_with_the_one_before(stage, talked):
    told = stage.builds("ai/cache oren")
    rows = [line.split() for line in told.splitlines() if re.match(r" +[0-9]+ +[0-9]+ ", line)]
    assert [row[0] for row in rows] == ["1", "2", "3", "4"]
    stored = [turns.get_turn(stage.npc.ai.ref, number).manifest for number in (1, 2, 3, 4)]
    assert [int(row[2]) for row in rows] == [manifest.tokens for manifest in stored]
    assert "the first prompt of its conversation" in told
    for row, manifest in zip(rows[1:3], stored[1:3], strict=True):
        assert int(row[3]) == manifest.shared_tokens
        assert row[4:6] == [str(100 * manifest.shared_tokens // manifest.tokens), "%"]
    assert "dynamic, the facts of the previous turn" in " ".join(told.split())
    last = stored[3]
    first = number_in(last, last.breakpoints[0])
    assert f"the prompt of turn 4 up to these messages: {first}" in " ".join(told.split())


def test_cache_shows_shared_tokens_after_a_restart(stage, talked):
    forget_everything()
    stage.player.at_say("Oren?")
    stage.waited()
    last = turns.last_turn(stage.npc.ai.ref)
    assert last.manifest.shared_tokens is None
    assert "the server restarted in between" in " ".join(stage.builds("ai/cache oren").split())


@pytest.mark.req("S2-26")
def test_why_of_a_turn_names_the_record_the_time_and_the_source_of_each_line(stage, talked):
    components.update("mood", content="Nothing is as it was.", by=trusted("Tam"))
    manifest = turns.get_turn(stage.npc.ai.ref, 2).manifest
    told = stage.builds("ai/why oren/2 = full")
    for record in record_rows.records(manifest.record_ids):
        assert f"record #{record.id} ({record.kind})" in told
    flat = " ".join(told.split())
    assert "component:mood: component mood of game, revision 1 by Mara, 20" in flat
    assert "answers record #" in told and "when does the ferry" in told
    assert "Nothing is as it was." not in told
    assert max(len(line) for line in told.splitlines()) <= 78


@pytest.mark.req("S2-26")
@pytest.mark.parametrize("asked", ["ai/why oren/2", "ai/why oren/2 = place"])
def test_why_of_a_turn_names_provider_time_and_record_of_each_block(stage, talked, asked):
    manifest = turns.get_turn(stage.npc.ai.ref, 2).manifest
    texts = dict(manifest.inputs["blocks"])
    filled = manifest.inputs.get("filled", {})
    flat = " ".join(stage.builds(asked).split())
    (facts,) = [
        one for one in record_rows.records(manifest.record_ids) if texts["place"] in one.body
    ]
    keys = [key for key in texts if "=" not in asked or key == "place"]
    assert "place" in keys
    for key in keys:
        revision = sha256(texts[key].encode()).hexdigest()[:12]
        of = f"component:{filled[key]}: block:{key}" if key in filled else f"block:{key}:"
        told = "," if key in filled else ""
        assert f"{of}{told} provider {key}, revision {revision}, record #{facts.id}, 20" in flat


@pytest.mark.req("S2-26")
def test_why_of_an_item_says_since_when_it_was_known(stage, talked):
    told = stage.builds("ai/why oren/3 = mood")
    flat = " ".join(told.split())
    first = turns.get_turn(stage.npc.ai.ref, 1).manifest
    (text,) = [r for r in record_rows.records(first.record_ids) if "air is heavy" in r.body]
    assert f"record #{text.id} (component_rev), first told to it" in flat
    assert "The air is heavy." in told
    assert "revision 1 by Mara" in flat


def test_why_of_a_message_of_a_turn_tells_its_record(stage, talked):
    told = stage.builds("ai/why oren/3 = 1")
    record = turns.get_turn(stage.npc.ai.ref, 3).manifest.record_ids[1]
    assert f"record #{record} (user), recorded 20" in told
    assert "are you there" in told


def test_why_of_a_message_of_a_turn_tells_its_sources(stage, talked):
    flat = " ".join(stage.builds("ai/why oren/3 = 0").split())
    assert "component:mood: component mood of game, revision 1 by Mara, 20" in flat


def test_a_lock_hides_lore_of_past_turns_as_well(stage, talked):
    entry = {"keys": [], "constant": True, "content": "The king is dead.", "enabled": True}
    entry |= {"insertion_order": 1, "extensions": {}, "use_regex": False}
    lorebooks.save_book("court", json.dumps({"entries": [entry]}), by=trusted("Mara"))
    lorebooks.LOREBOOKS.assign("court", GAME, by=trusted("Mara"))
    stage.player.at_say("Oren?")
    stage.waited()
    assert "The king is dead." in stage.builds("ai/why oren/5")
    assert "lorebook court, revision 1 by Mara" in " ".join(stage.builds("ai/why oren/5").split())
    lorebooks.set_book_locks("court", "view:false()", by=trusted("Mara"))
    for typed in ("ai/why oren/5", "ai/replay oren = 5 full", "ai/context oren/5 = lore"):
        assert "The king is dead." not in stage.builds(typed)
    assert "You may not see" in one_line(stage.builds("ai/why oren/5 = court/0"))


def test_erased_turn_is_shown_nowhere(stage, talked):
    erase_private(str(stage.player.id), by=trusted("Mara"))
    forget_everything()
    shown = stage.builds("ai/history oren", "ai/replay oren = 4", "ai/why oren/4", "ai/cache oren")
    flat = " ".join(shown.split())
    assert "tunnel" not in shown and "I know." not in shown
    assert "(erased on request)" in flat
    assert "It cannot be replayed: the words of the turn were erased on request." in flat
    assert one_line(stage.builds("ai/why oren/4")).endswith("were erased on request.")
    assert "the same bytes as were sent" in stage.builds("ai/replay oren = 3")


def test_history_names_who_asked_for_an_erasure(stage, talked):
    erase_private(str(stage.player.id), by=trusted("Mara"))
    shown = stage.builds("ai/history oren")
    assert "everything before this was erased on request of Mara" in shown


def test_history_marks_fallback_lines_with_their_limit(stage, mood):
    with stage.model("Aye.", "Aye."):
        npc_settings.change_settings(stage.npc, limits={"calls_per_day": 1}, by=THE_GAME)
        for said in ("Oren, are you there?", "Oren, hello?"):
            stage.player.at_say(said)
            stage.waited()
    told = " ".join(stage.builds("ai/history oren").split())
    assert "fallback *raises a hand: enough talk for now.* instead of a reply: NPC #" in told
