"""Lists on pages: objects are shown by name, and names are sorted as readers expect."""

import json

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.prompt.components import GAME, Scope
from evennia_ai.store.authored import cards, lorebooks
from evennia_ai.store.knowledge import knowledge_bases
from tests.npc.scripted_games import CARD


def test_lists_of_books_and_bases_name_their_npcs_and_rooms(played, browser):
    npc, room = (
        Scope(kind="npc", ref=played.npc.ai.ref),
        Scope(kind="room", ref=str(played.room.id)),
    )
    lorebooks.save_book("inn", json.dumps({"entries": []}), by=trusted("builder"))
    for scope in (
        npc,
        room,
        GAME,
        Scope(kind="faction", ref="ring"),
        Scope(kind="room", ref="99999"),
    ):
        lorebooks.LOREBOOKS.assign("inn", scope, by=trusted("builder"))
    client = browser("Builder")
    books = client.get("/ai/lore/?format=json").json()["books"]
    [attached] = [one["attached"] for one in books if one["name"] == "inn"]
    names = {"npc Oren", "room Ferry Landing", "game", "faction ring", "room #99999"}
    assert set(attached) == names
    knowledge_bases.assign_base("library", room, by=trusted("builder"))
    assert "room Ferry Landing" in client.get("/ai/kb/library/?format=json").json()["assigned_to"]


def test_cards_are_sorted_without_regard_to_case(played, browser):
    for name in ("zoe", "Anna", "bela"):
        card = {"spec": "chara_card_v3", "spec_version": "3.0", "data": {**CARD, "name": name}}
        cards.save_card(name, json.dumps(card), by=trusted("builder"))
    told = browser("Builder").get("/ai/cards/?format=json").json()["cards"]
    assert [one["name"] for one in told] == ["Anna", "bela", "oren", "zoe"]
