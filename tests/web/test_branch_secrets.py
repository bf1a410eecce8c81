"""The pages of a branch hide from a builder what the pages of its NPC hide."""

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.history.records import NewRecord, RecordKind
from evennia_ai.engine.memory.memories import Memory
from evennia_ai.npc.turn.rehearsal import rehearse
from evennia_ai.store import memories
from evennia_ai.store.history import branches, conversations, turns
from tests.npc.seeing.test_faces import CANARY, search

WHISPER = "The tunnel is open."
LEARNT = "The smugglers come by the tunnel."


def shown_to(client, branch):
    """Return all that the pages of the branch and the live page show, as HTML and as JSON."""
    at = f"/ai/npc/{branch.conversation.npc_ref}/"
    told = ""
    for address in (at, f"{at}turn/1/", f"{at}diff/1/1/", "/ai/live/"):
        for form in ("html", "json"):
            answer = client.get(address, {"format": form, "all": "1"})
            assert answer.status_code == 200, address
            told += answer.content.decode()
    return told


def says(stage, branch, line):
    stage.talks_with(lambda request: "Aye.")
    rehearse(stage.npc, branch, line, typist=stage.ben)
    stage.passes()


@pytest.mark.long
def test_branch_of_a_whisper_shows_builders_no_word_of_it(stage, browser):
    ref, anna = stage.npc.ai.ref, stage.anna.id
    new = Memory(id=memories.NEW, text=LEARNT, created_at=1.0, learnt="private", about=str(anna))
    memories.add_memory(ref, new, by=trusted("npc"), most=50)
    stage.talks_with(lambda request: "Aye.")
    stage.whispers(stage.anna, WHISPER)
    last = turns.last_turn(ref)
    assert last.conversation.kind == "private"
    branch = branches.open_branch(last, by_ref=str(stage.ben.id), by=trusted("Ben"))
    says(stage, branch, "And the smugglers?")
    secrets = (WHISPER, LEARNT, "And the smugglers?")
    admin, builder = (shown_to(browser(rank), branch) for rank in ("Admin", "Builder"))
    assert [one for one in secrets if one not in admin] == []
    assert [one for one in secrets if one in builder] == []


@pytest.mark.long
def test_branch_shows_builders_nothing_of_a_hidden_page(stage, browser):
    search(stage)
    (room,) = conversations.conversations_of(stage.npc.ai.ref)
    summary = NewRecord(kind=RecordKind.SUMMARY, role="system", body=f"{CANARY} lies low.")
    conversations.append_records(room, [summary])
    stage.talks_with(lambda request: "As I said.")
    stage.says(stage.anna, "Oren, are you there?")
    last = turns.last_turn(stage.npc.ai.ref)
    branch = branches.open_branch(last, by_ref=str(stage.ben.id), by=trusted("Ben"))
    says(stage, branch, "And now?")
    assert CANARY in shown_to(browser("Admin"), branch)
    assert CANARY not in shown_to(browser("Builder"), branch)
