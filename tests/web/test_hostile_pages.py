"""Every hostile text of the corpus on every page: as lines, replies, cards, books and drafts."""

import json

import pytest
from django.test import override_settings

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.history.records import make_storable
from evennia_ai.engine.knowledge.pages.page import BaseInfo, Page, PageDraft, page_name
from evennia_ai.npc.mind.kept import keep_turn
from evennia_ai.store.authored import cards, components, lorebooks, notes
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.history import turns
from evennia_ai.store.knowledge import knowledge_bases, page_drafts, pages
from tests.npc.hostile.corpus import corpus
from tests.npc.scripted_games import CARD
from tests.web.conftest import HOSTILE, acting

MOST = 3000
TEXTS = [make_storable(case.text)[:MOST] for case in corpus()]


def together():
    """Yield the texts in groups of four lines, long ones alone, because each turn takes time."""
    short = [text for text in TEXTS if len(text) <= 100 and len(text.splitlines()) == 1]
    fours = ("\n".join(short[at : at + 4]) for at in range(0, len(short), 4))
    return [*fours, *(text for text in TEXTS if text not in short)]


def a_book():
    return {
        "entries": [
            {
                "id": number,
                "name": text[:200].strip(),
                "keys": [text[:100].strip() or "x"],
                "content": text,
                "enabled": True,
                "insertion_order": 1,
                "extensions": {},
                "use_regex": False,
                "constant": number % 8 == 0,
            }
            for number, text in enumerate(TEXTS)
        ]
    }


@pytest.fixture
def hostile(played, tmp_path):
    with override_settings(EVENNIA_AI_KEPT_FOLDER=str(tmp_path)):
        yield _addresses(played)


def _addresses(played):
    """Play a game full of these texts. Return the addresses of its pages."""
    ref = played.npc.ai.ref
    lorebooks.save_book("hostile", json.dumps(a_book()), by=trusted(TEXTS[0][:80]))
    data = {**CARD, "alternate_greetings": TEXTS, "tags": [t[:60] for t in TEXTS[:40]]}
    data |= {"creator_notes": "\n".join(TEXTS[:20]), "character_version": TEXTS[3][:100]}
    card = {"spec": "chara_card_v3", "spec_version": "3.0", "data": data}
    cards.save_card("hostile", json.dumps(card), by=trusted("builder"))
    knowledge_bases.save_base(BaseInfo(key="hostile", name="Hostile"), by=trusted("builder"))
    drafts = []
    for number, text in enumerate(TEXTS[:60]):
        page = Page(name=page_name(f"Page {number}"), body=text)
        made = PageDraft(page=page, was="", by=trusted("builder"), note=text[:200])
        pages.save_page("hostile", made)
        now = pages.page_or_none("hostile", page.name)
        wanted = PageDraft(
            page=Page(name=page.name, body=f"New. {text}"), was=now.revision, by=trusted(text[:50])
        )
        if number < 20:
            drafts.append(
                page_drafts.add_draft("hostile", wanted, task=text, context_meta={}).number
            )
    notes.set_note(ref, "main", content=TEXTS[1][:500], by=trusted("builder"))
    first = turns.last_turn(ref).number
    for text in together():
        played.talks_with(text)
        played.says(played.anna, f"Oren, {text}")
    cases = [
        keep_turn(played.anna, turns.get_turn(ref, number), about=TEXTS[number][:200])[0].stem
        for number in range(first + 1, first + 9)
    ]
    components.update("weather", content=HOSTILE, by=trusted("builder"))
    forget_everything()
    last = turns.last_turn(ref).number
    npc = f"/ai/npc/{ref}/"
    return [
        *("/ai/kept/", *(f"/ai/kept/{name}/" for name in cases)),
        *("/ai/", "/ai/?find=<script>", "/ai/lore/", "/ai/cards/", "/ai/kb/", "/ai/live/"),
        *(npc, f"{npc}character/", f"{npc}notes/", f"{npc}settings/"),
        *(f"{npc}turns/", f"{npc}turns/?page=2", f"{npc}next/?say=<script>alert(1)</script>"),
        *(f"{npc}turn/{number}/" for number in range(first + 1, last + 1)),
        *(f"{npc}diff/{number}/{number + 5}/" for number in range(first + 1, last - 4, 10)),
        *(f"/ai/lore/hostile/?page={number}" for number in (1, 2, 3)),
        *(f"/ai/lore/hostile/entry/{number}/" for number in range(0, len(TEXTS), 3)),
        *("/ai/lore/hostile/lints/", "/ai/lore/hostile/turns/?npc=oren"),
        *("/ai/lore/hostile/revision/1/", "/ai/cards/hostile/1/", "/ai/cards/hostile/edit/"),
        f"/ai/cards/hostile/1/preview/?npc={ref}&grant=fields&grant=positions",
        *("/ai/kb/hostile/", "/ai/kb/hostile/?words=alert script"),
        *(f"/ai/kb/hostile/page/Page {number}/?revision=1" for number in range(60)),
        *(f"/ai/drafts/{number}/" for number in drafts),
    ]


@pytest.mark.long
def test_no_hostile_text_acts_on_any_page(hostile, browser):
    client = browser("Admin")
    wrong = {}
    for address in hostile:
        answer = client.get(address)
        text = answer.content.decode()
        if answer.status_code != 200 or acting(text):
            wrong[address] = (answer.status_code, acting(text)[:3], text[-300:])
    assert wrong == {}
    assert len(hostile) > 180


@pytest.mark.long
def test_searched_words_are_shown_as_text(played, browser):
    client = browser("Builder")
    for text in together():
        for address in ("/ai/", "/ai/lore/harbour/", "/ai/kb/library/"):
            answer = client.get(address, {"find": text, "words": text})
            assert (answer.status_code, acting(answer.content.decode())) == (200, []), text


def test_helper_of_tests_finds_active_content_in_a_page():
    assert acting('<p onclick="x()">') and acting("<script>1</script>") and acting("a\u202eb")
    assert acting('<a href="https://elsewhere">') and acting('<img src="x">')
    assert acting('<p>fine <a href="/ai/">here</a></p>') == []
