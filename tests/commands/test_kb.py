"""The command `kb`: what builders see of knowledge bases, and the answers to bad input."""

import pytest

from evennia_ai.engine.knowledge.pages.markup import read_page
from evennia_ai.engine.knowledge.pages.page import page_name
from evennia_ai.engine.prompt.components import GAME, Scope
from evennia_ai.npc.knowledge.backends import Backends
from evennia_ai.store.knowledge import knowledge_bases
from evennia_ai.store.knowledge import knowledge_bases as bases
from tests.commands.knowledge_bases import everything, make_base, page, write
from tests.commands.stage import one_line

# Each typed line must change nothing and say one line that contains the text next to it.
BAD_INPUT = {
    "kb nobody": "no knowledge base 'nobody'; there are harbour",
    "kb harbour = x": "no '='",
    "kb/pages": "Usage",
    "kb/pages nobody": "no knowledge base",
    "kb/pages harbour = 9": "no page 9; the list has the pages 1 to 1",
    "kb/pages harbour = x": "whole number",
    "kb/search harbour": "Usage",
    "kb/search = ferry": "Usage",
    "kb/search nobody = ferry": "no knowledge base",
    "kb harbour/Fery": "no page 'Fery'; kb/pages harbour lists",
    "kb harbour/Late ferry": "similar pages are The Ferry",
    "kb harbour/Ferry<": "no title may have",
    "kb harbour/The Ferry/99": "no text of harbour/The Ferry at revision 99",
    "kb harbour/The Ferry = x": "no '='",
    "kb/edit harbour": "Name a page",
    "kb/edit harbour/The Ferry =": "no text after '='",
    "kb/links harbour/Nothing": "no page",
    "kb/requires harbour/Nothing": "no page",
    "kb/create": "Usage",
    "kb/create harbour": "already",
    "kb/create HARBOUR": "already",
    "kb/create moor/Fog": "kb/edit moor/fog",
    "kb/create " + "x" * 300: "key",
    "kb/set harbour": "Usage",
    "kb/set harbour/mood = x": "no field of a knowledge base",
    "kb/set harbour/name =": "Usage",
    "kb/set harbour = x": "Usage: kb/set <base>/<name",
    "kb/set harbour/locks = edit": "contains no colon",
    "kb/set harbour/locks = read:all()": "view and search and restricted and edit",
    "kb/set harbour/locks = view:banana()": "banana",
    "kb/set harbour/direct = much": "whole number, 0 or more, or off",
    "kb/set harbour/vault = much": "neither on nor off",
    "kb/set harbour/backend = moon": "no place for pages; there are database",
    "kb/restricted harbour": "Usage",
    "kb/restricted harbour = perhaps": "neither on nor off",
    "kb/restricted harbour = off": "not restricted already",
    "kb/assign harbour": "Usage",
    "kb/assign harbour = moon": "Places for a knowledge base are game",
    "kb/assign harbour = player:Pim": "no place for a knowledge base",
    "kb/assign harbour = npc:nobody": "no NPC called 'nobody'",
    "kb/assign harbour = npc:Pim": "has no mind",
    "kb/assign harbour = zone": "Name the zone",
    "kb/assign harbour = here:Quay": "for another one: room:Quay",
    "kb/assign harbour = conversation:99": "no conversation '99'",
    "kb/assign harbour = conversation:x": "no conversation 'x'",
    "kb/unassign harbour = here": "not assigned to room",
    "kb/rename harbour/The Ferry": "Usage",
    "kb/rename harbour/Nothing = Fog": "no page",
    "kb/rename harbour/The Ferry = Oren": "in knowledge base 'harbour' already",
    "kb/rename harbour/The Ferry = <": "no title may have",
    "kb/lock harbour/The Ferry =": "Usage",
    "kb/lock harbour/The Ferry = edit:all()": "no access type of a page",
    "kb/lock harbour/Nothing": "no page",
    "kb/remove": "Usage",
    "kb/remove nobody": "no knowledge base",
    "kb/remove harbour/Nothing": "no page",
    "kb/remove harbour = yes": "no '='",
    "kb/revisions harbour/Nothing": "no revisions",
    "kb/revert harbour/The Ferry": "Usage",
    "kb/revert harbour/The Ferry = x": "whole number from 1",
    "kb/revert harbour/The Ferry = 99": "no text of harbour/The Ferry at revision 99",
    "kb/drafts nobody": "no knowledge base",
    "kb/draft": "Usage",
    "kb/draft x": "whole number from 1",
    "kb/draft 99": "no draft 99",
    "kb/approve 99": "no draft 99",
    "kb/reject 99": "no draft 99",
}
MISSPELT = (
    "kb/serch harbour = ferry",
    "kb/re harbour",
    "kb/import/runn harbour",
    "kb/pages/edit harbour/Oren",
    "kb /pages harbour/Oren",
    "kb/ harbour",
)


@pytest.fixture
def harbour(stage):
    """Store a base with six pages."""
    return make_base(summary="The harbour village.", topics=("boats", "people"))


def test_bad_input_gets_one_clear_line_and_changes_nothing(stage, harbour):
    before = everything()
    for typed, words in BAD_INPUT.items():
        assert words.lower() in one_line(stage.builds(typed)).lower(), typed
        assert everything() == before, typed


def test_a_misspelt_switch_changes_nothing_and_names_the_switches(stage, harbour):
    before = everything()
    for typed in MISSPELT:
        assert "/" in one_line(stage.builds(typed)), typed
        assert everything() == before, typed


def test_players_do_not_have_the_command(stage, harbour):
    before = everything()
    told = stage.plays("kb harbour", "kb harbour/Oren", "kb/remove harbour/Oren", "kb/create mine")
    assert "rows" not in told
    assert "village" not in told
    assert everything() == before


def test_kb_without_switch_lists_the_knowledge_bases(stage, harbour):
    stage.builds("kb/assign harbour = npc:Oren")
    line = next(row for row in stage.builds("kb").splitlines() if row.startswith("harbour"))
    assert f"6 no          npc:#{stage.npc.id} (Oren)" in line


def test_without_knowledge_bases_the_command_says_how_to_make_one(stage):
    assert "kb/create" in one_line(stage.builds("kb"))


def test_knowledge_base_is_shown_with_its_fields(stage, harbour):
    told = stage.builds("kb harbour")
    assert "The harbour village." in told
    assert "boats, people" in told
    assert "assigned to   nothing" in told


def test_pages_are_listed_by_namespace_and_by_their_beginning(stage, harbour):
    told = stage.builds("kb/pages harbour")
    assert told.index("Oren") < told.index("The Ferry") < told.index("Instructions:Base Workflow")
    assert "Oren" not in stage.builds("kb/pages harbour/Instructions")
    assert stage.builds("kb/pages harbour/Instructions:Cr").count("\n  Instructions:") == 1
    assert "The Ferry" in stage.builds("kb/pages harbour/The")


def test_long_page_list_is_paged(stage, harbour):
    for number in range(60):
        write(f"Boat {number:02}", "A boat.")
    first, second = (stage.builds(f"kb/pages harbour/Boat = {page}") for page in (1, 2))
    assert "part 1 of 2" in first
    assert "kb/pages harbour/Boat = 2" in first
    assert "kb/pages" not in second
    assert "Boat 39" in first
    assert "Boat 40" not in first
    assert "Boat 40" in second


def test_search_shows_best_pages_first_with_passages(stage, harbour):
    told = stage.builds("kb/search harbour = when does the ferry cross?")
    assert told.index("The Ferry") < told.index("Oren")
    assert "slack water" in told
    assert "No page of knowledge base harbour" in stage.builds("kb/search harbour = zeppelin")


def test_a_page_is_shown_by_its_name_or_alias_with_its_metadata(stage, harbour):
    told = stage.builds("kb harbour/boat")
    assert told.splitlines()[0] == "harbour/The Ferry, revision 1, found as Boat"
    assert "aliases       Boat" in told
    assert "slack water" in told


def test_page_found_by_its_own_title_does_not_name_a_redirect(stage, harbour):
    told = stage.builds("kb harbour/the_ferry")
    assert told.splitlines()[0] == "harbour/The Ferry, revision 1"


def test_show_with_a_number_shows_the_old_revision(stage, harbour):
    write("Oren", "Oren is gone.", was="1")
    assert "Oren rows" in stage.builds("kb harbour/Oren/1")
    assert "Oren is gone." in stage.builds("kb harbour/Oren")


def test_title_ending_in_a_number_is_tried_as_a_page_first(stage, harbour):
    write("Quay/2", "The second quay.")
    assert "The second quay." in stage.builds("kb harbour/Quay/2")


def test_page_text_is_shown_literally(stage, harbour):
    write("Trap", "|rred|n |lcquit|ltclick|le {x}")
    sent = stage.sent(stage.builder, "kb harbour/Trap")
    assert "||rred||n" in sent
    assert "|lc" not in sent.replace("||lc", "")
    assert "{x}" in sent


def test_links_are_shown_in_both_directions_with_missing_pages_marked(stage, harbour):
    told = stage.builds("kb/links harbour/The Ferry")
    assert "Moon (there is no such page)" in told
    assert "Oren (there" not in told
    assert "Linked from:\n  Oren" in told


def test_requires_is_a_tree_with_circles_and_missing_pages_marked(stage, harbour):
    told = stage.builds("kb/requires harbour/Instructions:Create/Source").splitlines()
    assert told == [
        "Instructions:Create/Source requires:",
        "  Instructions:Base Workflow",
        "    Instructions:Rules",
        "      Instructions:Create/Source (a circle: see above)",
        "    Instructions:Nowhere (there is no such page)",
        "  Instructions:Create/Source (a circle: see above)",
    ]


def test_kb_requires_says_that_a_page_requires_nothing(stage, harbour):
    assert stage.builds("kb/requires harbour/Oren").strip() == "Oren requires nothing."


def test_a_knowledge_base_is_made_described_and_bound(stage):
    stage.builds(
        "kb/create secret = The Smugglers",
        "kb/set secret/summary = Nets = boats.",
        "kb/set secret/topics = nets , boats, nets",
        "kb/set secret/hint = Night work.",
        "kb/set secret/direct = 4000",
        "kb/assign secret = npc:oren",
        "kb/assign secret = here",
        "kb/assign secret = zone:Coast",
        "kb/assign secret = faction:Smugglers",
        "kb/assign secret = game",
    )
    made = bases.base_or_none("secret")
    assert (made.name, made.summary) == ("The Smugglers", "Nets = boats.")
    assert (made.topics, made.hint, made.direct_characters) == (
        ("nets", "boats"),
        "Night work.",
        4000,
    )
    assert set(knowledge_bases.assigned_to("secret")) == {
        Scope(kind="npc", ref=str(stage.npc.id)),
        Scope(kind="room", ref=str(stage.room.id)),
        Scope(kind="zone", ref="coast"),
        Scope(kind="faction", ref="smugglers"),
        GAME,
    }


def test_off_empties_a_field_and_shows_its_old_value(stage, harbour):
    assert "before: boats, people; now: none" in stage.builds("kb/set harbour/topics = off")
    assert bases.base_or_none("harbour").topics == ()


def test_a_field_that_ends_with_a_full_stop_gets_no_second_one(stage, harbour):
    told = one_line(stage.builds("kb/set harbour/hint = Night work."))
    assert told.endswith("now: Night work.")


def test_bind_to_an_npc_without_the_tool_names_the_command(stage, harbour):
    told = one_line(stage.builds("kb/assign harbour = npc:Oren"))
    assert told.endswith("ai/tools Oren = +knowledge_base_search")


def test_bind_to_an_npc_with_the_tool_gives_no_hint(stage, harbour):
    stage.builds("ai/tools oren = +knowledge_base_search")
    assert "ai/tools" not in stage.builds("kb/assign harbour = npc:Oren")


def test_knowledge_base_is_assigned_to_a_conversation_by_its_number(stage, harbour):
    from evennia_ai.store.history.conversations import get_or_open_conversation

    talk = get_or_open_conversation(stage.npc.ai.ref, kind="room", place_ref=str(stage.room.id))
    stage.builds(f"kb/assign harbour = conversation:{talk.id}")
    assert knowledge_bases.assigned_to("harbour") == (Scope(kind="conversation", ref=str(talk.id)),)


def test_a_knowledge_base_is_unbound(stage, harbour):
    stage.builds("kb/assign harbour = here", "kb/unassign harbour = here")
    assert knowledge_bases.assigned_to("harbour") == ()


def test_kb_assign_says_that_the_knowledge_base_is_assigned_already(stage, harbour):
    stage.builds("kb/assign harbour = here")
    assert "already" in one_line(stage.builds("kb/assign harbour = here"))


def test_restricting_a_knowledge_base_asks_for_a_hint(stage, harbour):
    told = stage.builds("kb/restricted harbour = on")
    assert bases.base_or_none("harbour").restricted
    assert "kb/set harbour/hint" in told
    stage.builds("kb/restricted harbour = off")
    assert not bases.base_or_none("harbour").restricted


def test_restricted_knowledge_base_shows_what_npcs_read(stage, harbour):
    stage.builds("kb/set harbour/hint = The 12 boats.", "kb/restricted harbour = on")
    told = stage.builds("kb harbour")
    assert "hint          The 12 boats." in told
    assert "NPCs read     The boats." in told


def test_knowledge_base_shows_unusual_fields(stage, harbour):
    assert "shown whole" not in stage.builds("kb harbour")
    stage.builds("kb/set harbour/direct = 4000", "kb/set harbour/vault = off")
    told = stage.builds("kb harbour")
    assert "shown whole   up to 4000 characters" in told
    assert "vault         off" in told


def test_knowledge_base_is_removed_only_after_a_yes(stage, harbour):
    stage.builds("kb/remove harbour", "no")
    assert bases.base_or_none("harbour") is not None
    stage.builds("kb/remove harbour", "yes")
    assert bases.base_or_none("harbour") is None


def test_a_knowledge_base_with_pages_that_are_hidden_is_not_removed(stage, harbour):
    stage.builds("kb/lock harbour/Oren = view:perm(Admin)", "yes")
    assert "pages that you may not see" in one_line(stage.builds("kb/remove harbour"))
    assert bases.base_or_none("harbour") is not None


@pytest.mark.parametrize(
    ("typed", "what"),
    [
        ("kb/lock harbour/Oren = view:perm(Admin)", "harbour/Oren"),
        ("kb/set harbour/locks = view:perm(Admin)", "knowledge base harbour"),
    ],
)
def test_lock_that_shuts_out_the_builder_asks_first(stage, harbour, typed, what):
    before = (page("Oren"), bases.base_or_none("harbour"))
    told = " ".join(stage.builds(typed, "no").split())
    assert f"With the lock view:perm(Admin) you could no longer see {what}" in told
    assert f"The lock of {what} stays; nothing was changed." in told
    assert (page("Oren"), bases.base_or_none("harbour")) == before
    assert "You can no longer see it." in stage.builds(typed, "yes")


def test_hidden_knowledge_base_is_treated_as_missing(stage, harbour):
    stage.builds("kb/assign harbour = here", "kb/set harbour/locks = view:perm(Admin)", "yes")
    for typed in (
        "kb harbour",
        "kb/pages harbour",
        "kb harbour/Oren",
        "kb/assign harbour = here",
    ):
        assert "no knowledge base 'harbour'" in stage.builds(typed), typed
    assert "harbour" not in stage.builds("kb")


def test_hidden_page_is_treated_as_missing(stage, harbour):
    stage.builds("kb/lock harbour/Oren = view:perm(Admin)", "yes")
    assert page("Oren").locks == "view:perm(Admin)"
    assert "no page 'Oren'" in stage.builds("kb harbour/Oren")
    assert "no text of" in stage.builds("kb harbour/Oren/1")
    assert "no text of" in stage.builds("kb harbour/Oren/2")
    assert "Oren" not in stage.builds("kb/pages harbour")
    assert "rows" not in stage.builds("kb/search harbour = oren rows")
    assert "Oren (there is no such page)" in stage.builds("kb/links harbour/The Ferry")
    assert "hidden from you" in stage.builds("kb/revisions harbour/Oren")
    before = page("Oren")
    for typed in (
        "kb/remove harbour/Oren",
        "kb/rename harbour/Oren = Ned",
        "kb/edit harbour/Oren",
        "kb/edit harbour/Oren = x",
    ):
        assert "hidden from you" in stage.builds(typed), typed
    assert page("Oren") == before


def test_page_of_a_slow_backend_is_shown_later(stage, harbour, monkeypatch):
    from twisted.internet.defer import Deferred

    from tests.commands.stage import hearing

    answer = Deferred()

    class Wiki:
        async def fetch(self, names):
            return await answer

    monkeypatch.setattr(Backends, "of", lambda self, info: Wiki())
    assert stage.builds("kb harbour/Far") == ""
    with hearing(stage.builder) as heard:
        answer.callback([read_page(page_name("Far"), "Over the sea.")])
    assert "Over the sea." in heard[-1]


def test_unreachable_wiki_is_reported_in_one_line(stage):
    stage.builds("kb/create wiki", "kb/set wiki/backend = mediawiki")
    told = one_line(stage.builds("kb wiki/Ferry"))
    assert "EVENNIA_AI_KNOWLEDGE_WIKIS does not name" in told
