"""The command `lore`, from the typed line to the stored books."""

import json
import re
from dataclasses import replace
from inspect import cleandoc
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from evennia_ai.commands.setup.lore import command
from evennia_ai.engine.actors import trusted
from evennia_ai.engine.lorebook.entry import Mention
from evennia_ai.engine.prompt.components import GAME, Scope
from evennia_ai.formats.lorebooks.books import read_book
from evennia_ai.npc import runtime as runtime_module
from evennia_ai.npc.inputs.book_builds import LONG, BookBuilds
from evennia_ai.store.authored import lorebooks as store
from tests.commands.stage import hearing, on_screen, one_line

# Each typed line must change nothing and say one line that contains the text next to it.
BAD_INPUT = {
    "lore nobody": "no lorebook 'nobody'; there are harbour",
    "lore harbour/nobody": "has no entry 'nobody'",
    "lore harbour/the fery": "similar are harbour#0 (the ferry)",
    "lore harbour#99": "has no entry '99'",
    "lore harbour = 9": "no page 9; lorebook 'harbour' has the pages 1 to 1",
    "lore harbour = x": "whole number",
    "lore = harbour": "no '='",
    "lore harbour/the ferry = new text": "no '='",
    "lore/create": "Usage",
    "lore/create harbour": "already",
    "lore/create HARBOUR": "already",
    "lore/create moor = a: b": "Usage",
    "lore/create harbour/fog = Fog hides the quay on most mornings.": (
        "lore/create harbour/fog = fog: Fog hides the quay on most mornings."
    ),
    "lore/create harbour/the ferry = boat: Again.": "harbour#0 (the ferry) already",
    "lore/create harbour/THE FERRY = boat: Again.": "already",
    "lore/create harbour/" + "x" * 500 + " = a: b": "at most 300 characters",
    "lore/create " + "x" * 201: "1 to 200 printable characters",
    "lore/edit harbour": "Name an entry",
    "lore/edit nobody/the ferry": "no lorebook 'nobody'",
    "lore/edit harbour/the ferry =": "no text after '='",
    "lore/keys harbour/the ferry": "Usage",
    "lore/keys harbour/the ferry =": "Usage",
    "lore/keys harbour = a": "Name an entry",
    "lore/keys harbour/nobody = a": "has no entry",
    "lore/keys harbour/the ferry = " + "k" * 2000: "1000 characters",
    "lore/secondary harbour/the ferry =": "Usage",
    "lore/depth harbour/the ferry": "Usage",
    "lore/depth harbour/the ferry = -1": "whole number, 0 or more, or normal or bottom",
    "lore/depth harbour/the ferry = 2.5": "whole number, 0 or more, or normal or bottom",
    "lore/depth harbour/the ferry = ２": "whole number, 0 or more, or normal or bottom",
    "lore/depth harbour/the ferry = 999999999999": "whole number, 0 or more",
    "lore/order harbour/the ferry = high": "whole number",
    "lore/position harbour/the ferry = sideways": "not a position; there are before, after",
    "lore/position harbour/the ferry = outlet": "outlet:<name>",
    "lore/position harbour/the ferry = depth:x": "whole number",
    "lore/position harbour/the ferry = at_mention under": "at_mention [before | after]",
    "lore/position harbour/the ferry = at_mention before after": "[newest | oldest]",
    "lore/set harbour/the ferry = place after": "write at_mention",
    "lore/set harbour/the ferry = moood 3": "not a field of an entry",
    "lore/set harbour/the ferry = stickyness 3": "similar names are sticky",
    "lore/set harbour/the ferry = keys a, b": "a switch of its own: lore/keys",
    "lore/set harbour/the ferry = chance 101": "from 0 to 100",
    "lore/set harbour/the ferry = chance many": "not a number",
    "lore/set harbour/the ferry = sticky 1.5": "whole number, 0 or more",
    "lore/set harbour/the ferry = sticky -1": "whole number, 0 or more",
    "lore/set harbour/the ferry = constant perhaps": "neither on nor off",
    "lore/set harbour/the ferry = role wizard": "one of",
    "lore/set harbour/the ferry = clock sundial": "one of turns, messages, seconds",
    "lore/set harbour/the ferry = when night": "When 'night' is not allowed: it must be <fact>",
    "lore/set harbour/the ferry = when time.part resembles night": "one of the tests is_any,",
    "lore/set harbour/the ferry = when time.hour at_least x": "time.hour at_least and a number.",
    "lore/set harbour/the ferry = sticky": "is 0. To change it",
    "lore/set harbour/the ferry": "Usage",
    "lore/on harbour": "Name an entry",
    "lore/on harbour/the ferry = yes": "no '='",
    "lore/off harbour/nobody": "has no entry",
    "lore/remove": "Usage",
    "lore/remove nobody": "no lorebook",
    "lore/remove harbour/nobody": "has no entry",
    "lore/remove harbour = yes": "no '='",
    "lore/assign harbour": "Usage",
    "lore/assign harbour = moon": "Places for a lorebook are game",
    "lore/assign harbour = zone": "Name the zone",
    "lore/assign harbour = faction:": "Name the faction",
    "lore/assign harbour = player": "Name the player",
    "lore/assign harbour = player:Oren": "no player called 'Oren'",
    "lore/assign harbour = npc:Pim": "has no mind",
    "lore/assign harbour = npc:nobody": "no NPC called 'nobody'",
    "lore/assign harbour = room:nowhere": "no room called 'nowhere'",
    "lore/assign harbour = game:all": "takes no name",
    "lore/assign nobody = game": "no lorebook",
    "lore/unassign harbour = here": "is not assigned to",
    "lore/test": "Usage",
    "lore/test nobody = Hello.": "no NPC called 'nobody'",
    "lore/test oren =": "Usage",
    "lore/why oren": "Usage",
    "lore/why nobody = harbour#0": "no NPC called 'nobody'",
    "lore/lint": "Usage",
    "lore/lint nobody": "no lorebook",
    "lore/lint harbour = x": "no '='",
    "lore/revisions nobody": "no lorebook",
    "lore/revisions harbour = 99": "no revision of lorebook 'harbour' with number 99",
    "lore/revert harbour": "Usage",
    "lore/revert harbour = x": "whole number",
    "lore/revert harbour = 99": "no revision",
    "lore/revert nobody = 1": "no lorebook",
    "lore/lock": "Usage",
    "lore/lock harbour =": "Usage",
    "lore/lock harbour = edit": "contains no colon",
    "lore/lock harbour = edit:perm(Admin": "mismatched parentheses",
    "lore/lock harbour = edit:banana()": "banana",
    "lore/lock harbour = get:all()": "no access type of a lorebook; there are view and edit",
    "lore/lock harbour = edit:all();edit:none()": "each access type once",
    "lore/lock harbour = edit:objtag(a)": "fails for a lorebook",
    "lore/lock harbour/nobody = edit:all()": "has no entry",
    "lore/mode harbour": "Usage",
    "lore/mode harbour =": "Usage",
    "lore/mode harbour = ice": "no mode of a lorebook; there are floating and frozen",
    "lore/mode nobody = frozen": "no lorebook",
    "lore/mode harbour/the ferry = frozen": "no lorebook 'harbour/the ferry'",
    "lore/export nobody": "no lorebook",
    "lore/export harbour = pdf": "no format; there are v3 and world",
}
MISSPELT = (
    "lore/kyes harbour/the ferry = a",
    "lore/key/depth harbour/the ferry = a",
    "lore/re harbour",
    "lore/e harbour/the ferry",
    "lore/o harbour/the ferry",
    "lore/ harbour = 2",
    "lore//depth harbour/the ferry = 2",
    "lore /depth harbour/the ferry = 2",
    "lore/depthh harbour/the ferry = 2",
    "lore/delete harbour",
    "lore/l harbour",
)


def book(name="harbour"):
    """Return the stored book as it is read."""
    return read_book(json.loads(store.get_book(name).source), label=name)


def entry(name="the ferry", *, of="harbour"):
    """Return the stored entry of this name."""
    return next(entry for entry in book(of).entries if entry.name == name)


def everything():
    """Return everything that a command could change, to check that nothing was changed."""
    return [
        (name, store.get_book(name), store.entry_locks(name), store.LOREBOOKS.assigned_to(name))
        for name in store.LOREBOOKS.list_keys()
    ]


@pytest.fixture
def harbour(stage):
    """Create a lorebook with one entry and assign it to the game."""
    stage.builds(
        "lore/create harbour",
        "lore/create harbour/the ferry = ferry, boat: The ferry sails at dusk.",
        "lore/assign harbour = game",
    )
    return "harbour"


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
    stage.plays("lore/create mine", "lore/off harbour/the ferry")
    assert everything() == before


def test_created_book_is_assigned_to_nothing(stage):
    told = stage.builds("lore/create harbour")
    assert "Created lorebook harbour" in told
    assert "is assigned to nothing yet" in told
    assert book().entries == ()


def test_key_between_slashes_is_a_pattern_in_any_book(stage, harbour):
    stage.builds("lore/create harbour/ice = skate, /sk(ates|iing)/i: The ice is thin.")
    assert entry("ice").patterns == "by_form"
    stage.builds("lore/keys harbour/the ferry = /ferr(y|ies)/")
    assert entry().patterns == "by_form"


WRONG = {
    "clock sundial": "clock must be one of turns, messages, seconds, not 'sundial'.",
    "npcs !": "npcs must be a text of 1 to 100 characters, not '!'.",
    "chance 101": "chance must be a number from 0 to 100, not 101.",
    "sticky 1.5": "sticky must be a whole number, 0 or more, not 1.5.",
    "sticky 9999999999": "sticky must be a whole number, 0 or more, at most 1000000000, not",
    "role wizard": "role must be one of system, user, assistant, not 'wizard'.",
    "sources moon": "sources must be a list of persona,",
}


@pytest.mark.parametrize("given", WRONG)
def test_errors_name_entry_and_field_as_typed(stage, harbour, given):
    told = one_line(stage.builds(f"lore/set harbour/the ferry = {given}"))
    assert told.startswith(f"harbour#0 (the ferry): {WRONG[given]}")
    assert told.endswith(" Nothing was changed.")


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("lore/position harbour/0 = after:" + "x" * 200, "the component of position must be a"),
        ("lore/position harbour/0 = outlet:" + "x" * 400, "outlet must be one line of at most"),
        ("lore/depth harbour/0 = 99999999999", "depth must be a whole number, 0 or more, at most"),
        ("lore/order harbour/0 = 99999999999", "order must be a number from -1000000000 to"),
        ("lore/keys harbour/0 = " + "x" * 1200, "keys must be a list of at most 1000 texts of"),
        ("lore/create harbour/" + "y" * 400 + " = a: b", "name must be one line of at most 300"),
        ("lore/create moor/" + "y" * 400 + " = a: b", "name must be one line of at most 300"),
    ],
)
def test_errors_show_no_path_inside_the_json(stage, harbour, typed, words):
    before = everything()
    told = one_line(stage.builds(typed))
    assert f": {words}" in told
    assert not re.search(r"entry[. ]|extensions|evennia_ai|\[[0-9]", told.replace("y" * 20, ""))
    assert everything() == before


def test_lore_command_says_that_a_very_deep_entry_is_at_the_top_of_the_history(stage, harbour):
    told = stage.builds("lore/depth harbour/0 = 1000000000", "lore harbour/0")
    assert "now: the top of the history, system" in told
    assert "place         the top of the history, system" in told
    assert "1000000000" not in told


@pytest.mark.parametrize(
    "typed",
    [
        "lore/keys harbour/the ferry = boat, /fer(ry/",
        "lore/secondary harbour/the ferry = all /fer(ry/",
        "lore/create harbour/other = boat, /fer(ry/: It sails.",
        "lore/create moor/other = /fer(ry/: It sails.",
    ],
)
def test_broken_pattern_is_refused_with_its_position(stage, harbour, typed):
    before = everything()
    assert one_line(stage.builds(typed)) == (
        "The key /fer(ry/ is not a regular expression: a ( that is never closed at character 7."
        " Nothing was changed."
    )
    assert everything() == before


def test_keys_become_patterns_only_if_all_are_valid(stage, harbour):
    stage.builds("lore/keys harbour/the ferry = ferry, (boat")
    before = everything()
    told = one_line(stage.builds("lore/set harbour/the ferry = patterns all"))
    assert "The key (boat is not a regular expression" in told
    assert everything() == before
    assert "now: by_form" in stage.builds("lore/set harbour/the ferry = patterns by_form")


def test_possibly_slow_pattern_is_kept(stage, harbour):
    stage.builds("lore/keys harbour/the ferry = /(a+)+$/")
    assert entry().keys == ("/(a+)+$/",)


def test_create_makes_an_entry_with_its_keys_and_content(stage, harbour):
    told = stage.builds("lore/create harbour/the toll = toll, /co:in,s/i: Two = coppers: a head.")
    made = entry("the toll")
    assert made.keys == ("toll", "/co:in,s/i")
    assert made.template.source == "Two = coppers: a head."
    assert "Created harbour#1 (the toll); keys: toll, /co:in,s/i" in told


def test_freezing_a_book_is_a_revision(stage, harbour):
    was = store.get_book(harbour).revision
    told = stage.builds("lore/mode harbour = Frozen")
    assert f"is frozen from now on. Revision {was + 1}." in told
    assert book().mode == "frozen"
    assert "mode          frozen" in stage.builds("lore harbour")


def test_freezing_a_frozen_book_makes_no_revision(stage, harbour):
    stage.builds("lore/mode harbour = frozen")
    before = everything()
    assert "is frozen already" in one_line(stage.builds("lore/mode harbour = frozen"))
    assert everything() == before


def test_floating_again_restores_the_book(stage, harbour):
    before = json.loads(store.get_book(harbour).source)
    stage.builds("lore/mode harbour = frozen", "lore/mode harbour = floating")
    assert json.loads(store.get_book(harbour).source) == before
    assert "mode " not in stage.builds("lore harbour")


def test_the_mode_of_a_book_is_reverted_with_it(stage, harbour):
    was = store.get_book(harbour).revision
    stage.builds("lore/mode harbour = frozen", f"lore/revert harbour = {was}", "yes")
    assert book().mode == "floating"


def test_mode_is_refused_without_the_right_to_change(stage, harbour):
    store.set_book_locks(harbour, "edit:perm(Admin)", by=trusted("Admin"))
    assert "You may not change lorebook" in one_line(stage.builds("lore/mode harbour = frozen"))
    assert book().mode == "floating"


def test_create_of_an_entry_creates_its_book(stage):
    told = stage.builds("lore/create moor/the wolf = wolf: It is grey.")
    assert "in the new lorebook moor, which is assigned to nothing yet" in told
    assert entry("the wolf", of="moor").keys == ("wolf",)


def test_refused_first_entry_creates_no_book(stage):
    assert "at most" in one_line(stage.builds(f"lore/create moor/{'x' * 400} = wolf: It is grey."))
    assert store.LOREBOOKS.list_keys() == ()


def test_a_book_whose_name_has_a_slash_can_be_named(stage):
    store.save_book("a/b", '{"entries": []}', by=trusted("Mara"))
    stage.builds("lore/create a/b/c = key: Text.")
    assert store.LOREBOOKS.list_keys() == ("a/b",)
    assert entry("c", of="a/b").keys == ("key",)


def test_lore_without_switch_lists_books_and_places(stage, harbour):
    stage.builds("lore/assign harbour = npc:oren", "lore/create moor")
    told = stage.builds("lore")
    assert f"game, npc:#{stage.npc.id} (Oren)" in told
    assert "nothing" in next(line for line in told.splitlines() if line.startswith("moor"))
    assert max(len(line) for line in told.splitlines()) <= 78


def test_lore_without_books_says_how_to_create_one(stage):
    assert "lore/create" in one_line(stage.builds("lore"))


def test_book_lists_its_entries_in_pages(stage, harbour):
    data = json.loads(store.get_book("harbour").source)
    data["data"]["entries"] += [
        {**data["data"]["entries"][0], "id": number, "name": f"e{number}", "comment": f"e{number}"}
        for number in range(10, 55)
    ]
    store.save_book("harbour", json.dumps(data), by=trusted("Mara"))
    first, second = stage.builds("lore harbour"), stage.builds("lore harbour = 2")
    assert "e38" in first
    assert "e39" not in first
    assert "Page 1 of 2; the next one is: lore harbour = 2" in first
    assert "e39" in second
    assert max(len(line) for line in [*first.splitlines(), *second.splitlines()]) <= 78


@pytest.mark.parametrize("name", ["harbour/the ferry", "harbour/0", "HARBOUR#The Ferry"])
def test_an_entry_is_shown_in_full_by_id_or_name(stage, harbour, name):
    stage.builds("lore/set harbour/0 = sticky 3", "lore/secondary harbour/0 = not any storm")
    told = stage.builds(f"lore {name}")
    for words in ("harbour#0 (the ferry), on", "ferry, boat", "storm (not any)", "sticky 3"):
        assert words in told
    assert "The ferry sails at dusk." in told


def test_ambiguous_entry_name_lists_the_candidates(stage, harbour):
    stage.builds("lore/create harbour/other = a: b", "lore/set harbour/other = name the ferry")
    told = one_line(stage.builds("lore harbour/the ferry"))
    assert "could be harbour#0 (the ferry), harbour#1 (the ferry)" in told


CHANGES = {
    "lore/keys harbour/the ferry = barge": ("keys", "ferry, boat", "barge"),
    "lore/keys harbour/the ferry = off": ("keys", "ferry, boat", "none"),
    "lore/secondary harbour/the ferry = all sail, oar": (
        "secondary keys",
        "any: none",
        "all: sail, oar",
    ),
    "lore/depth harbour/the ferry = 3": ("place", "after", "depth 3, system"),
    "lore/order harbour/the ferry = -5": ("order", "100", "-5"),
    "lore/position harbour/the ferry = before": ("place", "after", "before"),
    "lore/position harbour/the ferry = note_top": ("place", "after", "note_top"),
    "lore/position harbour/the ferry = outlet:harbour news": (
        "place",
        "after",
        "outlet harbour news",
    ),
    "lore/position harbour/the ferry = after:goals": ("place", "after", "after goals"),
    "lore/position harbour/the ferry = at_mention": (
        "place",
        "after",
        "right before the newest message with its key",
    ),
    "lore/position harbour/the ferry = At_Mention oldest after": (
        "place",
        "after",
        "right after the oldest message with its key",
    ),
    "lore/set harbour/the ferry = place at_mention after": (
        "place",
        "after",
        "right after the newest message with its key",
    ),
    "lore/set harbour/the ferry = movement on": ("movement", "off", "on"),
    "lore/set harbour/the ferry = name the boat": ("name", "the ferry", "the boat"),
    "lore/set harbour/the ferry = chance 50": ("chance", "100", "50"),
    "lore/set harbour/the ferry = sticky 3": ("sticky", "0", "3"),
    "lore/set harbour/the ferry = clock messages": ("clock", "unused", "unused"),
    "lore/set harbour/the ferry = group a, b": ("group", "none", "a, b"),
    "lore/set harbour/the ferry = constant yes": ("constant", "off", "on"),
    "lore/set harbour/the ferry = case_sensitive off": ("case_sensitive", "", "off"),
    "lore/set harbour/the ferry = scan_depth 2": ("scan_depth", "", "2"),
    "lore/set harbour/the ferry = zones coast, !moor": ("zones", "none", "has_any coast"),
    "lore/set harbour/the ferry = when time.hour at_least 18; time.part is_any night": (
        "when",
        "none",
        "time.hour at_least 18",
    ),
    "lore/off harbour/the ferry": ("state", "on", "off"),
}


@pytest.mark.parametrize("typed", CHANGES)
def test_change_shows_old_and_new_value(stage, harbour, typed):
    what, before, after = CHANGES[typed]
    told = one_line(stage.builds(typed))
    assert f": {what} before: {before}" in told
    assert f"{after}" in told.split("; now: ", 1)[1]
    assert "Revision 3." in told
    assert store.get_book("harbour").revision == 3


def test_set_fields_are_in_the_stored_entry(stage, harbour):
    stage.builds(
        "lore/depth harbour/0 = 2",
        "lore/set harbour/0 = chance 40",
        "lore/set harbour/0 = cooldown 4",
        "lore/set harbour/0 = role user",
        "lore/set harbour/0 = group news",
        "lore/off harbour/0",
    )
    made = entry()
    assert (made.position, made.depth, made.role) == ("depth", 2, "user")
    assert (made.chance, made.timing.cooldown, made.enabled) == (40, 4, False)
    assert made.grouping.names == ("news",)


def test_default_resets_a_field(stage, harbour):
    stage.builds("lore/set harbour/0 = scan_depth 2", "lore/set harbour/0 = scan_depth default")
    assert entry().scan_depth is None


@pytest.mark.req("S3-34")
def test_place_at_a_mention_is_set_shown_and_reset(stage, harbour):
    stage.builds("lore/set harbour/0 = place at_mention after oldest")
    assert entry().mention == Mention(side="after", message="oldest")
    shown = " ".join(stage.builds("lore harbour/0").split())
    assert "place right after the oldest message with its key, order 100" in shown
    stage.builds("lore/set harbour/0 = place default")
    assert (entry().position, entry().mention) == ("after", None)
    stage.builds("lore/position harbour/0 = at_mention", "lore/depth harbour/0 = off")
    assert (entry().position, entry().mention) == ("after", None)


def test_depth_off_places_the_entry_outside_the_history(stage, harbour):
    stage.builds("lore/depth harbour/0 = 2", "lore/depth harbour/0 = off")
    assert (entry().position, entry().depth) == ("after", None)


def test_the_same_value_again_changes_nothing(stage, harbour):
    for typed in (
        "lore/keys harbour/0 = ferry, boat",
        "lore/on harbour/0",
        "lore/position harbour/0 = after",
        "lore/depth harbour/0 = off",
        "lore/set harbour/0 = sticky 0",
    ):
        told = one_line(stage.builds(typed))
        assert " already: " in told, typed
        assert "nothing was changed" in told, typed
    assert store.get_book("harbour").revision == 2


def test_a_decorator_in_the_content_is_changed_with_its_field(stage, harbour):
    stage.builds("lore/create harbour/fog = fog: @@depth 5", "lore/depth harbour/fog = 2")
    assert entry("fog").depth == 2


def test_edit_keeps_unknown_fields(stage):
    source = {"name": "b", "odd": [1], "entries": [{"id": 7, "keys": ["a"], "content": "x"}]}
    source["entries"][0].update(enabled=True, insertion_order=1, extensions={"other": {"a": 1}})
    store.save_book("b", json.dumps(source), by=trusted("Mara"))
    stage.builds("lore/keys b/7 = c")
    kept = json.loads(store.get_book("b").source)
    assert kept["odd"] == [1]
    assert kept["entries"][0]["extensions"]["other"] == {"a": 1}


def test_removing_an_entry_keeps_the_ids_and_locks_of_the_others(stage):
    entries = [{"keys": [k], "content": k, "enabled": True, "insertion_order": 1} for k in "abc"]
    store.save_book("b", json.dumps({"entries": entries}), by=trusted("Mara"))
    stage.builds("lore/lock b/2 = edit:all()", "lore/lock b/1 = view:all()")
    told = one_line(stage.builds("lore/remove b/1"))
    assert "Removed b#1; lore/revert b = 1 brings it back. Revision 2." in told
    assert [(e.uid, e.keys) for e in book("b").entries] == [("0", ("a",)), ("2", ("c",))]
    # A revert may bring the removed entry back, so its lock is kept.
    assert store.entry_locks("b") == {"1": "view:all()", "2": "edit:all()"}


def test_remove_of_a_book_asks_and_no_keeps_it(stage, harbour):
    assert "stays" in stage.builds("lore/remove harbour", "n")
    assert store.LOREBOOKS.list_keys() == ("harbour",)


def test_a_removed_book_comes_back_by_revert(stage, harbour):
    assert "Removed lorebook harbour" in stage.builds("lore/remove harbour", "yes")
    assert store.LOREBOOKS.list_keys() == ()
    told = stage.builds("lore/revert harbour = 2", "yes")
    assert "It has 1 entry; assigned to nothing" in told
    assert "+ The ferry sails at dusk." in told.splitlines()
    assert entry().keys == ("ferry", "boat")


def test_remove_is_refused_if_the_book_changed_during_the_question(stage, harbour):
    stage.builds("lore/remove harbour")
    store.save_book("harbour", '{"entries": []}', by=trusted("Tam"))
    assert "changed by Tam" in stage.builds("yes")
    assert store.LOREBOOKS.list_keys() == ("harbour",)


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("game", "game"),
        ("@zone:Coast", "zone"),
        ("here", "room"),
        ("room:harbour", "room"),
        ("npc:oren", "npc"),
        ("oren", "npc"),
        ("faction:Smugglers", "faction"),
        ("player:pim", "player"),
    ],
)
def test_book_is_used_where_assigned_until_unassigned(stage, written, kind):
    refs = {"game": "", "zone": "coast", "room": str(stage.room.id), "npc": str(stage.npc.id)}
    refs |= {"faction": "smugglers", "player": str(stage.player.id)}
    stage.builds("lore/create b")
    assert "Lorebook b is assigned to" in one_line(stage.builds(f"lore/assign b = {written}"))
    assert store.LOREBOOKS.assigned_to("b") == (Scope(kind=kind, ref=refs[kind]),)
    assert "already" in one_line(stage.builds(f"lore/assign b = {written}"))
    assert "no longer assigned to" in one_line(stage.builds(f"lore/unassign b = {written}"))
    assert store.LOREBOOKS.assigned_to("b") == ()


def test_book_of_a_deleted_npc_can_be_unassigned(stage, harbour):
    store.LOREBOOKS.assign("harbour", Scope(kind="npc", ref="99999"), by=trusted("Mara"))
    assert "npc:#99999 (gone)" in stage.builds("lore")
    stage.builds("lore/unassign harbour = npc:#99999")
    assert store.LOREBOOKS.assigned_to("harbour") == (GAME,)


def test_revision_shows_what_it_changed(stage, harbour):
    stage.builds("lore/keys harbour/the ferry = ferry, raft")
    newest = store.get_book("harbour").revision
    told = stage.builds(f"lore/revisions harbour = {newest}").splitlines()
    assert told[0].startswith(f"Lorebook 'harbour', revision {newest}  ")
    assert "+ raft" in told


def test_revision_names_fields_as_they_are_typed(stage, harbour):
    stage.builds(
        "lore/position harbour/the ferry = depth:4", "lore/depth harbour/the ferry = bottom"
    )
    newest = store.get_book("harbour").revision
    told = stage.builds(f"lore/revisions harbour = {newest}").splitlines()
    assert told[1:] == ["#0 (the ferry) position:", "- depth 4, system", "+ bottom, system"]
    stage.builds("lore/set harbour/the ferry = sticky 3", "lore/off harbour/the ferry")
    told = stage.builds(f"lore/revisions harbour = {newest + 1}").splitlines()
    assert told[1:4] == ["#0 (the ferry) sticky:", "- 0", "+ 3"]
    told = stage.builds(f"lore/revisions harbour = {newest + 2}").splitlines()
    assert told[1:] == ["#0 (the ferry) state:", "- on", "+ off"]


def test_revision_shows_only_set_fields_of_a_new_entry(stage, harbour):
    stage.builds("lore/create harbour/the gull = gull: It cries.")
    newest = store.get_book("harbour").revision
    told = stage.builds(f"lore/revisions harbour = {newest}").splitlines()
    assert told[1] == "#1 (the gull) is new:"
    assert [line for line in told[2:] if line.startswith("#")] == [
        "#1 (the gull) name:",
        "#1 (the gull) keys:",
        "#1 (the gull) position:",
        "#1 (the gull) content:",
    ]


def test_revision_shows_changes_outside_of_entries(stage, harbour):
    stage.builds("lore/mode harbour = frozen")
    newest = store.get_book("harbour").revision
    assert "frozen" in stage.builds(f"lore/revisions harbour = {newest}")


def test_revision_shows_unknown_fields_as_in_the_file(stage, harbour):
    raw = json.loads(store.get_book("harbour").source)
    raw["data"]["entries"][0]["extensions"]["colour"] = "red"
    store.save_book("harbour", json.dumps(raw), by=trusted("Tam"))
    newest = store.get_book("harbour").revision
    told = stage.builds(f"lore/revisions harbour = {newest}").splitlines()
    assert told[1] == "#0 (the ferry) extensions:"
    assert any('"colour": "red"' in line for line in told)


def test_revision_hides_changes_of_a_hidden_entry(stage, harbour):
    stage.builds("lore/keys harbour/the ferry = ferry, raft")
    newest = store.get_book("harbour").revision
    store.set_entry_locks("harbour", "0", "view:perm(Admin)", by=trusted("Ada"))
    assert stage.builds(f"lore/revisions harbour = {newest}").splitlines()[1:] == [
        "No entry is different."
    ]


def test_revisions_of_a_removed_book_follow_its_locks(stage, harbour):
    store.set_entry_locks("harbour", "0", "view:perm(Admin)", by=trusted("Ada"))
    stage.builds("lore/create harbour/the gull = gull: It cries.")
    store.LOREBOOKS.remove("harbour", by=trusted("Ada"))
    assert "It cries." in stage.builds("lore/revisions harbour = 3")
    assert "dusk" not in stage.builds("lore/revisions harbour = 2")


@pytest.mark.req("S4-55")
def test_recreated_book_does_not_open_revisions_of_the_old_one(stage, harbour):
    store.set_book_locks("harbour", "view:perm(Admin)", by=trusted("Ada"))
    store.LOREBOOKS.remove("harbour", by=trusted("Ada"))
    stage.builds("lore/create harbour")
    assert "no revision 2" in one_line(stage.builds("lore/revisions harbour = 2"))


def test_revisions_name_author_and_change(stage, harbour):
    stage.builds("lore/keys harbour/0 = barge")
    told = stage.builds("lore/revisions harbour")
    assert "created by Mara" in told
    assert told.count("updated by Mara") == 2
    assert "new: #0" in told
    assert "changed: #0" in told


def test_revert_brings_an_earlier_text_back(stage, harbour):
    stage.builds("lore/keys harbour/0 = barge")
    told = stage.builds("lore/revert harbour = 2", "yes")
    assert "is what it was at revision 2; before it was revision 3, this is revision 4" in told
    assert told.splitlines()[1:5] == ["#0 (the ferry) keys:", "- barge", "+ ferry", "+ boat"]
    assert entry().keys == ("ferry", "boat")
    assert "Nothing was changed" in one_line(stage.builds("lore/revert harbour = 4"))


def test_lint_lists_problems(stage, harbour):
    assert "Found no problem in lorebook harbour" in stage.builds("lore/lint harbour")
    stage.builds("lore/keys harbour/0 = off")
    assert "entry 0:" in stage.builds("lore/lint harbour")


def test_help_names_every_switch(stage):
    from evennia_ai.commands.setup.lore.command import CmdLore
    from evennia_ai.formats.lorebooks.entry_fields import TYPED_FIELDS

    # Newer versions of Python remove the indentation of docstrings; older ones keep it.
    told = cleandoc(CmdLore().get_help(stage.builder, None))
    for switch in [verb for verb in CmdLore.verbs if verb]:
        assert re.search(rf"^ +{switch} +- ", told, re.M), switch
    for field in TYPED_FIELDS:
        assert field in re.findall(r"\w+", told), field


HOSTILE = "|rred|n |lclook|ltgo|le {x} $eval(1+1) \x1b[2J\u202e"


def test_hostile_text_in_a_book_is_shown_literally(stage):
    one = {"id": 1, "name": HOSTILE, "comment": HOSTILE, "keys": [HOSTILE], "content": HOSTILE}
    one.update(enabled=True, insertion_order=1, extensions={})
    twin = {**one, "id": 2, "keys": ["oren"], "constant": True}
    store.save_book("b", json.dumps({"name": HOSTILE, "entries": [one, twin]}), by=trusted("|rTam"))
    sent = stage.sent(
        stage.builder,
        "lore",
        "lore b",
        "lore b/1",
        f"lore b/{HOSTILE}",
        "lore/keys b/1 = |rred|n {x}",
        "lore/revisions b",
        "lore/lint b",
        "lore/assign b = game",
        "lore/test oren = Hello |rOren|n {x}",
        "lore/why oren = b#2",
    )
    assert "\x1b" not in sent
    assert "\u202e" not in sent
    assert "|lc" not in on_screen(sent)
    assert "|rred|n" in on_screen(sent)
    assert "{x}" in on_screen(sent)


def test_value_without_switch_shows_a_page_and_changes_nothing(stage, harbour):
    before = everything()
    assert "Lorebook harbour, revision 2" in stage.builds("lore harbour = 1")
    assert everything() == before


def test_long_book_is_read_in_another_thread_before_the_answer(stage, monkeypatch):
    told = {"keys": ["ferry"], "content": "It sails at dusk.", "name": "the ferry"}
    long = {"keys": ["nothing"], "content": "x" * LONG, "name": "long"}
    store.save_book("tides", json.dumps({"entries": [told, long]}), by=trusted("builder"))
    begun: list[tuple[Deferred[None], Any]] = []

    def in_thread(work: Any, *values: Any) -> Any:
        begun.append((Deferred(), lambda: work(*values)))
        return begun[-1][0]

    live = runtime_module.runtime()
    builds = BookBuilds(live.conf.lore, in_thread=in_thread)
    monkeypatch.setattr(runtime_module, "runtime", lambda: replace(live, book_builds=builds))
    monkeypatch.setattr(command, "runtime", runtime_module.runtime)
    with hearing(stage.builder) as heard:
        stage.builder.execute_cmd("lore tides/the ferry")
        assert [on_screen(line) for line in heard] == [
            "Lorebook tides is being read; the answer follows."
        ]
        (done, work), *others = begun
        assert others == []
        done.callback(work())
    assert "It sails at dusk." in on_screen(heard[-1])
