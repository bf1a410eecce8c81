"""The provider `kb_meta_prompt`: which bases its block lists, and where the prompt shows it."""

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.knowledge.meta_prompt import HEADING, TOOL
from evennia_ai.engine.knowledge.pages.page import BaseInfo
from evennia_ai.engine.prompt.components import GAME, Scope
from evennia_ai.npc.inputs.shipped_providers import kb_meta_prompt
from evennia_ai.npc.recording import heard
from evennia_ai.npc.recording.heard import ConversationKey
from evennia_ai.npc.senses.events import Event
from evennia_ai.npc.tools import registry
from evennia_ai.store.history import turns
from evennia_ai.store.knowledge import knowledge_bases


@pytest.fixture
def stage(stage):
    """The stage, where Oren has the search tool."""
    registry.choose_tools(stage.npc, [TOOL], by=trusted("builder"))
    return stage


def a_base(key, *scopes, **fields):
    info = BaseInfo(key=key, name=f"The {key}", **fields)
    knowledge_bases.save_base(info, by=trusted("builder"))
    for scope in scopes:
        knowledge_bases.assign_base(key, scope, by=trusted("builder"))


def ids(text):
    return [line.split()[1] for line in text.splitlines() if line.startswith("  ID: ")]


def listed_ids(stage, conversation=None):
    return ids(kb_meta_prompt(stage.npc, None, conversation))


def facts_of(request):
    """Return the messages with the block of a request, each with its index."""
    return [(i, m) for i, m in enumerate(request.messages) if HEADING in m.content]


@pytest.mark.req("S0-13", "S0-18", "S1-02")
def test_block_lists_knowledge_bases_of_the_npc_its_room_zone_and_game(stage):
    stage.room.tags.add("harbour", category="zone")
    a_base("world", GAME)
    a_base("quay", Scope(kind="zone", ref="harbour"))
    a_base("landing", Scope(kind="room", ref=str(stage.room.id)))
    a_base("ferry", Scope(kind="npc", ref=stage.npc.ai.ref))
    a_base("elsewhere", Scope(kind="room", ref="9999"))
    a_base("unbound")
    assert listed_ids(stage) == ["ferry", "landing", "quay", "world"]


def test_block_lists_a_knowledge_base_of_one_conversation_only_there(stage):
    here = heard.open_conversation(
        stage.npc.ai.ref, ConversationKey(kind="room", place_ref=str(stage.room.id))
    )
    other = heard.open_conversation(
        stage.npc.ai.ref, ConversationKey(kind="private", partner_ref=str(stage.anna.id))
    )
    a_base("case", Scope(kind="conversation", ref=str(here.id)))
    assert (listed_ids(stage, here), listed_ids(stage, other), listed_ids(stage)) == (
        ["case"],
        [],
        [],
    )


def test_block_omits_a_knowledge_base_whose_lock_forbids_the_npc_to_search(stage):
    a_base("open", GAME)
    a_base("shut", GAME, locks="search:false()")
    a_base("guild", GAME, locks="search:tag(guild)")
    assert listed_ids(stage) == ["open"]
    stage.npc.tags.add("guild")
    assert listed_ids(stage) == ["guild", "open"]


@pytest.mark.req("S0-17", "S0-20")
def test_block_shows_only_safe_metadata_of_a_restricted_knowledge_base(stage):
    a_base("vault", GAME, restricted=True, summary="The bell hangs below.", hint="What divers say.")
    text = kb_meta_prompt(stage.npc, None, None)
    assert "Routing hint: What divers say." in text
    assert "bell" not in text


def test_block_shows_the_summary_of_a_restricted_knowledge_base_to_a_trusted_npc(stage):
    a_base(
        "vault", GAME, restricted=True, summary="The bell hangs below.", locks="restricted:false()"
    )
    assert "Summary: The bell hangs below." in kb_meta_prompt(stage.npc, None, None)


def test_prompt_does_not_change_with_knowledge_bases_for_an_npc_without_the_tool(stage):
    registry.choose_tools(stage.npc, [], by=trusted("builder"))
    before = stage.npc.ai.preview("Oren?", speaker=stage.anna)
    a_base("world", GAME)
    a_base("vault", GAME, restricted=True, hint="What divers say.")
    assert stage.npc.ai.preview("Oren?", speaker=stage.anna).sha256 == before.sha256


@pytest.mark.req("S0-20")
@pytest.mark.parametrize("restricted", [False, True])
def test_block_lists_bound_knowledge_bases_open_and_restricted(stage, restricted):
    a_base("world", GAME, restricted=restricted)
    assert listed_ids(stage) == ["world"]


@pytest.mark.req("S0-49", "S1-09")
def test_prompt_without_knowledge_bases_is_the_same_as_without_the_provider(stage):
    with_it = stage.npc.ai.preview("Oren?", speaker=stage.anna)
    stage.talks_with(context_providers=("speaker", "relation", "acquaintance", "place", "goals"))
    assert stage.npc.ai.preview("Oren?", speaker=stage.anna).sha256 == with_it.sha256


@pytest.mark.req("S0-14", "S0-15", "S1-02", "S1-04")
def test_block_is_in_the_user_message_before_the_current_line(stage):
    a_base("world", GAME)
    model = stage.talks_with("Aye.", "Aye.")
    stage.says(stage.anna, "Oren?")
    stage.says(stage.anna, "Oren, and now?")
    request = model.requests[-1]
    ((index, facts),) = facts_of(request)
    assert facts.role == "user"
    assert index == len(request.messages) - 2
    known, _, block = facts.content.partition("\n\n")
    assert known == "Who speaks: Anna (Player)."
    assert block.startswith(f"{HEADING}\n- Name: The world\n")


@pytest.mark.req("S0-14", "S1-03")
def test_manifest_has_the_block_with_the_key_kb_meta_prompt(stage):
    a_base("world", GAME)
    stage.talks_with("Aye.")
    stage.says(stage.anna, "Oren?")
    blocks = dict(turns.last_turn(stage.npc.ai.ref).manifest.inputs["blocks"])
    assert list(blocks) == ["kb_meta_prompt", "speaker", "place"]
    assert ids(blocks["kb_meta_prompt"]) == ["world"]


@pytest.mark.req("S1-03")
def test_past_turn_has_its_block_after_the_knowledge_base_is_unbound(stage):
    from evennia_ai.npc.views.recomposing import PastReader

    a_base("world", GAME)
    stage.talks_with("Aye.")
    stage.says(stage.anna, "Oren?")
    knowledge_bases.unassign_base("world", GAME, by=trusted("builder"))
    past = PastReader().inputs(turns.last_turn(stage.npc.ai.ref)).inputs
    assert ids(past.blocks[0].text) == ["world"]


@pytest.mark.req("S1-08")
def test_system_messages_do_not_change_when_a_knowledge_base_is_bound(stage):
    model = stage.talks_with("Aye.", "Aye.")
    stage.says(stage.anna, "Oren?")
    a_base("world", GAME)
    stage.says(stage.anna, "Oren, and now?")
    before, after = (
        [m.content for m in request.messages if m.role == "system"] for request in model.requests
    )
    assert before == after
    assert facts_of(model.requests[1])


def test_changed_knowledge_base_appears_in_the_next_block(stage):
    a_base("world", GAME, summary="All that is known.")
    assert "Summary: All that is known." in kb_meta_prompt(stage.npc, None, None)
    a_base("world", summary="All that was known.")
    assert "Summary: All that was known." in kb_meta_prompt(stage.npc, None, None)
    knowledge_bases.set_restricted("world", True, by=trusted("builder"))
    assert "Summary" not in kb_meta_prompt(stage.npc, None, None)


def test_cached_block_makes_no_query(stage, no_queries):
    a_base("world", GAME)
    a_base("guild", GAME, locks="search:tag(guild)", restricted=True)
    stage.npc.tags.add("guild")
    event = Event(kind="say", speaker_ref="7", speaker_name="Anna", text="?", room_ref="3")
    here = heard.open_conversation(
        stage.npc.ai.ref, ConversationKey(kind="room", place_ref=str(stage.room.id))
    )
    kb_meta_prompt(stage.npc, event, here)
    with no_queries():
        assert ids(kb_meta_prompt(stage.npc, event, here)) == ["guild", "world"]
