"""Pages of an NPC with branches, each of which has its own turns."""

import re

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.prompt.components import of_npc
from evennia_ai.npc.turn.rehearsal import rehearse
from evennia_ai.store.authored import lorebooks, notes
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.erasing import erase_branches
from evennia_ai.store.history import branches, turns


@pytest.fixture
def branched(played):
    """Let Ben open a branch from turn 4 and say two lines in it. Return the stage and its
    reference.
    """
    played.talks_with(lambda request: "Aye.")
    turn = turns.get_turn(played.npc.ai.ref, 4)
    branch = branches.open_branch(turn, by_ref=str(played.ben.id), by=trusted("Ben"))
    for line in ("And if I had paid, Oren?", "And the lamp?"):
        rehearse(played.npc, branch, line, typist=played.ben)
        played.passes()
    played.branch = branch.conversation.npc_ref
    assert turns.last_turn(played.branch).number == 2
    return played


def pages_of(branch):
    at = f"/ai/npc/{branch}/"
    return (
        *(at, f"{at}turn/1/", f"{at}turn/2/"),
        *(f"{at}diff/1/2/", f"{at}against/?with=component:weather.depth=4"),
        f"{at}turn/2/?with=component:weather.depth=4",
    )


@pytest.mark.long
def test_every_page_answers_after_a_branch_had_turns(branched, browser):
    client = browser("Builder")
    everywhere = ("/ai/", "/ai/live/", "/ai/lore/", "/ai/lore/harbour/", "/ai/lore/harbour/turns/")
    for address in (*everywhere, "/ai/?show=failed", "/ai/last/", *pages_of(branched.branch)):
        for form in ("", "json"):
            joined = "&" if "?" in address else "?"
            answer = client.get(f"{address}{joined}format={form}")
            assert answer.status_code == 200, (address, answer.content.decode()[:300])


def test_watch_links_to_the_turns_of_a_branch_and_names_its_builder(branched, browser):
    client = browser("Builder")
    text = client.get("/ai/live/").content.decode()
    assert f'href="/ai/npc/{branched.branch}/turn/2/"' in text
    assert "Oren, branch of Ben" in text
    for address in set(re.findall(r'href="(/ai/npc/[^"]+)"', text)):
        assert client.get(address).status_code == 200, address


def test_branch_page_shows_its_own_turns_and_the_settings_of_its_npc(branched, browser):
    npc = branched.npc.ai.ref
    text = browser("Builder").get(f"/ai/npc/{branched.branch}/").content.decode()
    assert f'href="/ai/npc/{branched.branch}/turn/1/"' in text
    assert f'href="/ai/npc/{npc}/memory/"' in text and f'href="/ai/npc/{npc}/settings/"' in text
    assert "pause/" not in text


def test_book_page_shows_the_npc_itself_when_its_newest_turn_is_in_a_branch(branched, browser):
    lorebooks.LOREBOOKS.unassign(
        lorebooks.LOREBOOKS.assigned_to("harbour")[0], "harbour", by=trusted("builder")
    )
    told = browser("Builder").get("/ai/lore/harbour/?format=json").json()
    assert (told["newest"]["npc"], told["newest"]["ref"]) == ("Oren", branched.npc.ai.ref)


def test_trial_on_a_turn_of_a_branch_is_saved_for_its_npc(branched, browser):
    client, address = browser("Builder"), f"/ai/npc/{branched.branch}/turn/2/"
    page = client.get(f"{address}?with=note:gulls.order=20").content.decode()
    form = {name: re.findall(rf'name="{name}" value="([^"]*)"', page) for name in ("with", "seen")}
    assert client.post(address, form).status_code == 302
    assert notes.NOTES.current("gulls", of_npc(branched.npc.ai.ref)).order == 20
    assert notes.NOTES.current("gulls", of_npc(branched.branch)) is None


@pytest.mark.parametrize("ref", ["39~", "~7", "999999~7", "{npc}~999999", "{npc}~{ben}~1", "a~b"])
def test_reference_that_names_no_branch_has_no_page(branched, browser, ref):
    ref = ref.format(npc=branched.npc.ai.ref, ben=branched.ben.id)
    client = browser("Builder")
    for rest in ("", "turn/1/", "diff/1/1/", "next/", "memory/", "settings/"):
        assert client.get(f"/ai/npc/{ref}/{rest}").status_code == 404, rest


@pytest.mark.parametrize("rest", ["memory/", "settings/", "next/"])
def test_branch_has_no_page_of_what_belongs_to_its_npc(branched, browser, rest):
    assert browser("Builder").get(f"/ai/npc/{branched.branch}/{rest}").status_code == 404


@pytest.mark.long
def test_every_linked_page_answers_after_the_branch_was_closed(branched, browser):
    erase_branches(branched.npc.ai.ref, str(branched.ben.id), by=trusted("Ben"))
    forget_everything()
    client = browser("Builder")
    known, waiting = {"/ai/live/"}, ["/ai/live/"]
    while waiting:
        address = waiting.pop()
        answer = client.get(address)
        assert answer.status_code == 200, (address, answer.content.decode()[-600:])
        found = re.findall(r'href="(/ai/npc/[^"]+)"', answer.content.decode())
        if "~" in address or address == "/ai/live/":
            waiting += set(found) - known
            known |= set(found)
    assert f"/ai/npc/{branched.branch}/turn/2/" in known


def test_erased_turn_shows_what_is_left_of_it_and_links_to_no_comparison(branched, browser):
    erase_branches(branched.npc.ai.ref, str(branched.ben.id), by=trusted("Ben"))
    forget_everything()
    client = browser("Builder")
    at = f"/ai/npc/{branched.branch}/turn/2/"
    page = client.get(at).content.decode()
    assert "Its prompt cannot be shown: the words of the turn were erased on request." in page
    assert "/diff/" not in page and f"/ai/npc/{branched.branch}/turn/1/" in page
    told = client.get(f"{at}?format=json").json()
    assert told["unreadable"] and told["sent_tokens"] > 0 and "messages" not in told
