"""Test stored pages: find, write, rename and remove them."""

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import (
    ComponentValueError,
    NotStoredError,
    PageConflictError,
    StoreError,
)
from evennia_ai.engine.knowledge.pages.page import Page, PageDraft, page_name
from evennia_ai.store.knowledge import pages
from evennia_ai.store.knowledge.knowledge_bases import base_or_none
from tests.store.knowledge.knowledge_builders import a_base, a_page, a_saved_page, saved


@pytest.fixture(autouse=True)
def _harbour():
    a_base()


def found(title: str, *, follow=True):
    return pages.page_or_none("harbour", page_name(title), follow=follow)


def body_of(title: str) -> str | None:
    page = found(title)
    return page and page.body


def actions(title: str) -> list[tuple[int, str]]:
    return [(one.number, one.action) for one in pages.page_revisions("harbour", page_name(title))]


class TestFinding:
    def test_page_is_read_as_it_was_written(self):
        page = a_page(
            "Sources:Ledger",
            "See [[Ferry]].",
            summary="Old sums.",
            aliases=["The book"],
            requires=["Ferry", "Instructions:Tone"],
            locks="view:perm(Admin)",
            reliability="high",
        )
        stored = saved(page)

        assert found("sources:ledger") == stored
        assert (stored.body, stored.meta, stored.links, stored.locks) == (
            page.body,
            page.meta,
            page.links,
            page.locks,
        )
        assert (stored.base, stored.revision, stored.sha256) == ("harbour", "1", page.sha256)

    @pytest.mark.parametrize(
        "title", ["ferry House", "FERRY HOUSE", "Ferry_house", "Main:ferry house"]
    )
    def test_page_is_found_by_its_title_in_any_spelling(self, title):
        a_saved_page("Ferry house")

        assert found(title).name.title == "Ferry house"

    def test_namespaces_are_separate(self):
        a_saved_page("Sources:Ferry")

        assert found("Ferry") is None

    def test_alias_finds_its_page_in_its_own_namespace(self):
        a_saved_page("Sources:Ledger", aliases=["Old book", "Main:Ledger"])

        assert found("Sources:old book").name.full == "Sources:Ledger"
        assert found("ledger").name.full == "Sources:Ledger"
        assert found("Old book") is None

    def test_title_is_preferred_to_an_alias(self):
        a_saved_page("Boat", "a boat")
        a_saved_page("Ferry", "a ferry", aliases=["Boat"])

        assert body_of("boat") == "a boat"

    def test_shared_alias_finds_the_first_page_by_title(self):
        a_saved_page("Skiff", aliases=["Boat"])
        a_saved_page("Ferry", aliases=["Boat"])

        assert found("Boat").name.title == "Ferry"

    def test_one_redirect_is_followed(self):
        a_saved_page("Ferry")
        a_saved_page("Boat", "", redirect="Ferry")
        a_saved_page("Ship", "", redirect="Boat")

        assert found("Boat").name.title == "Ferry"
        assert found("Ship").name.title == "Boat"
        assert found("Boat", follow=False).name.title == "Boat"

    def test_circular_redirects_end(self):
        a_saved_page("Boat", "", redirect="Ship")
        a_saved_page("Ship", "", redirect="Boat")
        a_saved_page("Self", "", redirect="Self")

        assert found("Boat").name.title == "Ship"
        assert found("Self").name.title == "Self"

    def test_redirect_to_a_missing_page_is_returned(self):
        a_saved_page("Boat", "", redirect="Ferry")

        assert found("Boat").meta.redirect == page_name("Ferry")

    def test_redirect_may_lead_to_an_alias(self):
        a_saved_page("Ferry", aliases=["Barge"])
        a_saved_page("Boat", "", redirect="Barge")

        assert found("Boat").name.title == "Ferry"

    def test_many_pages_are_returned_in_the_order_of_their_names(self):
        a_saved_page("Ferry", aliases=["Barge"])
        a_saved_page("Quay")
        a_saved_page("Boat", "", redirect="Ferry")

        titles = [page_name(title) for title in ("Quay", "None", "Boat", "barge", "Ferry")]
        got = pages.pages_named("harbour", titles)

        assert [one and one.name.title for one in got] == ["Quay", None, "Ferry", "Ferry", "Ferry"]

    def test_names_beyond_one_query_are_all_found(self):
        a_saved_page("Ferry")
        names = [page_name(f"Nothing {number}") for number in range(1200)]

        got = pages.pages_named("harbour", [*names, page_name("Ferry")])

        assert got[:-1] == (None,) * 1200
        assert got[-1].name.title == "Ferry"

    def test_no_names_find_no_pages(self):
        assert pages.pages_named("harbour", []) == ()

    def test_unknown_knowledge_base_error_names_the_known_ones(self):
        with pytest.raises(NotStoredError, match="no knowledge base 'quay'; there are harbour"):
            pages.page_or_none("quay", page_name("Ferry"))


class TestListing:
    def test_titles_of_a_namespace_are_sorted(self):
        for title in ("Quay", "Ferry", "Sources:Ledger", "Ash"):
            a_saved_page(title)

        assert [n.title for n in pages.list_pages("harbour", "Main")] == ["Ash", "Ferry", "Quay"]

    def test_prefix_is_matched_literally_in_any_case(self):
        for title in ("Core/Canon", "Core/Rules", "Corex", "Co%re"):
            a_saved_page(f"Instructions:{title}")

        got = pages.list_pages("harbour", "Instructions", prefix="core/")
        assert [name.title for name in got] == ["Core/Canon", "Core/Rules"]
        assert [n.title for n in pages.list_pages("harbour", "Instructions", prefix="co%")] == [
            "Co%re"
        ]

    def test_links_of_pages_have_the_order_of_the_text(self):
        a_saved_page("Ferry", "[[Quay]], [[Oren]] and [[Ash]]", requires=["Tide"])
        a_saved_page("Quay", "nothing")

        got = pages.linked_pages("harbour", [page_name(t) for t in ("Quay", "ferry", "None")])

        assert [[n.title for n in links] for links in got] == [[], ["Quay", "Oren", "Ash"], []]

    def test_pages_that_link_to_or_require_a_page_are_listed(self):
        a_saved_page("Ferry", "[[oren]]")
        a_saved_page("Sources:Ledger", requires=["Oren"])
        a_saved_page("Quay", "[[Ash]]")

        got = pages.pages_linking_to("harbour", page_name("Oren"))
        assert [name.full for name in got] == ["Ferry", "Sources:Ledger"]

    def test_small_knowledge_base_is_returned_whole_and_a_large_one_not(self):
        a_saved_page("Quay", "12345")
        a_saved_page("Ferry", "123")

        whole = pages.all_pages("harbour", most_characters=8)
        assert [page.name.title for page in whole] == ["Ferry", "Quay"]
        assert pages.all_pages("harbour", most_characters=7) is None


class TestWriting:
    def test_wiki_page_gets_a_new_revision_only_when_it_changes(self):
        for body in ("one", "two", "two"):
            a_saved_page("Ferry", body)

        assert actions("Ferry") == [(1, "created"), (2, "updated")]
        assert found("Ferry").revision == "2"

    def test_changed_lock_of_a_page_is_a_revision(self):
        a_saved_page("Ferry")
        a_saved_page("Ferry", locks="view:all()")

        assert actions("Ferry")[-1] == (2, "updated")

    def test_page_revision_names_author_and_reason(self):
        saved(a_page(), by=trusted("Tam"), note="tides")

        (one,) = pages.page_revisions("harbour", page_name("Ferry"))
        assert (one.changed_by, one.note, one.sha256) == ("Tam", "tides", a_page().sha256)

    def test_second_editor_of_a_page_gets_a_conflict_and_writes_nothing(self):
        saved(a_page(body="one"))
        saved(a_page(body="two"), by=trusted("Tam"))

        with pytest.raises(PageConflictError, match="was changed by Tam while you edited it"):
            saved(a_page(body="three"), was="1")
        assert body_of("Ferry") == "two"
        assert len(actions("Ferry")) == 2

    def test_page_created_meanwhile_is_a_conflict(self):
        saved(a_page(body="one"))

        with pytest.raises(PageConflictError, match="changed by Mira"):
            saved(a_page(body="two"), was="")

    def test_page_removed_meanwhile_is_a_conflict(self):
        stored = saved(a_page())
        pages.remove_page("harbour", stored.name, was="1", by=trusted("Tam"))

        with pytest.raises(PageConflictError, match="changed by Tam"):
            saved(a_page(body="two"), was="1")

    @pytest.mark.req("S4-54")
    def test_page_at_an_earlier_revision_never_changes(self):
        then = a_saved_page("Ferry", "one [[Oren]]", aliases=["Boat"], requires=["Tide"])
        a_saved_page("Ferry", "two")
        pages.remove_page("harbour", then.name, was="2", by=trusted("Mira"))

        again = pages.page_at_revision("harbour", then.name, 1)

        assert again == then
        assert (again.revision, again.sha256) == (then.revision, then.sha256)

    def test_removal_or_unknown_number_has_no_page(self):
        a_saved_page("Ferry")
        pages.remove_page("harbour", page_name("Ferry"), was="1", by=trusted("Mira"))

        assert [pages.page_at_revision("harbour", page_name("Ferry"), n) for n in (2, 3)] == [
            None,
            None,
        ]

    def test_recreated_page_continues_its_revision_numbers(self):
        a_saved_page("Ferry")
        pages.remove_page("harbour", page_name("Ferry"), was="1", by=trusted("Mira"))
        a_saved_page("Ferry", "new")

        assert actions("Ferry") == [(1, "created"), (2, "removed"), (3, "created")]
        assert found("Ferry").revision == "3"

    def test_knowledge_base_counts_its_pages_and_characters(self):
        a_saved_page("Ferry", "12345")
        a_saved_page("Quay", "12")
        a_saved_page("Ferry", "123")
        assert (base_or_none("harbour").pages, base_or_none("harbour").characters) == (2, 5)

        pages.remove_page("harbour", page_name("Ferry"), was="2", by=trusted("Mira"))
        assert (base_or_none("harbour").pages, base_or_none("harbour").characters) == (1, 2)

    def test_every_page_change_changes_the_revision_of_the_knowledge_base(self):
        before = base_or_none("harbour").revision
        a_saved_page("Ferry")

        assert base_or_none("harbour").revision > before

    def test_old_aliases_and_links_are_removed_with_the_old_text(self):
        a_saved_page("Ferry", "[[Oren]]", aliases=["Boat"])
        a_saved_page("Ferry", "[[Ash]]")

        assert found("Boat") is None
        assert pages.pages_linking_to("harbour", page_name("Oren")) == ()

    @pytest.mark.parametrize(
        ("page", "problem"),
        [
            (a_page(body="x" * 400_001), "at most 400000 characters"),
            (a_page(body="a\x00b"), "without null characters"),
            (a_page(summary="\ud800"), "that can be stored"),
            (a_page(summary="x" * 40_001), "at most 40000 characters"),
            (a_page(locks="x" * 2001), "a lock string"),
        ],
    )
    def test_unstorable_page_is_refused_with_the_reason(self, page, problem):
        with pytest.raises(ComponentValueError, match=problem):
            saved(page)
        assert found("Ferry") is None
        assert actions("Ferry") == []

    def test_removing_a_missing_page_is_an_error(self):
        with pytest.raises(NotStoredError, match="no page of knowledge base 'harbour' 'Ferry'"):
            pages.remove_page("harbour", page_name("Ferry"), was="", by=trusted("Mira"))

    def test_pages_of_another_backend_cannot_be_written(self):
        a_base("wiki", backend="mediawiki")

        with pytest.raises(StoreError, match="not in the game's database"):
            pages.save_page("wiki", PageDraft(page=a_page(), was="", by=trusted("Mira")))


class TestRenaming:
    def renamed(self, old: str, new: str) -> Page:
        return pages.rename_page("harbour", page_name(old), page_name(new), by=trusted("Tam"))

    def test_renamed_page_leaves_a_redirect(self):
        a_saved_page("Ferry", "It crosses.", aliases=["Boat"])

        moved = self.renamed("Ferry", "Sources:Crossing")

        assert (moved.name.full, moved.body) == ("Sources:Crossing", "It crosses.")
        assert found("Ferry") == moved
        assert found("Ferry", follow=False).meta.redirect == moved.name
        assert actions("Ferry")[-1] == (2, "renamed")
        assert actions("Sources:Crossing") == [(1, "renamed")]

    def test_talk_page_is_renamed_with_its_page(self):
        a_saved_page("Ferry")
        a_saved_page("Talk:Ferry", "Really?")

        self.renamed("Ferry", "Crossing")

        assert body_of("Talk:Crossing") == "Really?"

    def test_page_can_be_renamed_to_another_case(self):
        a_saved_page("Ferry House")

        self.renamed("Ferry House", "Ferry house")

        assert found("ferry house", follow=False).name.title == "Ferry house"
        assert [n.title for n in pages.list_pages("harbour", "Main")] == ["Ferry house"]

    def test_page_cannot_be_renamed_over_another(self):
        a_saved_page("Ferry")
        a_saved_page("Boat", "another")

        with pytest.raises(StoreError, match="there is a page 'Boat' in"):
            self.renamed("Ferry", "Boat")
        assert body_of("Boat") == "another"

    def test_page_can_be_renamed_back_over_its_redirect(self):
        a_saved_page("Ferry", "It crosses.")
        self.renamed("Ferry", "Crossing")

        self.renamed("Crossing", "Ferry")

        assert body_of("Ferry") == "It crosses."
        assert found("Crossing").name.title == "Ferry"
