"""Pages after a permission was lost, pages with locked lore, and the log of read whispers."""

import re
from datetime import UTC, datetime

import pytest
from django.contrib.auth import get_user
from evennia.server.models import ServerConfig

from evennia_ai.engine.actors import trusted
from evennia_ai.store.authored import components, lorebooks
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.history import turns
from evennia_ai.store.model_calls import halts
from tests.web.test_pages import saved_form, turn_page

ADMIN = trusted("Ada")


@pytest.fixture(autouse=True)
def _no_bans(db):
    yield
    ServerConfig.objects.conf("server_bans", delete=True)


def ban(name="", address=""):
    """Ban an account as Evennia's command `ban` does."""
    found = re.compile(address) if address else ""
    now = datetime.now(tz=UTC).isoformat()
    ServerConfig.objects.conf("server_bans", [(name, address, found, now, "rude")])


def account_of(client):
    return get_user(client)


LOSSES = {
    "demotion": lambda client: account_of(client).permissions.remove("Builder"),
    "ban by name": lambda client: ban(name=account_of(client).username.lower()),
    "ban by address": lambda client: ban(address=r"127\.0\.0\.[0-9]+"),
    "switched off": lambda client: switch_off(account_of(client)),
}


def switch_off(account):
    account.is_active = False
    account.save()


@pytest.mark.long
@pytest.mark.parametrize("loss", LOSSES)
def test_page_is_not_found_and_writes_nothing_after_a_right_is_lost(played, browser, loss):
    client, ref = browser("Builder"), played.npc.ai.ref
    address = f"{turn_page(played, 3)}?with=component:weather.depth=4"
    trial = saved_form(client, address)
    book = {"entry": "2", "do": "off", "seen": lorebooks.get_book("harbour").revision}
    LOSSES[loss](client)
    forms = {
        turn_page(played, 3): trial,
        "/ai/lore/harbour/": book,
        "/ai/lore/harbour/revision/1/": {"seen": book["seen"]},
        f"/ai/npc/{ref}/pause/": {"do": "pause"},
        "/ai/live/stop/": {"do": "stop"},
        "/ai/cards/new/": {"name": "Zed", "description": "A spy."},
    }
    answers = {one: client.post(one, form).status_code for one, form in forms.items()}
    asked = [client.get(one).status_code for one in ("/ai/", turn_page(played))]
    forget_everything()
    assert set(answers.values()) == {404}, answers
    assert asked == [302 if loss == "switched off" else 404] * 2  # to the login page
    assert lorebooks.get_book("harbour").revision == book["seen"]
    assert (components.registry().get("weather").injection_depth, dict(halts())) == (2, {})


LOCKS = {
    "book": lambda: lorebooks.set_book_locks("harbour", "view:perm(Admin)", by=ADMIN),
    "entry": lambda: lorebooks.set_entry_locks("harbour", "2", "view:perm(Admin)", by=ADMIN),
}


@pytest.mark.parametrize("lock", LOCKS)
def test_trial_of_lore_is_not_saved_after_its_view_lock_is_set(played, browser, lock):
    client = browser("Builder")
    address = f"{turn_page(played, 3)}?with=lore:harbour%232.depth=1"
    form = saved_form(client, address)
    assert form["seen"]
    LOCKS[lock]()
    revision = lorebooks.get_book("harbour").revision
    assert "seen" not in saved_form(client, address)
    for sent in (form, {**form, "with": ["lore:harbour#2.off=yes"]}):
        assert client.post(turn_page(played, 3), sent).status_code >= 400
    assert lorebooks.get_book("harbour").revision == revision


@pytest.mark.parametrize("lock", LOCKS)
def test_book_is_not_reverted_when_a_view_lock_hides_part_of_it(played, browser, lock):
    lorebooks.save_book("harbour", '{"entries": []}', by=ADMIN)
    LOCKS[lock]()
    seen = lorebooks.get_book("harbour").revision
    answer = browser("Builder").post("/ai/lore/harbour/revision/1/", {"seen": str(seen)})
    assert answer.status_code in (403, 404)
    assert lorebooks.get_book("harbour").revision == seen


def test_trial_without_the_revision_it_showed_is_not_saved(played, browser):
    form = saved_form(browser("Builder"), f"{turn_page(played)}?with=component:weather.depth=4")
    sent = {"with": form["with"]}
    answer = browser("Admin").post(turn_page(played), sent)
    assert (answer.status_code, b"open the page again" in answer.content) == (400, True)
    assert components.registry().get("weather").injection_depth == 2


@pytest.mark.parametrize(
    ("page", "rank", "is_shown", "is_logged"),
    [
        ("turn/{n}/", "Admin", True, True),
        # the prompt of a line in the room contains no whisper
        ("next/", "Admin", False, False),
        ("next/?say=Hello", "Admin", False, False),
        ("diff/{before}/{n}/", "Admin", False, True),
        ("turn/{n}/", "Builder", False, False),
        ("next/", "Builder", False, False),
    ],
)
def test_reading_of_a_whisper_is_in_the_security_log(
    played, browser, logged, page, rank, is_shown, is_logged
):
    played.whispers(played.anna, "The gold is under the blue boat.")
    played.whispers(played.anna, "Is that clear?")
    ref = played.npc.ai.ref
    address = f"/ai/npc/{ref}/" + page.format(
        n=turns.last_turn(ref).number, before=turns.last_turn(ref).number - 1
    )
    told = browser(rank).get(address).content.decode()
    read = [line for line in logged if f"a-{rank} reads conversation" in str(line)]
    assert ("under the blue boat" in told, bool(read)) == (is_shown, is_logged)
