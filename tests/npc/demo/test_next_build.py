"""Test what the demo builds, and how later builds treat the edits of builders."""

import re
from dataclasses import replace
from typing import Any

import pytest
from django.conf import settings
from evennia.accounts.models import AccountDB
from evennia.objects.models import ObjectDB
from evennia.server.models import ServerConfig

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import UnknownComponentError
from evennia_ai.engine.knowledge.meta_prompt import TOOL
from evennia_ai.engine.knowledge.pages.page import PageDraft, page_name
from evennia_ai.engine.prompt.components import GAME, Scope
from evennia_ai.npc.npc_settings import settings_of
from evennia_ai.store.authored import cards, components, lorebooks, notes
from evennia_ai.store.knowledge import knowledge_bases, pages
from server.conf.at_server_startstop import things_to_try
from tests.npc.demo.finding import tagged
from world import build_demo
from world.demo_content import DEMO, DemoContent, read_content

pytestmark = pytest.mark.usefixtures("demo")


@pytest.fixture
def content() -> DemoContent:
    return read_content()


def counts() -> dict[str, int]:
    return {
        "objects": ObjectDB.objects.count(),
        "accounts": AccountDB.objects.count(),
        "components": len(components.registry().components),
        "revisions": sum(
            len(components.COMPONENTS.revisions(c.key)) for c in read_content().components
        ),
        "cards": len(cards.CARDS.list_keys()),
        "books": len(lorebooks.LOREBOOKS.list_keys()),
        "pages": sum(base.pages for base in knowledge_bases.list_bases()),
    }


def test_demo_build_makes_every_room_exit_npc_and_object_of_its_files(content: DemoContent) -> None:
    for room in content.rooms:
        made = tagged(f"room:{room.id}")
        assert (made.key, made.db.desc) == (room.key, room.desc)
        ways = {way.key: way.destination for way in made.exits}
        assert ways == {way.key: tagged(f"room:{way.to}") for way in room.exits}
        assert made.tags.get(category="zone") == build_demo.ZONE
    for one in (*content.npcs, *content.objects):
        here = [obj for obj in tagged(f"room:{one.room}").contents if obj.key == one.key]
        assert [obj.db.desc for obj in here] == [one.desc]
        assert set(one.aliases) <= set(here[0].aliases.all())


def test_scenery_of_the_demo_cannot_be_taken(content: DemoContent) -> None:
    anna = AccountDB.objects.get_account_from_name("anna").characters.all()[0]
    for thing in content.objects:
        if thing.kind == "basket":
            continue  # it stays, and gives a letter
        there = tagged(f"room:{thing.room}").contents
        (made,) = (obj for obj in there if obj.key == thing.key)
        assert not made.access(anna, "get")


def test_get_lock_is_added_to_an_older_demo_object_unless_customised() -> None:
    seal, post = (obj for obj in tagged("room:bell_steps").contents if not obj.destination)
    built = [name for name in ServerConfig.objects.conf(build_demo.BUILT) if "stays:" not in name]
    ServerConfig.objects.conf(build_demo.BUILT, built)
    seal.locks.add("get:all()")
    post.locks.add("get:perm(Builder)")
    assert f"object {seal.key} stays where it is" in build_demo.build()
    assert (seal.locks.get("get"), post.locks.get("get")) == ("get:false()", "get:perm(Builder)")


def test_demo_shows_three_commands_to_a_new_character() -> None:
    anna = AccountDB.objects.get_account_from_name("anna").characters.all()[0]
    anna.location = tagged("room:landing")
    told = list(things_to_try(anna))
    assert [line.split("  ")[1] for line in told] == [
        "talk oren hello",
        "look tide board",
        "evening",
    ]
    assert max(map(len, told)) < 80
    anna.location = None
    assert list(things_to_try(anna)) == []


def test_demo_npc_has_its_card_note_and_fallback_line(
    content: DemoContent,
) -> None:
    for person, note in zip(content.npcs, content.notes, strict=True):
        npc = tagged(f"npc:{person.id}")
        card = cards.card_of(str(npc.id))
        assert npc.is_typeclass(build_demo.NPC_TYPECLASS, exact=True)
        assert card is not None
        assert card.source == (DEMO / person.card).read_text(encoding="utf-8")
        assert npc.fallback_line == person.fallback_line
        stored = notes.notes_for(str(npc.id))
        assert [(n.content, n.depth, n.role, n.every) for n in stored] == [
            (note.content, note.depth, note.role, note.every)
        ]


def test_demo_components_and_lorebooks_have_their_scopes(content: DemoContent) -> None:
    for component in content.components:
        stored = components.registry().get(component.key)
        assert (stored.id, stored.content) == (component.id, component.content)
        assert (stored.priority, stored.scope) == (component.priority, GAME)
    assert [book.name for book in lorebooks.books_for([GAME])] == ["harbour"]
    zone = Scope(kind="zone", ref=build_demo.ZONE)
    assert [book.name for book in lorebooks.books_for([zone])] == [
        *("hearsay", "people", "evening"),
    ]
    faction = Scope(kind="faction", ref="salt")
    assert [book.name for book in lorebooks.books_for([faction])] == ["salt"]


def test_demo_knowledge_bases_are_bound_to_their_npcs(content: DemoContent) -> None:
    for wiki in content.wikis:
        base = knowledge_bases.get_base(wiki.key)
        assert base.pages == len(list((DEMO / "knowledge" / wiki.key).rglob("*.md")))
        assert base.restricted == (wiki.key == "secret")
        npcs = {Scope(kind="npc", ref=str(tagged(f"npc:{npc}").id)) for npc in wiki.npcs}
        assert set(knowledge_bases.assigned_to(wiki.key)) == npcs


def test_npc_with_a_demo_knowledge_base_has_the_search_tool(content: DemoContent) -> None:
    for npc in {npc for wiki in content.wikis for npc in wiki.npcs}:
        assert TOOL in settings_of(tagged(f"npc:{npc}")).tools


def test_unedited_pages_are_updated_by_a_new_demo_edition() -> None:
    edited, removed, older = (page_name(one) for one in ("Saltholm", "Grey Salt", "The Slee"))
    for name, by in ((edited, "Tamsin"), (older, build_demo.BY)):
        page = pages.page_or_none("harbour", name)
        assert page is not None
        text = replace(page, body=f"As {by} has it.")
        pages.save_page("harbour", PageDraft(page=text, was=page.revision, by=trusted(by)))
    stub = pages.page_or_none("harbour", removed)
    assert stub is not None
    pages.remove_page("harbour", removed, was=stub.revision, by=trusted("Tamsin"))
    built = ServerConfig.objects.conf(build_demo.BUILT)
    (edition,) = (n for n in built if re.fullmatch(r"wiki:harbour:[0-9a-f]{12}", n))
    ServerConfig.objects.conf(build_demo.BUILT, [n for n in built if n != edition])

    assert build_demo.build() == ["knowledge base harbour, 1 page of a new edition"]

    told = {name: pages.page_or_none("harbour", name) for name in (edited, removed, older)}
    assert told[removed] is None
    assert [told[name].body[:8] for name in (edited, older)] == ["As Tamsi", "The Slee"]


def test_second_demo_build_makes_and_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    before = counts()
    assert build_demo.build() == []
    assert capsys.readouterr().out == ""
    assert counts() == before


def test_edits_of_builders_survive_the_next_demo_build() -> None:
    oren = tagged("npc:oren")
    landing = tagged("room:landing")
    landing.db.desc = "A new jetty, and nobody trusts it yet."
    oren.key, oren.location = "Orin", tagged("room:inn")
    components.update("mood", by=trusted("Tamsin"), content="It is raining.", injection_depth=2)
    components.update("system_prompt", by=trusted("Tamsin"), content="Speak in verse.")
    notes.set_note(str(oren.id), by=trusted("Tamsin"), content="Oren has a cold.")
    cards.save_card("oren", '{"name": "Orin"}', by=trusted("Tamsin"))
    lorebooks.save_book("harbour", '{"entries": []}', by=trusted("Tamsin"))
    before = counts()

    assert build_demo.build() == []

    assert counts() == before
    assert landing.db.desc == "A new jetty, and nobody trusts it yet."
    assert (oren.key, oren.location.key) == ("Orin", "The Dry Oar")
    mood = components.registry().get("mood")
    assert (mood.content, mood.injection_depth) == ("It is raining.", 2)
    assert components.registry().get("system_prompt").content == "Speak in verse."
    assert notes.notes_for(str(oren.id))[0].content == "Oren has a cold."
    assert cards.get_card("oren").source == '{"name": "Orin"}'
    assert lorebooks.get_book("harbour").source == '{"entries": []}'


def an_older_demo() -> None:
    """Make the game look like one with an older demo: one lorebook, with another text."""
    lorebooks.LOREBOOKS.remove("hearsay", by=build_demo.BY)
    lorebooks.save_book("harbour", '{"entries": []}', by=build_demo.BY)
    built = ServerConfig.objects.conf(build_demo.BUILT)
    older = [n for n in built if "hearsay" not in n and not n.startswith("lorebook:harbour:")]
    ServerConfig.objects.conf(build_demo.BUILT, older)


def test_unedited_lorebook_is_updated_and_new_books_are_added_by_a_new_demo_edition() -> None:
    an_older_demo()

    assert build_demo.build() == ["lorebook harbour, in a new edition", "lorebook hearsay"]

    text = (DEMO / "lorebooks/harbour.json").read_text(encoding="utf-8")
    assert lorebooks.get_book("harbour").source == text
    assert build_demo.build() == []


def test_edited_lorebook_is_kept_by_a_new_demo_edition() -> None:
    an_older_demo()
    lorebooks.save_book("harbour", '{"entries": [], "name": "ours"}', by=trusted("Tamsin"))
    assert build_demo.build() == ["lorebook hearsay"]
    assert lorebooks.get_book("harbour").source == '{"entries": [], "name": "ours"}'


def test_removed_lorebook_stays_removed_in_a_new_demo_edition() -> None:
    an_older_demo()
    lorebooks.LOREBOOKS.remove("harbour", by=trusted("Tamsin"))
    assert build_demo.build() == ["lorebook hearsay"]
    assert "harbour" not in lorebooks.LOREBOOKS.list_keys()


def test_detached_lorebook_is_updated_but_not_attached_by_a_new_demo_edition() -> None:
    an_older_demo()
    lorebooks.LOREBOOKS.unassign(GAME, "harbour", by=trusted("Tamsin"))
    assert "lorebook harbour, in a new edition" in build_demo.build()
    assert lorebooks.LOREBOOKS.assigned_to("harbour") == ()


def test_removed_demo_parts_stay_removed_after_the_next_build() -> None:
    components.COMPONENTS.remove("mood", by=trusted("Tamsin"))
    tagged("npc:brida").delete()
    notes.clear_notes(str(tagged("npc:oren").id), by=trusted("Tamsin"))
    before = counts()

    assert build_demo.build() == []

    assert counts() == before
    with pytest.raises(UnknownComponentError):
        components.registry().get("mood")
    assert notes.notes_for(str(tagged("npc:oren").id)) == ()


def test_demo_part_missing_from_the_built_list_is_made_again() -> None:
    components.COMPONENTS.remove("mood", by=trusted("Tamsin"))
    built = ServerConfig.objects.conf(build_demo.BUILT)
    ServerConfig.objects.conf(build_demo.BUILT, [n for n in built if n != "component:mood"])
    assert build_demo.build() == ["component mood"]


def test_limbo_becomes_the_ferry_landing(
    demo: Any,
) -> None:
    assert tagged("room:landing") == demo
    assert demo.key == "The Ferry Landing"


def test_characters_of_demo_accounts_arrive_at_the_landing() -> None:
    for role, character_name, permission in build_demo.ACCOUNTS:
        name, password = getattr(settings.DEMO_PASSWORDS, role)
        account = AccountDB.objects.get_account_from_name(name)
        (character,) = account.characters.all()
        assert account.check_password(password)
        assert permission.lower() in [held.lower() for held in account.permissions.all()]
        assert (character.key, character.location) == (character_name, None)
        assert character.access(account, "puppet")
        character.at_pre_puppet(account)
        assert character.location == tagged("room:landing")


def test_public_password_of_an_older_demo_is_replaced() -> None:
    ServerConfig.objects.conf(
        build_demo.BUILT,
        [
            name
            for name in ServerConfig.objects.conf(build_demo.BUILT)
            if not name.startswith("passwords:")
        ],
    )
    anna = AccountDB.objects.get_account_from_name("anna")
    anna.set_password("harbour-player-1")
    anna.save()

    assert build_demo.build() == ["new passwords for anna"]
    assert anna.check_password(settings.DEMO_PASSWORDS.player[1])


def test_demo_account_gets_the_new_password_of_the_logins_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    renewed = replace(settings.DEMO_PASSWORDS, player=("anna", "another-one"), edition="2")
    monkeypatch.setattr(settings, "DEMO_PASSWORDS", renewed)

    assert build_demo.build() == ["new passwords for anna"]
    assert AccountDB.objects.get_account_from_name("anna").check_password("another-one")


def test_changed_password_of_a_demo_account_is_kept() -> None:
    anna = AccountDB.objects.get_account_from_name("anna")
    anna.set_password("of-annas-own")
    anna.save()

    assert build_demo.build() == []
    assert anna.check_password("of-annas-own")


def test_demo_builder_can_edit_and_teleport_and_demo_player_cannot() -> None:
    builder, player = (
        AccountDB.objects.get_account_from_name(name).characters.all()[0]
        for name, _ in (settings.DEMO_PASSWORDS.builder, settings.DEMO_PASSWORDS.player)
    )
    landing = tagged("room:landing")
    for one in (landing, *landing.contents, tagged("room:inn"), tagged("npc:oren")):
        assert (one.access(builder, "edit"), one.access(player, "edit")) == (True, False), one.key
    assert builder.access(builder, "teleport")
    assert not player.access(player, "teleport")
