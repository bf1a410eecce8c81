"""The page of a character, and the page on which a new one is written and brought to life."""

import html
import json
import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from evennia.objects.models import ObjectDB

from evennia_ai.commands.ai.settings import ROWS
from evennia_ai.engine.actors import trusted
from evennia_ai.engine.prompt.components import of_npc
from evennia_ai.formats.cards.loading import load_card
from evennia_ai.formats.cards.portrait import draw_portrait
from evennia_ai.npc.mind.npc_list import npcs_called
from evennia_ai.npc.views.parse_cache import parsed_card
from evennia_ai.store.authored import cards, lorebooks, notes
from evennia_ai.store.history import branches, record_rows, turns
from evennia_ai.store.history.conversations import conversations_of
from evennia_ai.web.site.character import starters
from tests.web.conftest import HOSTILE, acting
from tests.web.test_pages import as_json

MIRA = {
    "name": "Mira",
    "description": "{{char}} sells herbs on the quay.",
    "personality": "Dry and kind.",
    "first_mes": "Feverfew, if you must.",
}


@pytest.fixture
def builder(played, browser):
    """Return the browser of a builder who plays Ben, and the address of Oren's page."""
    client = browser("Builder")
    account = client.session["_auth_user_id"]
    ObjectDB.objects.filter(id=played.ben.id).update(db_account_id=account)
    played.ben.refresh_from_db()
    return client


def page_of(stage):
    return f"/ai/npc/{stage.npc.ai.ref}/"


def text_of(answer):
    return answer.content.decode()


def lines_of(client, address):
    """Return the speaker and the words of each line that the page shows."""
    chat = as_json(client, address)["chat"]
    return [(line["speaker"], line["text"]) for line in chat["lines"]]


def number_of(client, address, words):
    """Return the record of the newest line with these words."""
    lines = as_json(client, address)["chat"]["lines"]
    return next(line for line in reversed(lines) if line["text"] == words)


def test_new_character_lives_in_the_chosen_room_and_greets(played, builder):
    played.talks_with(lambda request: "Aye.")
    sent = {**MIRA, "room": str(played.room.id), "do": "live"}
    answer = builder.post("/ai/cards/new/", sent)
    (ref,) = npcs_called("Mira")
    assert answer["Location"] == f"/ai/npc/{ref}/"
    npc, card = ObjectDB.objects.get(id=ref), parsed_card(cards.get_card("Mira"))
    assert (npc.location, card.personality) == (played.room, "Dry and kind.")
    assert cards.assignment_of(ref).card == "Mira" and cards.assignment_of(ref).greeting == 0
    assert npc.locks.get("delete") == f"delete:id({played.ben.id}) or perm(Admin)"
    assert "Nothing was said yet" in text_of(builder.get(f"/ai/npc/{ref}/"))
    visit = builder.post(f"/ai/npc/{ref}/", {"do": "visit", "say": "Good day, Mira."})
    played.passes()
    assert lines_of(builder, visit["Location"]) == [
        ("Mira", "Feverfew, if you must."),
        (played.ben.key, "Good day, Mira."),
        ("Mira", "Aye."),
    ]
    assert conversations_of(ref) == ()


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"name": " "}, "name"),
        ({"name": "Oren"}, "An NPC called Oren exists already"),
        ({"room": "999999"}, "room with the database number"),
        ({"room": "{npc}"}, "room with the database number"),
        ({"description": "{% for %}"}, ""),
    ],
)
def test_new_character_is_refused_with_what_was_typed(played, builder, changed, problem):
    sent = {**MIRA, "room": str(played.room.id), "do": "live", **changed}
    sent["room"] = sent["room"].format(npc=played.npc.id)
    answer = builder.post("/ai/cards/new/", sent)
    if not problem:  # a card may hold any text: it is data
        assert answer.status_code == 302
        return
    page = text_of(answer)
    assert answer.status_code == 400 and problem in page
    assert "sells herbs on the quay." in page and "Feverfew, if you must." in page
    assert cards.card_or_none("Mira") is None and acting(page) == []


def test_namesake_is_created_when_the_builder_agrees(played, builder):
    sent = {**MIRA, "name": "Oren 2", "room": str(played.room.id), "do": "live"}
    played.npc.key = "Oren 2"
    assert 'name="twin"' in text_of(builder.post("/ai/cards/new/", sent))
    assert builder.post("/ai/cards/new/", {**sent, "twin": "yes"}).status_code == 302
    assert len(npcs_called("Oren 2")) == 2


def test_room_whose_lock_forbids_it_gets_no_character(played, builder):
    played.room.locks.add("teleport_here:false()")
    answer = builder.post("/ai/cards/new/", {**MIRA, "room": str(played.room.id), "do": "live"})
    assert answer.status_code == 403 and npcs_called("Mira") == ()


@pytest.mark.parametrize("like", ["innkeeper", "guard", "merchant", "gossip", "scholar"])
def test_form_begins_with_the_texts_of_a_starter(played, builder, like):
    page = text_of(builder.get(f"/ai/cards/new/?like={like}"))
    texts = starters()[like]
    assert all(html.escape(texts[name]) in page for name in ("description", "personality"))
    assert set(texts) == {"title", "description", "personality", "first_mes"}


def test_card_without_a_character_is_brought_to_life_on_its_page(played, builder):
    builder.post("/ai/cards/new/", {**MIRA, "do": "write"})
    here = "/ai/cards/Mira/edit/"
    assert npcs_called("Mira") == ()
    builder.post(here, {"do": "live", "npc_name": "Old Mira", "room": str(played.room.id)})
    (ref,) = npcs_called("Old Mira")
    again = builder.post(here, {"do": "live", "npc_name": "Old Mira", "room": played.room.id})
    assert again.status_code == 400 and 'name="twin"' in text_of(again)
    assert cards.players_of("Mira") == (ref,)


def test_page_shows_the_conversation_with_speech_and_poses(played, builder):
    played.talks_with(lambda request: '*He looks up.* "The lamp is lit."')
    played.says(played.anna, "Oren, is the lamp lit?")
    page = text_of(builder.get(page_of(played)))
    assert "<em>looks up.</em>" in page and "The lamp is lit." in page
    assert "with Anna, Ben" in page and acting(page) == []
    newest = as_json(builder, page_of(played))["chat"]["lines"][-1]
    assert (newest["turn"], newest["undo"]) == (turns.last_turn(played.npc.ai.ref).number, 1)
    # Every answer can be explained, but not the greeting; only the newest one can be given again.
    assert page.count('value="retry"') == 1
    assert page.count(">Why?<") == page.count('class="line said own"') - 1


def test_lines_of_the_character_say_who_was_present_when_that_changes(played, builder):
    played.talks_with("Aye.")
    played.says(played.anna, "Oren, alone?")
    ben = ObjectDB.objects.get(db_key="Ben")
    ben.move_to(None, to_none=True, quiet=True)
    played.says(played.anna, "Oren, and now?")
    lines = [one for one in as_json(builder, page_of(played))["chat"]["lines"] if one["is_own"]]
    before, after = (one["place"] for one in lines[-2:])
    assert before.startswith("Place: ") and "Anna" in before and "Ben" in before
    assert "Anna" in after and "Ben" not in after
    page = text_of(builder.get(f"{page_of(played)}?part=chat"))
    assert (page.count(f">{before}<"), page.count(f">{after}<")) == (1, 1)


def test_builder_speaks_aloud_only_next_to_the_character(played, builder):
    played.talks_with(lambda request: "Aye.")
    assert builder.post(page_of(played), {"do": "say", "say": "Oren, hello."}).status_code == 302
    played.passes()
    assert lines_of(builder, page_of(played))[-2:] == [("Ben", "Oren, hello."), ("Oren", "Aye.")]
    played.ben.location = None
    answer = builder.post(page_of(played), {"do": "say", "say": "Oren, are you there?"})
    page = text_of(answer)
    assert answer.status_code == 400 and "Ben is not with Oren" in page
    assert 'value="Oren, are you there?"' in page


@pytest.mark.parametrize(
    ("sent", "problem"),
    [
        ({"do": "say", "say": " "}, "a line has 1 to 1000 characters"),
        ({"do": "say", "say": "x" * 1001}, "a line has 1 to 1000 characters"),
        ({"do": "undo", "count": "0"}, "the field count is not a number"),
        ({"do": "undo", "count": "51", "talk": "{talk}"}, "At most 50 exchanges"),
        ({"do": "undo", "count": "1", "talk": "999"}, "conversation with number"),
        ({"do": "correct", "record": "1", "text": ""}, "there are no new words"),
        ({"do": "correct", "record": "999999", "text": "No."}, "has no record #999999"),
        ({"do": "branch", "turn": "999"}, "turn"),
        ({"do": "retire"}, "the box was not ticked"),
        ({"do": "dance"}, "must be one of"),
    ],
)
def test_wrong_form_changes_nothing_and_says_why(played, builder, sent, problem):
    before = [line["text"] for line in as_json(builder, page_of(played))["chat"]["lines"]]
    talk = str(as_json(builder, page_of(played))["talk"])
    sent = {name: text.format(talk=talk) for name, text in sent.items()}
    answer = builder.post(page_of(played), sent)
    assert answer.status_code in (400, 404) and problem in text_of(answer)
    assert [line["text"] for line in as_json(builder, page_of(played))["chat"]["lines"]] == before


def test_answer_is_retried_corrected_and_undone_on_the_page(played, builder):
    here, answers = page_of(played), iter(("No.", "Yes."))
    played.talks_with(lambda request: next(answers))
    before = lines_of(builder, here)
    played.says(played.anna, "Oren, is it late?")
    told = as_json(builder, here)
    talk = {"talk": str(told["talk"])}
    builder.post(here, {"do": "retry", **talk})
    played.passes()
    assert lines_of(builder, here)[-1] == ("Oren", "Yes.")
    assert ("Oren", "No.") not in lines_of(builder, here)
    line = number_of(builder, here, "Yes.")
    builder.post(here, {"do": "correct", "record": line["record"], "text": "It is.", **talk})
    assert lines_of(builder, here)[-1] == ("Oren", "It is.")
    assert as_json(builder, here)["chat"]["lines"][-1]["is_corrected"] is True
    builder.post(here, {"do": "undo", "count": str(line["undo"]), **talk})
    spoken = [one for one in lines_of(builder, here) if one[0]]
    assert spoken == [one for one in before if one[0]]


def test_undo_of_an_older_line_takes_back_all_later_ones(played, builder):
    here = page_of(played)
    lines = [line for line in as_json(builder, here)["chat"]["lines"] if line["undo"]]
    assert [line["undo"] for line in lines] == list(range(len(lines), 0, -1))
    talk = str(as_json(builder, here)["talk"])
    builder.post(here, {"do": "undo", "count": str(lines[-2]["undo"]), "talk": talk})
    now = [line["record"] for line in as_json(builder, here)["chat"]["lines"] if line["undo"]]
    assert now == [line["record"] for line in lines[:-2]]


def test_branch_from_a_line_is_continued_by_its_builder_only(played, builder, browser):
    played.talks_with(lambda request: "Then nothing.")
    opened = builder.post(page_of(played), {"do": "branch", "turn": "2"})["Location"]
    ref = branches.branch_ref(played.npc.ai.ref, str(played.ben.id))
    assert opened == f"/ai/npc/{ref}/"
    builder.post(opened, {"do": "say", "say": "And if I had paid?"})
    played.passes()
    assert lines_of(builder, opened)[-1] == ("Oren", "Then nothing.")
    assert ("Oren", "Then nothing.") not in lines_of(builder, page_of(played))
    other, talk = browser("Admin"), str(as_json(builder, opened)["talk"])
    assert "belongs to somebody else" in text_of(other.get(opened))
    newest = as_json(builder, opened)["chat"]["lines"][-1]["record"]
    for sent in (
        {"do": "say", "say": "Hello?"},
        {"do": "undo", "count": "1", "talk": talk},
        {"do": "correct", "record": newest, "text": "No.", "talk": talk},
    ):
        answer = other.post(opened, sent)
        assert answer.status_code == 400 and "only who opened a branch" in text_of(answer), sent


def test_answer_in_a_branch_is_corrected_and_undone(played, builder):
    played.talks_with(lambda request: "No.")
    opened = builder.post(page_of(played), {"do": "visit", "say": "Is it late?"})["Location"]
    played.passes()
    told = as_json(builder, opened)
    line, talk = told["chat"]["lines"][-1], str(told["talk"])
    builder.post(
        opened, {"do": "correct", "record": line["record"], "text": "It is.", "talk": talk}
    )
    assert lines_of(builder, opened)[-1] == ("Oren", "It is.")
    builder.post(opened, {"do": "say", "say": "And now?"})
    played.passes()
    sent = [message.content for message in played.model.requests[-1].messages]
    assert "It is." in sent and "No." not in sent
    assert lines_of(builder, opened)[-1] == ("Oren", "No.")
    builder.post(opened, {"do": "undo", "count": "2", "talk": talk})
    # The greeting is no exchange, so it stays.
    assert [one for one in lines_of(builder, opened) if one[0]] == [("Oren", "Back so soon? Hm.")]


def test_answer_in_a_branch_is_retried_by_its_builder_only(played, builder, browser):
    answers = iter(["No.", "Yes.", "Never heard."])
    played.talks_with(lambda request: next(answers))
    opened = builder.post(page_of(played), {"do": "visit", "say": "Is it late?"})["Location"]
    played.passes()
    told = as_json(builder, opened)
    assert 'value="retry"' in text_of(builder.get(opened))
    sent = {"do": "retry", "hint": "be kind", "talk": str(told["talk"])}
    builder.post(opened, sent)
    played.passes()
    assert [one for one in lines_of(builder, opened) if one[0]][-2:] == [
        ("Ben", "Is it late?"),
        ("Oren", "Yes."),
    ]
    asked = [message.content for message in played.model.requests[-1].messages]
    assert any("be kind" in one for one in asked) and "No." not in asked
    other = browser("Admin")
    assert other.post(opened, sent).status_code == 400
    played.passes()
    assert lines_of(builder, opened)[-1] == ("Oren", "Yes.")
    assert lines_of(builder, page_of(played))[-1][1] not in ("Yes.", "No.")


def test_account_without_a_character_reads_but_cannot_speak(played, browser):
    client = browser("Builder")
    page = text_of(client.get(page_of(played)))
    assert "Your account has no character in the game" in page
    for do in ("say", "visit"):
        answer = client.post(page_of(played), {"do": do, "say": "Hello, Oren."})
        assert answer.status_code == 400 and "has no character" in text_of(answer)


def test_whispers_are_read_by_admins_on_a_page_that_does_not_reload(
    played, builder, browser, logged
):
    played.talks_with(lambda request: "I tell nobody.")
    played.whispers(played.anna, "The key is under the mat.")
    (where,) = [one for one in conversations_of(played.npc.ai.ref) if one.kind == "private"]
    address = f"{page_of(played)}?talk={where.id}"
    assert "under the mat" not in text_of(builder.get(address))
    assert not any("said in private" in str(line) for line in logged)
    page = text_of(browser("Admin").get(address))
    assert "The key is under the mat." in page and "data-chat" not in page
    assert any("said in private" in str(line) for line in logged)


def test_conversation_is_sent_again_only_when_it_changed(played, builder):
    address = f"{page_of(played)}?part=chat"
    first = builder.get(address)
    same = builder.get(address, headers={"If-None-Match": first["ETag"]})
    assert (same.status_code, same.content) == (304, b"")
    played.talks_with(lambda request: "Aye.")
    played.says(played.anna, "Oren, hello.")
    changed = builder.get(address, headers={"If-None-Match": first["ETag"]})
    assert changed.status_code == 200 and acting(text_of(changed)) == []
    assert len(first.content) < len(builder.get(page_of(played)).content) / 2


def test_retired_character_is_gone_and_its_card_stays(played, builder):
    builder.post("/ai/cards/new/", {**MIRA, "room": str(played.room.id), "do": "live"})
    (ref,) = npcs_called("Mira")
    builder.post(f"/ai/npc/{ref}/", {"do": "retire", "sure": "yes"})
    assert npcs_called("Mira") == () and cards.get_card("Mira") and cards.players_of("Mira") == ()


def test_lock_of_another_builders_character_forbids_to_retire_it(played, builder):
    # The account's own number in the lock is the number of a character, not of an account.
    account = builder.session["_auth_user_id"]
    played.npc.locks.add(f"delete:id({account});control:id({account})")
    answer = builder.post(page_of(played), {"do": "retire", "sure": "yes"})
    assert answer.status_code == 400 and "does not let you delete it" in text_of(answer)
    assert npcs_called("Oren") == (played.npc.ai.ref,)


def test_duplicate_of_a_card_has_the_same_texts_and_no_more_grants(played, builder):
    before = cards.get_card("oren")
    cards.save_card("oren", before.source, grants=frozenset({"fields"}), by=trusted("builder"))
    answer = builder.post("/ai/cards/oren/edit/", {"do": "duplicate"})
    assert answer["Location"] == "/ai/cards/oren%202/edit/"
    made = cards.get_card("oren 2")
    assert (made.source, made.grants) == (cards.get_card("oren").source, frozenset({"fields"}))


def form_of(client, address):
    """Return the fields of a card's form as a browser sends them."""
    told = as_json(client, address)
    return {
        "seen": told["seen"],
        "revision": str(told["revision"]),
        **{one["name"]: one["text"] for one in told["fields"]},
    }


@pytest.mark.parametrize("where", ["/ai/cards/oren/edit/", "{npc}character/"])
def test_form_of_a_card_counts_tokens_and_previews_without_saving(played, builder, where):
    address = where.format(npc=page_of(played))
    before, sent = cards.get_card("oren"), form_of(builder, address)
    sent |= {"description": "{{char}} counts every plank.", "do": "preview"}
    told = builder.post(f"{address}?format=json", sent).json()
    assert told["preview"]["tokens"]["description"] == 7
    assert told["preview"]["tokens"]["creator_notes"] is None
    assert "Oren counts every plank." in [one["text"] for one in told["preview"]["texts"]]
    page = text_of(builder.post(address, sent))
    assert "<pre>Oren counts every plank.</pre>" in page and "7 tokens" in page
    assert "{{char}} counts every plank.</textarea>" in page
    assert cards.get_card("oren") == before


def test_character_panel_saves_fields_and_keeps_what_was_typed_in_a_conflict(played, builder):
    here = f"{page_of(played)}character/"
    sent = {**form_of(builder, here), "personality": f"Warm. {HOSTILE}"}
    assert builder.post(here, sent).status_code == 302
    assert parsed_card(cards.get_card("oren")).personality.startswith("Warm.")
    late = builder.post(here, {**sent, "scenario": "On the quay at noon."})
    assert late.status_code == 409 and "On the quay at noon.</textarea>" in text_of(late)
    assert parsed_card(cards.get_card("oren")).scenario != "On the quay at noon."
    assert acting(text_of(late)) == []


def test_uploaded_picture_is_shown_and_exported(played, builder):
    here, picture = "/ai/cards/oren/edit/", draw_portrait("Zed")
    seen = {name: form_of(builder, here)[name] for name in ("seen", "revision")}
    wrong = SimpleUploadedFile("a.png", b"<script>alert(1)</script>")
    refused = builder.post(here, {**seen, "do": "picture", "picture": wrong})
    assert refused.status_code == 400 and "not a PNG picture" in text_of(refused)
    file = SimpleUploadedFile("a.png", picture)
    assert builder.post(here, {**seen, "do": "picture", "picture": file}).status_code == 302
    card = cards.get_card("oren")
    shown = builder.get(f"/ai/cards/oren/{card.revision}/picture/").content
    assert picture[33:150] in shown
    assert "/picture/" in text_of(builder.get(page_of(played)))
    exported = builder.get(f"/ai/cards/oren/{card.revision}/export/png/")
    assert load_card(b"".join(exported.streaming_content)).picture is not None


def test_note_is_written_changed_and_removed_on_the_page(played, builder):
    here, ref = f"{page_of(played)}notes/", played.npc.ai.ref
    sent = {"do": "save", "seen": "0", "key": "mood", "content": "Oren is tired.", "enabled": "yes"}
    sent |= {"depth": "2", "order": "100", "every": "1"}
    assert builder.post(here, sent).status_code == 302
    note = notes.NOTES.current("mood", of_npc(ref))
    assert (note.content, note.depth, note.enabled) == ("Oren is tired.", 2, True)
    late = builder.post(here, {**sent, "content": "Oren sings."})
    assert late.status_code == 409 and "Oren sings.</textarea>" in text_of(late)
    wrong = builder.post(here, {**sent, "seen": str(note.revision), "depth": "deep"})
    assert wrong.status_code == 400 and 'value="deep"' in text_of(wrong)
    builder.post(here, {"do": "remove", "key": "mood"})
    assert notes.NOTES.current("mood", of_npc(ref)) is None


def test_greeting_is_chosen_on_the_page(played, builder):
    here, ref = f"{page_of(played)}notes/", played.npc.ai.ref
    seen = str(cards.get_card("oren").revision)
    builder.post(here, {"do": "greet", "greeting": "1", "seen": seen})
    assert cards.assignment_of(ref).greeting == 1
    assert builder.post(here, {"do": "greet", "greeting": "9", "seen": seen}).status_code == 400
    builder.post(here, {"do": "greet", "greeting": "", "seen": seen})
    assert cards.assignment_of(ref).greeting is None


def test_settings_and_tools_are_changed_on_the_page(played, builder):
    here = f"{page_of(played)}settings/"
    sent = {"mode": "always", "temperature": "0.5", "tool": ["look"], "reply_tokens": ""}
    assert builder.post(here, sent).status_code == 302
    settings = played.npc.ai.settings
    assert (settings.mode, settings.temperature, settings.tools) == ("always", 0.5, ("look",))
    wrong = builder.post(here, {**sent, "temperature": "hot"})
    page = text_of(wrong)
    assert wrong.status_code == 400 and "temperature" in page and 'value="hot"' in page
    assert played.npc.ai.settings == settings
    builder.post(here, {"mode": "name_match"})
    assert played.npc.ai.settings.temperature is None


def test_form_has_every_setting_that_a_builder_can_change_in_the_game(played, builder):
    here = f"{page_of(played)}settings/"
    page = text_of(builder.get(here))
    named = set(re.findall(r'name="([a-z_]+)"', page))
    assert {row.field for row in ROWS} <= named
    typed = {
        "model": "other",
        "top_p": "0.9",
        "engagement_seconds": "30",
        "hop_limit": "2",
        "odd_replies": "retry",
        "languages": "common, elvish",
        "react_to": "arrive",
        "limits": "calls_per_minute=5",
    }
    assert builder.post(here, {"mode": "always", **typed}).status_code == 302
    settings = played.npc.ai.settings
    assert (settings.hop_limit, settings.languages) == (2, ("common", "elvish"))
    assert (settings.react_to, settings.limits) == (("arrive",), {"calls_per_minute": 5})
    page = text_of(builder.get(here))
    for name, text in typed.items():
        assert f'name="{name}" value="{text}"' in page, name
    wrong = builder.post(here, {"mode": "always", **typed, "limits": "few"})
    assert wrong.status_code == 400 and "Limits are written like" in text_of(wrong)
    assert played.npc.ai.settings == settings


def test_moved_text_is_saved_from_the_page_of_the_character(played, builder):
    here = page_of(played)
    trial = "note:gulls.order=20"
    page = text_of(builder.get(f"{here}?with={trial}"))
    assert 'href="/ai/npc/' in page and "Your edit, not stored" in page
    seen = [line.partition('"')[0] for line in page.split('name="seen" value="')[1:]]
    answer = builder.post(here, {"with": [trial], "seen": [one for one in seen if "@" in one]})
    assert answer["Location"].startswith(f"{here}?")
    assert notes.NOTES.current("gulls", of_npc(played.npc.ai.ref)).order == 20


def test_every_label_of_the_forms_has_help(played, builder):
    for address in ("/ai/cards/new/", "/ai/cards/oren/edit/", f"{page_of(played)}notes/"):
        page = text_of(builder.get(address))
        helped = re.findall(r'id="(help-[^"]+)"', page)
        asked = re.findall(r'aria-describedby="(help-[^"]+)"', page)
        assert sorted(helped) == sorted(asked) and len(asked) >= 4, address


def test_page_stays_small(played, builder):
    for address in (page_of(played), "/ai/cards/new/", f"{page_of(played)}character/"):
        assert len(builder.get(address).content) < 150_000, address


def test_records_are_unchanged_by_reading_the_page(played, builder):
    (where, *_) = conversations_of(played.npc.ai.ref)
    before = json.dumps([one.sha256 for one in record_rows.records_of(where)])
    builder.get(page_of(played))
    assert json.dumps([one.sha256 for one in record_rows.records_of(where)]) == before


def test_lore_of_a_time_of_day_is_tried_without_changing_anything(played, builder):
    def entry(name, part):
        when = {"fact": "time.part", "test": "is_any", "values": [part]}
        return {
            "name": name,
            "keys": [],
            "constant": True,
            "content": f"It is {part}.",
            "enabled": True,
            "insertion_order": 1,
            "extensions": {"evennia_ai": {"when": [when]}},
        }

    book = {"entries": [entry("owls", "night"), entry("larks", "morning")]}
    lorebooks.save_book("hours", json.dumps(book), by=trusted("builder"))
    lorebooks.LOREBOOKS.assign("hours", of_npc(played.npc.ai.ref), by=trusted("builder"))
    here = f"{page_of(played)}notes/"
    for hour, active, asleep in ((23, "owls", "larks"), (7, "larks", "owls")):
        tried = as_json(builder, f"{here}?hour={hour}&line=Good day, Oren.")["tried"]
        assert active in [one["title"] for one in tried["active"]]
        assert asleep in [one["title"] for one in tried["asleep"]]
        page = text_of(builder.get(f"{here}?hour={hour}&line={HOSTILE}"))
        assert f"At {hour}:00" in page and acting(page) == []
    for wrong in ("24", "-1", "noon", ""):
        assert as_json(builder, f"{here}?hour={wrong}")["tried"] is None


def test_note_with_conditions_is_written_and_tried_at_another_hour(played, builder):
    here = f"{page_of(played)}notes/"
    note = {"key": "late", "content": "He yawns.", "depth": "4", "order": "100", "every": "1"}
    note |= {"enabled": "yes", "seen": "0", "do": "save"}
    refused = builder.post(here, {**note, "when": "at night"})
    assert refused.status_code == 400
    assert "it must be &lt;fact&gt; &lt;test&gt;" in text_of(refused)
    assert 'value="at night"' in text_of(refused)
    assert builder.post(here, {**note, "when": "time.hour >= 18"}).status_code == 302
    assert 'value="time.hour &gt;= 18"' in text_of(builder.get(here))
    reason = "off now: time.hour must be at least 18, and it is 7"
    for hour, left_out in ((7, reason), (18, "")):
        tried = as_json(builder, f"{here}?hour={hour}")["tried"]
        assert tried["conditional"] == [
            {"origin": "note:late", "when": "time.hour >= 18", "left_out": left_out}
        ]
