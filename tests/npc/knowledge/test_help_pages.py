"""The game's help as a knowledge base: its entries are pages, with their locks."""

import pytest
from evennia.help.filehelp import FILE_HELP_ENTRIES, FileHelpEntry
from evennia.utils.create import create_help_entry

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.knowledge.pages.page import BackendError, PageDraft, page_name
from evennia_ai.npc.knowledge.backends import HelpBackend


@pytest.fixture
def help_base(db, monkeypatch):
    """The base `help` with two help entries of files and one of the database."""
    of_files = [
        file_entry("harbour", "Ships |wlie|n at the quay. The ferry is among them.", "quay"),
        file_entry("prompts", "How prompts are made.", "inspect", read="read:perm(Builder)"),
    ]
    monkeypatch.setattr(FILE_HELP_ENTRIES, "help_entries", of_files)
    create_help_entry("Ferry", "The ferry crosses twice a day.", aliases=["boat"])
    return HelpBackend("help")


def file_entry(key, text, *aliases, read=""):
    return FileHelpEntry(
        key=key,
        aliases=list(aliases),
        help_category="general",
        entrytext=text,
        lock_storage=read,
    )


def fetched(base, *titles):
    return base.fetch([page_name(title) for title in titles])


def test_help_entries_of_files_and_database_are_pages(help_base):
    names = [name.full for name in help_base.listed("Main")]
    assert names == ["Ferry", "Harbour", "Prompts"]


def test_help_entry_is_found_by_name_in_any_case_and_by_alias(help_base):
    ferry, same, harbour, none = fetched(help_base, "Ferry", "BOAT", "quay", "moon")
    assert ferry.body == "The ferry crosses twice a day."
    assert same == ferry
    assert harbour.name.full == "Harbour"
    assert none is None


def test_page_of_a_help_entry_has_no_colour_codes(help_base):
    (harbour,) = fetched(help_base, "harbour")
    assert harbour.body == "Ships lie at the quay. The ferry is among them."


def test_read_lock_of_a_help_entry_becomes_view_and_search_lock_of_its_page(help_base):
    prompts, harbour = fetched(help_base, "prompts", "harbour")
    assert prompts.locks == "view:perm(Builder);search:perm(Builder)"
    assert harbour.locks == ""


def test_search_ranks_a_match_in_the_name_before_one_in_the_text(help_base):
    hits = help_base.search("when does the ferry cross?")
    assert [hit.page.name.full for hit in hits] == ["Ferry", "Harbour"]
    assert "crosses" in hits[0].passage


def test_search_finds_nothing_for_unknown_words(help_base):
    assert help_base.search("zeppelin") == []
    assert help_base.search("!?") == []


def test_help_has_only_the_main_namespace(help_base):
    assert help_base.listed("Sources") == []
    assert help_base.search("ferry", namespaces=["Sources"]) == []
    assert help_base.fetch([page_name("Sources:Ferry")]) == [None]


def test_database_entry_replaces_a_file_entry_of_the_same_name(help_base):
    create_help_entry("harbour", "It was moved.")
    (harbour,) = fetched(help_base, "harbour")
    assert harbour.body == "It was moved."


def test_changed_help_entry_has_another_revision(help_base):
    (before,) = fetched(help_base, "harbour")
    create_help_entry("harbour", "It was moved.")
    (after,) = fetched(help_base, "harbour")
    assert before.revision != after.revision


def test_pages_returns_all_entries_only_below_the_length_limit(help_base):
    assert len(help_base.pages(most_characters=10_000)) == 3
    assert help_base.pages(most_characters=10) is None


def test_write_to_help_is_refused(help_base):
    (ferry,) = fetched(help_base, "ferry")
    with pytest.raises(BackendError, match="sethelp"):
        help_base.write(PageDraft(page=ferry, was=ferry.revision, by=trusted("Mara")))
