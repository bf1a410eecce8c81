"""Locks of lorebooks and entries: who may see and change them."""

import json

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.store.authored import lorebooks as store
from tests.commands.stage import one_line

SECRET = "The wreck was no accident."
# Commands that must be refused for a builder who may only see the book or the entry.
CHANGES = (
    "lore/create harbour/more = a: b",
    "lore/edit harbour/the wreck",
    "lore/edit harbour/the wreck = Sunk.",
    "lore/keys harbour/the wreck = a",
    "lore/secondary harbour/the wreck = a",
    "lore/depth harbour/the wreck = 2",
    "lore/order harbour/the wreck = 2",
    "lore/position harbour/the wreck = before",
    "lore/set harbour/the wreck = sticky 2",
    "lore/off harbour/the wreck",
    "lore/on harbour/the wreck",
    "lore/remove harbour/the wreck",
    "lore/remove harbour",
    "lore/assign harbour = zone:coast",
    "lore/unassign harbour = game",
    "lore/revert harbour = 1",
    "lore/lock harbour = off",
    "lore/lock harbour/the wreck = off",
)
LOOKS = (
    "lore harbour",
    "lore harbour/the wreck",
    "lore/lint harbour",
    "lore/revisions harbour",
    "lore/export harbour",
    "lore/lock harbour",
)


def everything():
    return [
        (name, store.get_book(name), store.entry_locks(name), store.LOREBOOKS.assigned_to(name))
        for name in store.LOREBOOKS.list_keys()
    ]


def all_locks():
    return store.get_book("harbour").locks, store.entry_locks("harbour")


@pytest.fixture(scope="module")
def _ada(beforehand):
    """Create a book that is assigned to the game. Return the ID of Ada."""

    def make(stage):
        stage.builds(
            f"lore/create harbour/the wreck = wreck: {SECRET}",
            "lore/create harbour/the ferry = ferry: At dusk.",
            "lore/assign harbour = game",
        )
        return stage.person("Ada", permission="Admin").id

    return beforehand(make)


@pytest.fixture
def harbour(stage, _ada):
    """Return the stage with an assigned book. The builder is Mara, the Admin is Ada."""
    stage.admin = stage.again(_ada)


def locked(stage, *typed):
    """Let Ada type the line."""
    return stage.sent(stage.admin, *typed)


def test_edit_lock_of_a_book_refuses_every_change(stage, harbour):
    locked(stage, "lore/lock harbour = edit:perm(Admin)")
    before = everything()
    for typed in CHANGES:
        assert "may not change" in one_line(stage.builds(typed)), typed
        assert everything() == before, typed
    assert SECRET in stage.builds("lore harbour/the wreck")


def test_edit_lock_of_an_entry_refuses_every_change(stage, harbour):
    locked(stage, "lore/lock harbour/the wreck = edit:perm(Admin)")
    before = everything()
    allowed = ("create", "assign", "unassign", "lock harbour =")
    for typed in CHANGES:
        if not any(word in typed for word in allowed):
            assert "may not change" in one_line(stage.builds(typed)), typed
            assert everything() == before, typed
    assert "now: a." in stage.builds("lore/keys harbour/the ferry = a")


def test_view_lock_hides_the_book(stage, harbour):
    locked(stage, "lore/lock harbour = view:perm(Admin);edit:perm(Admin)")
    before = everything()
    assert "no lorebooks yet" in stage.builds("lore")
    for typed in (*LOOKS, *CHANGES):
        told = one_line(stage.builds(typed))
        assert "no lorebook 'harbour'" in told or "may not" in told, typed
        assert SECRET not in told
        assert everything() == before, typed
    assert SECRET in stage.sent(stage.admin, "lore harbour/the wreck")


def test_view_lock_hides_the_entry(stage, harbour):
    locked(stage, "lore/lock harbour/the wreck = view:perm(Admin)")
    told = stage.builds("lore harbour")
    assert "the wreck" not in told
    assert "1 entry, 1 more hidden by locks" in told
    assert "has no entry" in stage.builds("lore harbour/the wreck")
    assert "may not see all" in stage.builds("lore/export harbour")
    trial = stage.builds("lore/test oren = The wreck and the ferry?")
    assert "the ferry" in trial
    assert "the wreck (" not in trial
    assert "harbour#0" not in trial


@pytest.mark.parametrize("item", ["harbour#0", "the wreck", "lore:harbour#0", "harbour/the wreck"])
@pytest.mark.parametrize("what", ["harbour", "harbour/the wreck"])
@pytest.mark.parametrize("command", ["lore", "ai"])
def test_why_hides_locked_entries(stage, harbour, item, what, command):
    locked(stage, f"lore/lock {what} = view:perm(Admin)")
    told = one_line(stage.builds(f"{command}/why oren = {item}"))
    assert "may not see" in told
    assert SECRET not in told


def test_lock_without_view_hides_nothing(stage, harbour):
    locked(stage, "lore/lock harbour = edit:perm(Admin)")
    assert "harbour" in stage.builds("lore")


def test_a_superuser_passes_every_lock(stage, harbour):
    stage.sent(stage.admin, "lore/lock harbour = view:false();edit:false()", "yes")
    assert "no lorebook" in stage.sent(stage.admin, "lore harbour")
    stage.admin.locks.lock_bypass = True
    assert "Lorebook harbour" in stage.sent(stage.admin, "lore harbour")


def test_lock_is_shown_set_and_removed(stage, harbour):
    assert "has no lock" in stage.builds("lore/lock harbour")
    told = one_line(stage.builds("lore/lock harbour = edit:perm(Builder);view:all()"))
    assert "lock before: none; now: edit:perm(Builder);view:all()" in told
    assert "edit:perm(Builder);view:all()" in stage.builds("lore/lock harbour", "lore harbour")
    assert "now: none" in stage.builds("lore/lock harbour = off")
    assert store.get_book("harbour").locks == ""


@pytest.mark.parametrize("what", ["Lorebook harbour", "harbour#0 (the wreck)"])
@pytest.mark.parametrize(
    ("lock", "lost"),
    [
        ("edit:perm(Admin)", "change"),
        ("view:perm(Admin)", "see"),
        ("view:perm(Admin);edit:perm(Admin)", "see or change"),
    ],
)
def test_lock_that_shuts_out_the_builder_asks_first(stage, harbour, what, lock, lost):
    typed = f"lore/lock {'harbour' if 'Lore' in what else 'harbour/the wreck'} = {lock}"
    told = " ".join(stage.builds(typed, "no").split())
    assert f"With the lock {lock} you could no longer {lost} {what}" in told
    assert "or undo this. Set it? yes/[no]" in told
    assert f"The lock of {what} stays; nothing was changed." in told
    assert all_locks() == ("", {})
    told = " ".join(stage.builds(typed, "yes").split())
    assert f"now: {lock}. You can no longer {lost} it." in told
    assert all_locks() == ((lock, {}) if "Lore" in what else ("", {"0": lock}))


def test_lock_that_allows_the_builder_asks_nothing(stage, harbour):
    assert "[no]" not in stage.builds("lore/lock harbour = edit:perm(Builder);view:all()")
    assert "[no]" not in locked(stage, "lore/lock harbour = edit:perm(Admin)")


def test_lock_is_refused_if_changed_during_the_question(stage, harbour):
    questions = stage.builds("lore/lock harbour = view:perm(Admin)")
    assert "[no]" in questions
    store.set_book_locks("harbour", "view:all()", by=trusted("Ada"))
    assert "has changed the lock of" in one_line(stage.builds("yes"))
    assert store.get_book("harbour").locks == "view:all()"


def test_failing_lock_function_allows_nobody(stage, harbour):
    store.set_book_locks("harbour", "view:gone_from_the_game()", by=trusted("Ada"))
    assert "no lorebook 'harbour'" in one_line(stage.builds("lore harbour"))


def test_lock_of_a_removed_book_refuses_its_revert(stage, harbour):
    locked(stage, "lore/lock harbour = edit:perm(Admin)")
    stage.sent(stage.admin, "lore/remove harbour", "yes")
    assert store.LOREBOOKS.list_keys() == ()
    assert "may not change" in one_line(stage.builds("lore/revert harbour = 3"))
    assert store.LOREBOOKS.list_keys() == ()


def test_the_lock_of_an_entry_stays_with_it_when_its_twin_is_removed(stage, harbour):
    twins = [
        {"id": 1, "keys": ["a"], "content": "Open."},
        {"id": 1, "keys": ["b"], "content": SECRET},
    ]
    store.save_book("twins", json.dumps({"entries": twins}), by=trusted("Mara"))
    locked(stage, "lore/lock twins/1 (2) = view:perm(Admin)")
    stage.builds("lore/remove twins/1")
    assert SECRET not in stage.builds("lore twins/1", "lore twins/1 (2)", "lore twins")
    assert SECRET in locked(stage, "lore twins/1 (2)")


def test_reverted_entry_has_its_old_lock(stage, harbour):
    locked(stage, "lore/lock harbour/the wreck = view:perm(Admin)")
    locked(stage, "lore/remove harbour/the wreck")
    assert "the lock of what was removed" in one_line(stage.builds("lore/revert harbour = 2"))
    assert "Created harbour#2" in stage.builds("lore/create harbour/the gull = gull: It cries.")
    locked(stage, "lore/revert harbour = 2", "yes")
    assert SECRET not in stage.builds("lore harbour/the wreck", "lore harbour/0")


def test_removed_book_is_reverted_only_by_those_its_lock_allows(stage, harbour):
    locked(stage, "lore/lock harbour = view:perm(Admin)")
    store.LOREBOOKS.remove("harbour", by=trusted("Ada"))
    stage.builds("lore/revert harbour = 1")
    stage.builds("lore/create harbour", "lore/revert harbour = 1", "yes")
    stage.sent(stage.builder, "lore/remove harbour", "yes")
    told = stage.builds("lore/revert harbour = 1", "lore harbour/0", "lore harbour")
    assert "may not bring back" in told
    assert SECRET not in told
    locked(stage, "lore/revert harbour = 1", "yes")
    assert store.get_book("harbour").locks == "view:perm(Admin)"


def test_recreated_book_is_not_reverted_to_the_old_one(stage, harbour):
    store.LOREBOOKS.remove("harbour", by=trusted("Ada"))
    stage.builds("lore/create harbour")
    assert "first remove the present lorebook" in one_line(stage.builds("lore/revert harbour = 1"))


def test_prompts_hide_locked_lore(stage, harbour):
    locked(stage, "lore/lock harbour/the wreck = view:perm(Admin)")
    stage.builds("note Oren = Of the wreck he speaks low.")
    with stage.model("Aye."):
        stage.plays("say Oren, when does the ferry sail, and what of the wreck?")
        stage.waited()
        looks = ["ai/context Oren = full", "ai/context Oren = lore", "ai/context Oren"]
        looks += ["component/preview/full Oren", "component/preview/full Oren = wreck?"]
        looks += [f"ai/why Oren = {number}" for number in range(4)]
        told = stage.builds(*looks)
        assert "accident" not in told
        assert "'wreck'" not in told  # The key that activated the entry.
        assert "Hidden from you: 1 entry of lore." in told
        assert "At dusk." in told
        assert SECRET in locked(stage, "ai/context Oren = full")


def test_lore_in_an_outlet_is_hidden_with_what_shows_it(stage, harbour):
    locked(stage, "lore/position harbour/the wreck = outlet:rumours")
    locked(stage, "lore/lock harbour/the wreck = view:perm(Admin)")
    stage.builds("component/create rumours = 1200, system: Rumours: {{outlet::rumours}}")
    assert "accident" not in stage.builds("component/preview/full Oren = wreck?")
    assert SECRET in locked(stage, "component/preview/full Oren = wreck?")
