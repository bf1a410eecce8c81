"""The pages of Django's admin in a browser: links, names, dates, and who may see what."""

import html
import json
import re
from datetime import UTC, datetime

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.utils.timezone import localtime

from evennia_ai import models
from evennia_ai.admin import day_of
from evennia_ai.engine.history.turn.manifest import text_in_row
from tests.npc.scripted_games import furnish

HOSTILE = '<script>alert("x")</script> |lcquit|ltx|le'
DATE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \w+")


@pytest.fixture
def browser(db):
    """Return the browser of a superuser."""
    made = get_user_model().objects.create(
        username="staff", is_superuser=True, is_staff=True, is_active=True
    )
    client = Client()
    client.force_login(made)
    return client


def page(browser, path):
    answer = browser.get(f"/admin/{path}", follow=True)
    assert answer.status_code == 200, path
    return answer.content.decode()


def rows(text):
    """Return the texts of a list's cells, row by row."""
    listed = re.search(r'<table id="result_list">(.*?)</table>', text, re.DOTALL)[1]
    return [
        [
            html.unescape(re.sub(r"<[^>]+>", "", cell)).strip()
            for cell in re.findall(r"<t[hd] [^>]*class=\"field[^>]*>(.*?)</t[hd]>", row, re.DOTALL)
        ]
        for row in re.findall(r"<tr>(.*?)</tr>", listed.partition("<tbody>")[2], re.DOTALL)
    ]


@pytest.fixture
def django_queries(db):
    """Return the number of queries that a call makes."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    def counted(call):
        with CaptureQueriesContext(connection) as queries:
            call()
        return len(queries)

    return counted


@pytest.fixture(scope="module")
def _played(beforehand):
    def play(stage):
        furnish(stage)
        stage.talks_with("Aye.", "Aye.")
        stage.says(stage.anna, f"Oren, {HOSTILE}?")
        stage.whispers(stage.anna, "Oren, and between us?")

    beforehand(play)


@pytest.fixture
def played(_played, stage):
    return stage


@pytest.mark.long
def test_admin_front_page_links_to_every_table_of_this_package(played, browser):
    text = page(browser, "")
    ours = text.partition('id="evennia-ai"')[2]
    found = dict(re.findall(r'<a href="/admin/evennia_ai/(\w+)/">([^<]+)</a>', ours))
    assert found["memory"] == "Memories"
    assert found["turn"] == "Turns"
    for name in found:
        page(browser, f"evennia_ai/{name}/")
    assert len(found) > 15


def test_admin_front_page_keeps_the_links_of_evennia(browser):
    text = page(browser, "")
    assert 'href="/admin/objects/objectdb/"' in text
    assert text.index("ServerConfigs") < text.index('id="evennia-ai"')


def test_admin_front_page_links_to_no_table_without_permissions(db):
    made = get_user_model().objects.create(username="clerk", is_staff=True, is_active=True)
    client = Client()
    client.force_login(made)
    assert 'id="evennia-ai"' not in page(client, "")


def test_names_of_tables_have_correct_plurals():
    ours = models.Record._meta.apps.get_app_config("evennia_ai").get_models()
    plurals = [str(one._meta.verbose_name_plural) for one in ours]
    assert {"memories", "knowledge aliases", "knowledge searches"} <= set(plurals)
    wrong = re.compile(r".*(?:[^aeiou]ys|ss|chs|wordss)")
    assert [name for name in plurals if wrong.fullmatch(name)] == []


def test_list_shows_names_and_dates(played, browser):
    turns = rows(page(browser, "evennia_ai/turn/"))
    assert [row[0] for row in turns] == [f"Oren (#{played.npc.id})"] * 2
    assert all(DATE.fullmatch(row[-1]) for row in turns)
    (private, room) = sorted(rows(page(browser, "evennia_ai/conversation/")), key=lambda r: r[1])
    assert private[2] == f"Anna (#{played.anna.id})"
    assert room[3] == f"Ferry Landing (#{played.room.id})"
    records = rows(page(browser, "evennia_ai/record/"))
    where = f"Oren (#{played.npc.id}), room Ferry Landing (#{played.room.id})"
    assert where in {row[0] for row in records}


def test_scope_is_shown_by_the_name_of_its_object_or_zone(played, browser):
    models.Assignment.objects.create(
        kind="lorebook",
        key="harbour",
        scope_kind="zone",
        scope_ref=str(played.room.id),
        assigned_by="builder",
        assigned_at=1.0,
    )
    listed = {(row[2], row[3]) for row in rows(page(browser, "evennia_ai/assignment/"))}
    assert ("player", f"Anna (#{played.anna.id})") in listed
    assert ("room", f"Ferry Landing (#{played.room.id})") in listed
    assert ("zone", str(played.room.id)) in listed


def test_memory_is_shown_with_the_person_it_is_about(played, browser):
    models.Memory.objects.create(
        npc_ref=str(played.npc.id),
        text="Likes tea.",
        about=str(played.anna.id),
        created_at=0.0,
        recalled_at=0.0,
        author="npc",
    )
    (row,) = rows(page(browser, "evennia_ai/memory/"))
    assert row[:3] == [f"Oren (#{played.npc.id})", f"Anna (#{played.anna.id})", "Likes tea."]
    assert row[-1].startswith("19")


def test_manifest_of_a_turn_is_shown_line_by_line(played, browser):
    turn = models.Turn.objects.order_by("id").first()
    text = page(browser, f"evennia_ai/turn/{turn.pk}/change/")
    blocks = [html.unescape(b) for b in re.findall(r"<pre [^>]*>(.*?)</pre>", text, re.DOTALL)]
    manifest = next(block for block in blocks if '"messages"' in block)
    assert json.loads(manifest) == json.loads(text_in_row(turn.manifest))
    assert len(manifest.splitlines()) > 50
    assert "<textarea" not in text
    assert f'href="/admin/objects/objectdb/{played.npc.id}/change/"' in text
    assert len(DATE.findall(text)) == 2


@pytest.mark.long
def test_foreign_text_is_no_markup_on_any_admin_page(played, browser):
    played.anna.key = HOSTILE
    pages = [page(browser, f"evennia_ai/{name}/") for name in ("conversation", "record", "turn")]
    pages += [
        page(browser, f"evennia_ai/record/{record.pk}/change/")
        for record in models.Record.objects.all()
    ]
    whispered = models.Conversation.objects.get(kind="private")
    pages.append(page(browser, f"evennia_ai/conversation/{whispered.pk}/change/"))
    assert any("&lt;script&gt;alert" in text for text in pages)
    assert not any("<script>alert" in text for text in pages)


@pytest.mark.long
def test_every_row_of_every_table_has_a_page(played, browser):
    from django.contrib.admin.sites import site

    shown = 0
    for model in site._registry:
        if model._meta.app_label == "evennia_ai":
            for row in model.objects.all()[:3]:
                page(browser, f"evennia_ai/{model._meta.model_name}/{row.pk}/change/")
                shown += 1
    assert shown > 15


def test_deleted_object_is_shown_by_its_id(played, browser):
    ref = str(played.npc.id)
    played.npc.delete()
    assert rows(page(browser, "evennia_ai/turn/"))[0][0] == f"#{ref} (gone)"


def test_long_list_needs_no_more_queries_than_a_short_one(played, browser, django_queries):
    page(browser, "evennia_ai/record/")
    few = django_queries(lambda: page(browser, "evennia_ai/record/"))
    for _ in range(3):
        played.talks_with("Aye.")
        played.says(played.anna, "Oren, and now?")
    assert django_queries(lambda: page(browser, "evennia_ai/record/")) <= few


def test_times_are_shown_in_the_time_zone_of_the_server():
    moment = datetime(2026, 11, 23, 12, 30, tzinfo=UTC)
    assert day_of(moment.timestamp()) == localtime(moment).strftime("%Y-%m-%d %H:%M:%S %Z")
    assert (day_of(None), day_of(1e300)) == ("-", "1e+300")


def test_admin_pages_change_nothing(played, browser):
    turn = models.Turn.objects.first()
    assert browser.post(f"/admin/evennia_ai/turn/{turn.pk}/change/", {}).status_code == 403
    assert browser.get("/admin/evennia_ai/turn/add/").status_code == 403


# The tables whose rows contain nothing that locks or whispers protect. The others are for
# superusers.
FOR_STAFF = {
    *("card", "component", "conversation", "note", "preset", "regexscript"),
}


def ours():
    from django.contrib.admin.sites import site

    return {m._meta.model_name for m in site._registry if m._meta.app_label == "evennia_ai"}


@pytest.fixture
def clerk(db):
    """Return the browser of staff with these permissions for our tables, such as `view_record`."""
    from django.contrib.auth.models import Permission

    def logged_in(*codenames):
        made = get_user_model().objects.create(username="clerk", is_staff=True, is_active=True)
        known = Permission.objects.filter(content_type__app_label="evennia_ai")
        made.user_permissions.set(known.filter(codename__in=codenames))
        client = Client()
        client.force_login(made)
        return client

    return logged_in


def ways_to(name):
    """Return all addresses of a table: list, search, filter, row, history, forms and JSON."""
    table, pk = f"/admin/evennia_ai/{name}/", "1"
    first = ours_model(name).objects.first()
    pk = first.pk if first else pk
    return (
        *(table, f"{table}?q=e", f"{table}?pk__gt=0", f"{table}{pk}/change/", f"{table}add/"),
        *(f"{table}{pk}/history/", f"{table}{pk}/delete/", f"/admin/r/{content_type(name)}/{pk}/"),
        f"/admin/autocomplete/?app_label=evennia_ai&model_name={name}&field_name=id&term=",
    )


def ours_model(name):
    from django.apps import apps

    return apps.get_model("evennia_ai", name)


def content_type(name):
    from django.contrib.contenttypes.models import ContentType

    return ContentType.objects.get_for_model(ours_model(name)).pk


@pytest.mark.long
def test_staff_without_permissions_sees_and_changes_no_table(played, clerk):
    browser = clerk()
    for name in ours():
        for path in ways_to(name):
            assert browser.get(path).status_code in (302, 403, 404), path
            assert browser.post(path, {"action": "delete_selected"}).status_code in (
                *(302, 403, 404, 405),
            ), path


def test_staff_sees_only_tables_with_a_view_permission(played, clerk):
    browser = clerk("view_component", "view_conversation")
    assert browser.get("/admin/evennia_ai/component/").status_code == 200
    assert browser.get("/admin/evennia_ai/conversation/").status_code == 200
    refused = ours() - {"component", "conversation"}
    answers = {name: browser.get(f"/admin/evennia_ai/{name}/").status_code for name in refused}
    assert answers == dict.fromkeys(refused, 403)
    text = page(browser, "")
    listed = set(re.findall(r'href="/admin/evennia_ai/(\w+)/"', text))
    assert listed == {"component", "conversation"}


@pytest.mark.long
def test_tables_with_locked_or_whispered_texts_are_for_superusers_only(played, clerk):
    every = [f"{may}_{name}" for name in ours() for may in ("view", "add", "change", "delete")]
    browser = clerk(*every)
    seen = {n for n in ours() if browser.get(f"/admin/evennia_ai/{n}/").status_code == 200}
    assert seen == FOR_STAFF
    for name in ours() - FOR_STAFF:
        for path in ways_to(name):
            answer = browser.get(path)
            assert answer.status_code in (302, 403, 404), path
            assert b"between us" not in answer.content, path


def test_staff_with_all_permissions_changes_no_row(played, clerk):
    every = [f"{may}_{name}" for name in ours() for may in ("view", "add", "change", "delete")]
    browser = clerk(*every)
    before = {name: ours_model(name).objects.count() for name in ours()}
    for name in ours():
        first = ours_model(name).objects.first()
        for path in ("add/", *([f"{first.pk}/change/", f"{first.pk}/delete/"] if first else [])):
            answer = browser.post(f"/admin/evennia_ai/{name}/{path}", {"post": "yes"})
            assert answer.status_code == 403, (name, path)
    assert before == {name: ours_model(name).objects.count() for name in ours()}
