"""Bases in the library: published by one game, taken by another, followed, and never half taken."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from hashlib import sha256

import pytest

from evennia_ai.engine.actors import THE_GAME, trusted
from evennia_ai.engine.errors import ComponentValueError
from evennia_ai.engine.knowledge.pages.files import ImportProblems
from evennia_ai.engine.knowledge.pages.page import PageDraft, page_name
from evennia_ai.engine.prompt.components import Scope
from evennia_ai.store.core.copies import CopyError, copies, copy_of, forget
from evennia_ai.store.knowledge import knowledge_bases, page_imports, pages
from evennia_ai.store.library.bases import publish_base, take_base
from evennia_ai.store.library.entries import (
    LibraryError,
    entries,
    entry,
    list_hash,
    reading,
    remove,
)
from evennia_ai.store.library.following import look
from tests.shared_library import OTHER, published_base
from tests.store.knowledge.knowledge_builders import a_base, a_page, a_saved_page, saved

FERRY = {"Ferry": "It crosses at dusk.", "Sources:Ledger": "Two coppers a head."}


def listed():
    with reading():
        return entries()


def taken(key="harbour", **options):
    with reading():
        found = entry("base", key)
    return take_base(found, by=trusted("Mara"), **options)


def texts(key="harbour"):
    found = pages.all_pages(key, most_characters=10**9) or ()
    return {page.name.full: page.body for page in found}


def tampered(path, statement, *values):
    """Somebody writes in the library's tables themselves."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement, values)


def test_a_base_is_taken_as_it_was_published(library):
    said = published_base(FERRY, summary="Ferries.", keywords=("dusk",), direct_characters=900)
    assert (said.is_new, said.pages, said.kept) == (True, 2, ())
    taken()
    made = knowledge_bases.get_base("harbour")
    assert (made.name, made.summary, made.keywords) == ("The Harbour", "Ferries.", ("dusk",))
    assert made.direct_characters == 900
    assert texts() == FERRY
    (copy,) = copies()
    assert (copy.typed, copy.game_name, copy.taken_by) == ("harbour", "Saltholm", "Mara")


def test_the_same_published_again_is_nothing_new(library):
    published_base(FERRY)
    before = listed()
    assert not published_base(FERRY).is_new
    assert listed() == before


def test_an_edit_on_one_side_is_seen_on_the_other_and_the_other_pages_are_left(library):
    published_base({**FERRY, "Fog": "Thick."})
    taken()
    published_base({"Ferry": "It crosses at dawn.", "Sources:Ledger": FERRY["Sources:Ledger"]})
    found = look()
    assert (found.bases, found.refused) == (("harbour",), ())
    assert texts() == {"Ferry": "It crosses at dawn.", "Sources:Ledger": "Two coppers a head."}
    assert [one.action for one in pages.revisions("harbour", page_name("Ferry"))] == [
        "created",
        "updated",
    ]
    assert len(pages.revisions("harbour", page_name("Sources:Ledger"))) == 1
    assert pages.revisions("harbour", page_name("Fog"))[-1].action == "removed"


def test_of_a_change_only_the_changed_pages_are_read(library, monkeypatch):
    from evennia_ai.store.library import bases

    published_base(FERRY)
    taken()
    published_base({**FERRY, "Ferry": "It crosses at dawn."})
    asked = []
    contents_of = bases.contents_of
    monkeypatch.setattr(
        bases, "contents_of", lambda one, paths: asked.extend(paths) or contents_of(one, paths)
    )
    look()
    assert asked == ["base.yaml", "Ferry.md"]


def test_a_look_where_nothing_changed_takes_nothing(library):
    published_base(FERRY)
    taken()
    before = (knowledge_bases.get_base("harbour"), copies())
    found = look()
    assert (found.bases, found.gone, found.refused) == ((), (), ())
    assert (knowledge_bases.get_base("harbour"), copies()) == before


@pytest.mark.parametrize(
    "edit",
    [
        lambda: saved(a_page("Ferry", "It sank.")),
        lambda: saved(a_page("New", "Page.")),
        lambda: pages.remove_page(
            "harbour",
            page_name("Ferry"),
            was=pages.page("harbour", page_name("Ferry")).revision,
            by=trusted("Mara"),
        ),
        lambda: pages.rename_page(
            "harbour", page_name("Ferry"), page_name("Boat"), by=trusted("Mara")
        ),
        lambda: knowledge_bases.save_base(
            replace(knowledge_bases.get_base("harbour"), summary="Mine."), by=trusted("Mara")
        ),
        lambda: knowledge_bases.set_restricted("harbour", False, by=trusted("Mara")),
        lambda: knowledge_bases.save_base(
            replace(knowledge_bases.get_base("harbour"), locks="view:all()"), by=trusted("Mara")
        ),
        lambda: page_imports.import_folder(
            page_imports.FolderPlan(
                info=knowledge_bases.get_base("harbour"),
                fields=(),
                is_new=False,
                pages=page_imports.plan_pages("harbour", [a_page("Ferry", "It sank.")]),
            ),
            by=trusted("Mara"),
        ),
        lambda: publish_base("harbour", game="a" * 32, game_name="Here", by=trusted("Mara")),
    ],
    ids=[
        *("page", "new page", "removal", "new name", "summary", "restriction", "lock", "folder"),
        "published again",
    ],
)
def test_what_comes_from_the_library_is_edited_there(library, edit):
    published_base(FERRY, restricted=True, locks="view:perm(Admin)")
    taken()
    before = (knowledge_bases.get_base("harbour"), texts())
    with pytest.raises(CopyError, match=r"where the game Saltholm published .*: edit it there"):
        edit()
    assert (knowledge_bases.get_base("harbour"), texts()) == before


def test_what_the_library_leaves_unsaid_of_who_may_read_is_the_games_own(library):
    published_base(FERRY, locks="search:perm(Player)")
    taken()
    info = knowledge_bases.get_base("harbour")
    own = "search:perm(Player);restricted:tag(outsider);edit:perm(Admin)"
    knowledge_bases.save_base(replace(info, restricted=True, locks=own), by=trusted("Mara"))
    knowledge_bases.bind("harbour", Scope(kind="npc", ref="7"), by=trusted("Mara"))
    published_base({**FERRY, "Fog": "Thick."}, locks="search:perm(Builder);view:perm(Admin)")
    look()
    now = knowledge_bases.get_base("harbour")
    assert now.restricted
    assert now.locks == (
        "search:perm(Builder);restricted:tag(outsider);edit:perm(Admin);view:perm(Admin)"
    )
    assert knowledge_bases.bindings("harbour") == (Scope(kind="npc", ref="7"),)


def test_a_restriction_that_the_library_lifts_stays_until_the_game_lifts_it(library):
    published_base(FERRY, restricted=True, mediation="hints", keeps_chunks=False)
    taken()
    info = knowledge_bases.get_base("harbour")
    assert (info.restricted, info.mediation, info.keeps_chunks) == (True, "hints", False)
    published_base(FERRY)
    look()
    assert knowledge_bases.get_base("harbour").restricted
    assert not knowledge_bases.set_restricted("harbour", False, by=trusted("Mara")).restricted


def test_who_is_held_and_who_may_change_a_base_stays_at_home(library):
    a_base("vault", restricted=True, locks="restricted:tag(outsider);edit:id(7);view:perm(Admin)")
    knowledge_bases.hold(["vault"], "7", by=THE_GAME)
    publish_base("vault", by=trusted("Ismay"), **OTHER)
    knowledge_bases.remove_base("vault", by=trusted("Ismay"))
    taken("vault")
    info = knowledge_bases.get_base("vault")
    assert (info.restricted, info.locks) == (True, "view:perm(Admin)")


@pytest.mark.parametrize("lock", ["search:tag(crew)", "view:id(7)", "search:not perm(Player)"])
def test_a_page_whose_lock_means_something_else_elsewhere_stays_at_home(library, lock):
    a_base()
    a_saved_page("Ferry", "It crosses at dusk.")
    secret = replace(a_page("Secret", "Under the step."), locks=lock)
    pages.save_page("harbour", PageDraft(page=secret, was="", by=trusted("Mira")))
    said = publish_base("harbour", by=trusted("Ismay"), **OTHER)
    assert (said.pages, said.kept) == (1, (page_name("Secret"),))
    knowledge_bases.remove_base("harbour", by=trusted("Ismay"))
    taken()
    assert texts() == {"Ferry": "It crosses at dusk."}


def test_a_page_keeps_a_lock_that_asks_for_permissions(library):
    a_base()
    page = replace(a_page(), locks="view:perm(Admin);search:perm(Player) or perm(Builder)")
    pages.save_page("harbour", PageDraft(page=page, was="", by=trusted("Mira")))
    publish_base("harbour", by=trusted("Ismay"), **OTHER)
    knowledge_bases.remove_base("harbour", by=trusted("Ismay"))
    taken()
    assert pages.page("harbour", page_name("Ferry")).locks == page.locks


def test_a_base_whose_lock_means_something_else_elsewhere_is_not_published(library):
    a_base(locks="search:tag(crew)")
    with pytest.raises(LibraryError, match="harbour' stays at home: its lock search:tag"):
        publish_base("harbour", by=trusted("Ismay"), **OTHER)
    assert not library.exists()


def test_a_base_of_the_games_own_is_not_written_over(library):
    published_base(FERRY)
    a_base()
    with pytest.raises(LibraryError, match="'harbour' of its own; remove it first"):
        taken()
    assert (texts(), copies()) == ({}, ())


def test_what_another_game_published_is_not_published_over(library):
    published_base(FERRY)
    a_base()
    with pytest.raises(LibraryError, match=r"game Saltholm published it\..* library remove harb"):
        publish_base("harbour", game="a" * 32, game_name="Here", by=trusted("Mara"))
    remove("base", "harbour", by=trusted("Ismay"))
    assert publish_base("harbour", game="a" * 32, game_name="Here", by=trusted("Mara")).is_new


def test_what_is_taken_out_of_the_library_stays_in_the_game_which_is_told_once(library):
    published_base(FERRY)
    taken()
    remove("base", "harbour", by=trusted("Ismay"))
    assert look().gone == ("harbour",)
    assert look().gone == ()
    assert (texts(), copy_of("base", "harbour").is_gone) == (FERRY, True)
    published_base(FERRY)
    look()
    assert not copy_of("base", "harbour").is_gone


def test_what_is_the_games_own_again_is_edited_here_and_does_not_follow(library):
    published_base(FERRY)
    taken()
    assert forget("base", "harbour")
    saved(a_page("Ferry", "It sank."))
    published_base({"Ferry": "It flies."})
    look()
    assert texts()["Ferry"] == "It sank."


def test_a_base_that_is_removed_here_is_followed_no_longer(library):
    published_base(FERRY)
    taken()
    knowledge_bases.remove_base("harbour", by=trusted("Mara"))
    assert copies() == ()
    assert knowledge_bases.base("harbour") is None


def test_more_pages_than_may_be_taken_at_once_are_none(library):
    published_base(FERRY)
    with pytest.raises(LibraryError, match=r"2 pages .* evennia-ai library use harbour"):
        taken(most=1)
    assert (knowledge_bases.base("harbour"), copies()) == (None, ())


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("UPDATE evennia_ai_library_file SET content = x'41' WHERE path = 'Ferry.md'", "not what"),
        ("UPDATE evennia_ai_library_file SET content = x'41' WHERE path = 'base.yaml'", "not what"),
        ("UPDATE evennia_ai_library_file SET path = 'Boat.md' WHERE path = 'Ferry.md'", "just now"),
        ("DELETE FROM evennia_ai_library_file WHERE path = 'Ferry.md'", "just now"),
        ("UPDATE evennia_ai_library_entry SET format = 2", "another version of evennia_ai"),
        (
            "UPDATE evennia_ai_library_file SET content = zeroblob(3000000) WHERE path LIKE 'F%'",
            "Ferry.md of harbour in the library has more than",
        ),
    ],
    ids=["page", "base", "place", "gone", "format", "size"],
)
def test_what_is_not_as_it_was_published_is_refused_whole(library, statement, told):
    published_base(FERRY)
    tampered(library, statement)
    with pytest.raises(LibraryError, match=told):
        taken()
    assert (knowledge_bases.base("harbour"), copies()) == (None, ())


def forged(path, file, content, hash_of=None):
    """Somebody writes a file into the library with all its hashes; of a page, as if it was one."""
    hash_of = hash_of or sha256(content).hexdigest()
    tampered(
        path,
        "INSERT OR REPLACE INTO evennia_ai_library_file (entry_id, path, sha256, content)"
        " VALUES (1, ?, ?, ?)",
        *(file, hash_of, content),
    )
    with closing(sqlite3.connect(path)) as connection:
        rows = dict(connection.execute("SELECT path, sha256 FROM evennia_ai_library_file"))
    tampered(path, "UPDATE evennia_ai_library_entry SET sha256 = ?", list_hash(rows))


@pytest.mark.parametrize(
    ("file", "content", "error", "told"),
    [
        ("Ferry.md", b"---\nrequires: [1]\n---\n", ImportProblems, "Ferry.md:2: requires must be"),
        ("Ferry.md", b"\xff", ImportProblems, "Ferry.md:1: is no UTF-8 text"),
        ("base.yaml", b"locks: 'view:tag(crew)'", LibraryError, "of the base asks for more than"),
        ("base.yaml", b"locks: 'restricted:false()'", LibraryError, "of the base asks for more"),
        ("base.yaml", b'name: "a\\tb"', ComponentValueError, "name of the knowledge base"),
        ("base.yaml", b"backend: mediawiki", ImportProblems, "backend is not known"),
        ("../Fog.md", b"Thick.", LibraryError, "cannot be the name of a file"),
        ("/etc/Fog.md", b"Thick.", LibraryError, "in the library is"),
        ("Fog.exe", b"Thick.", LibraryError, "is no folder of pages: Fog.exe"),
    ],
    ids=["markup", "bytes", "lock", "held", "name", "field", "out of it", "root", "program"],
)
def test_what_a_library_may_not_hold_is_refused_whole(library, file, content, error, told):
    published_base(FERRY)
    forged(library, file, content)
    with pytest.raises(error, match=told):
        taken()
    assert (knowledge_bases.base("harbour"), copies()) == (None, ())


def test_one_that_is_refused_holds_up_no_other_and_is_told(library):
    published_base(FERRY)
    published_base({"Fog": "Thick."}, key="moor")
    taken()
    taken("moor")
    published_base({"Ferry": "It sank."})
    published_base({"Fog": "Thin."}, key="moor")
    tampered(library, "UPDATE evennia_ai_library_file SET content = x'ff' WHERE path LIKE 'Fe%'")
    found = look()
    assert found.bases == ("moor",)
    ((name, why),) = found.refused
    assert name == "harbour"
    assert "Ferry.md:1: is no UTF-8 text" in why
    assert (texts()["Ferry"], texts("moor")) == ("It crosses at dusk.", {"Fog": "Thin."})
