"""The command `library`: what builders share, take and are told."""

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.knowledge.pages.markup import read_page
from evennia_ai.engine.knowledge.pages.page import PageDraft, page_name
from evennia_ai.engine.prompt.components import NO_GRANTS
from evennia_ai.npc.model_calls.naming import game_id
from evennia_ai.store.authored import card_revisions as log
from evennia_ai.store.authored import cards
from evennia_ai.store.core.copies import copies
from evennia_ai.store.knowledge import knowledge_bases, page_drafts
from evennia_ai.store.library.bases import take_base
from evennia_ai.store.library.entries import entries, reading
from tests.commands.knowledge_bases import everything, make_base, page, write
from tests.commands.stage import one_line
from tests.shared_library import a_library, published_base, published_card

FERRY = {"The Ferry": "It crosses at dusk."}


@pytest.fixture
def library(stage, tmp_path):
    with a_library(tmp_path / "library.db3") as path:
        yield path


def listed():
    with reading():
        return [(one.typed, one.game_name) for one in entries()]


def test_without_a_library_it_is_said_where_to_read_of_one(stage):
    told = one_line(stage.builds("library"))
    assert told.startswith(
        "This game has no library; docs/build/library.md tells how games share one"
    )


def test_a_base_is_published_and_listed(stage, library):
    make_base()
    told = stage.builds("library/publish harbour")
    assert told.splitlines()[0].startswith("Published harbour. Games that use it have it in some")
    assert "  harbour: this game published it 20" in stage.builds("library")
    assert "already; nothing was changed" in stage.builds("library/publish harbour")


def test_pages_that_stay_at_home_are_named(stage, library):
    make_base()
    stage.builds("kb/lock harbour/Oren = search:tag(crew)")
    assert "at home stay" in (told := stage.builds("library/publish harbour"))
    assert told.rstrip().endswith("Oren")


@pytest.mark.parametrize(
    ("locks", "page_locks"),
    [("edit:perm(Admin)", ""), ("view:perm(Admin)", ""), ("", "view:perm(Admin)")],
    ids=["edit", "view", "page"],
)
def test_who_may_not_change_a_base_or_see_all_of_it_does_not_publish_it(
    stage, library, locks, page_locks
):
    make_base(locks=locks)
    if page_locks:
        write("Secret", f"---\nlocks: {page_locks}\n---\nUnder the step.")
    told = one_line(stage.builds("library/publish harbour"))
    assert "may not" in told or "no knowledge base" in told
    assert not library.exists()


def test_a_base_is_used_read_and_not_edited(stage, library):
    published_base(FERRY)
    told = one_line(stage.builds("library/use harbour"))
    assert told.startswith(
        "Took harbour, which the game Saltholm published. Knowledge base harbour has 1 page and"
    )
    assert "It crosses at dusk." in stage.builds("kb/show harbour/The Ferry")
    assert "comes from" in stage.builds("kb harbour")
    assert "used here" in stage.builds("library")
    fog = PageDraft(page=read_page(page_name("Fog"), "Thick."), was="", by=trusted("lorekeeper"))
    draft = page_drafts.add("harbour", fog, task="Write.", context_meta={})
    before = everything()
    for line in (
        "kb/edit harbour/The Ferry",
        "kb/edit harbour/New",
        "kb/rename harbour/The Ferry = Boat",
        "kb/lock harbour/The Ferry = view:all()",
        "kb/remove harbour/The Ferry",
        "kb/hints harbour/The Ferry = Wait.",
        "kb/set harbour/summary = Mine.",
        "lorekeeper/in harbour = Write of the fog.",
        f"kb/approve {draft.number}",
        "library/publish harbour",
    ):
        told = one_line(stage.builds(line))
        assert "comes from the library, where the game Saltholm published" in told, line
        assert "library/own harbour" in told, line
    assert everything() == before


def test_what_is_said_here_of_a_used_base_is_where_it_counts_and_who_may_read_it(stage, library):
    published_base(FERRY)
    stage.builds("library/use harbour")
    assert "Bound to" in stage.builds("kb/bind harbour = npc:Oren")
    assert "restricted from now on" in stage.builds("kb/restricted harbour = on")
    stage.builds("kb/set harbour/locks = restricted:tag(outsider)")
    assert knowledge_bases.get_base("harbour").locks == "restricted:tag(outsider)"


def test_an_own_base_is_edited_again(stage, library):
    published_base(FERRY)
    stage.builds("library/use harbour")
    assert "this game's own from now on" in one_line(stage.builds("library/own harbour"))
    stage.builds("kb/rename harbour/The Ferry = Boat")
    assert page("Boat").body == "It crosses at dusk."
    assert "does not come from the library" in one_line(stage.builds("library/own harbour"))


def test_a_card_is_used_once_it_is_approved_and_not_edited(stage, library):
    published_card("He rows.")
    told = one_line(stage.builds("library/use card:Oren"))
    assert "It waits: card/report Oren, then card/approve Oren" in told
    assert cards.card_or_none("Oren") is None
    assert [one.grants for one in log.waiting("Oren")] == [NO_GRANTS]
    stage.builds("card/report Oren", "card/approve Oren")
    assert "comes from the library" in stage.builds("card Oren")
    told = one_line(stage.builds("card/set Oren/description = Mine."))
    assert "library/own card:Oren makes card 'Oren' this game's own" in told
    stage.builds("library/own card:Oren", "card/set Oren/description = Mine.")
    assert "Mine." in cards.get_card("Oren").source


def test_a_card_is_published_as_it_is_in_force(stage, library):
    stage.builds("card/create Mira = Mira sells herbs.")
    assert one_line(stage.builds("library/publish card:mira")).startswith("Published card:Mira.")
    assert [name for name, _ in listed()] == ["card:Mira"]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("library harbour", "To take it: library/use harbour"),
        ("library = x", "takes no '='"),
        ("library/use", "Usage: library/use <base> | card:<name>"),
        ("library/use moor", "The library has no moor; it has harbour"),
        ("library/use card:Nobody", "has no card:Nobody"),
        ("library/use harbour = heath", "takes no '='"),
        ("library/publish", "Usage: library/publish"),
        ("library/publish moor", "There is no knowledge base 'moor'"),
        ("library/publish card:Nobody", "There is no card 'Nobody'"),
        ("library/own harbour", "There is no knowledge base 'harbour'"),
        ("library/own card:Nobody", "does not come from the library"),
        ("library/drop harbour", "/drop is no switch of this command"),
    ],
)
def test_bad_input_is_one_line_and_changes_nothing(stage, library, line, told):
    published_base(FERRY)
    before = (everything(), copies(), listed())
    assert told in one_line(stage.builds(line))
    assert (everything(), copies(), listed()) == before


def test_a_task_of_the_lorekeeper_is_not_meant_for_what_is_edited_elsewhere(stage, library):
    published_base(FERRY)
    stage.builds("library/use harbour")
    told = one_line(stage.builds("lorekeeper Write of the fog."))
    assert told.startswith("Say for which knowledge base")


def test_a_base_of_the_games_own_is_kept(stage, library):
    published_base(FERRY)
    make_base()
    before = everything()
    assert "of its own; remove it first" in one_line(stage.builds("library/use harbour"))
    assert everything() == before


def test_a_base_that_a_lock_hides_is_not_listed(stage, library):
    published_base(FERRY)
    published_base(FERRY, key="vault", locks="view:perm(Admin)")
    stage.builds("library/use harbour")
    with reading():
        found = {one.name: one for one in entries()}
    take_base(found["vault"], by=trusted("Mara"))
    told = stage.builds("library")
    assert "harbour" in told
    assert "vault" not in told
    assert "no knowledge base 'vault'" in one_line(stage.builds("library/own vault"))


def test_a_base_that_is_removed_is_a_copy_no_more(stage, library):
    published_base(FERRY)
    stage.builds("library/use harbour", "kb/remove harbour", "yes")
    assert (everything(), copies()) == ([], ())


def test_this_game_is_known_by_its_random_name(stage, library):
    make_base()
    stage.builds("library/publish harbour")
    with reading():
        (found,) = entries()
    assert (found.game, found.published_by) == (game_id(), "Mara")
