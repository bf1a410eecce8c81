"""Test stored vectors of pages. The vectors are invented, no model is used."""

import struct

import pytest

from evennia_ai import models
from evennia_ai.engine.actors import trusted
from evennia_ai.engine.knowledge.pages.page import BaseInfo, Page, PageDraft, page_name
from evennia_ai.store.knowledge import page_vectors
from evennia_ai.store.knowledge.knowledge_bases import save_base
from evennia_ai.store.knowledge.pages import remove_page, save_page
from tests.absent import need

pytestmark = pytest.mark.extra


@pytest.fixture(autouse=True)
def _needs_numpy() -> None:
    need("numpy", undone="no vectors are compared")


MODEL = "made-up"
TIDE, ROOF, BETWEEN, OPPOSITE = (1, 0), (0, 1), (0.8, 0.6), (-1, 0)


def a_vector(numbers) -> bytes:
    return struct.pack("<2f", *numbers)


@pytest.fixture(autouse=True)
def _harbour():
    save_base(BaseInfo(key="harbour", name="Harbour"), by=trusted("Mira"))
    page_vectors._kept.clear()


def write(title, body="Stone.", was=""):
    return save_page(
        "harbour",
        PageDraft(page=Page(name=page_name(title), body=body), was=was, by=trusted("Mira")),
    )


def read(**vectors):
    """Store these vectors for the pages with these titles."""
    for page in page_vectors.pages_without_vectors("harbour", MODEL, most=100):
        title = page.parts[0].split("\n")[0]
        page_vectors.keep_vectors(
            page.page_id, page.sha256, MODEL, [a_vector(one) for one in vectors[title]]
        )


def near(asked, **options):
    found = page_vectors.nearest_pages("harbour", MODEL, a_vector(asked), **{"most": 10, **options})
    return [one.name.full for one in found]


def test_most_similar_page_comes_first():
    write("Slack"), write("Thatch"), write("Sluice")
    read(Slack=[TIDE], Thatch=[ROOF], Sluice=[BETWEEN])

    assert near(TIDE) == ["Slack", "Sluice"]


def test_page_is_returned_once_by_its_most_similar_part():
    write("Slack")
    read(Slack=[OPPOSITE, BETWEEN, TIDE])

    (found,) = page_vectors.nearest_pages("harbour", MODEL, a_vector(TIDE), most=10)
    assert (found.name.full, found.place) == ("Slack", 2)


def test_dissimilar_page_is_not_returned():
    write("Slack")
    read(Slack=[OPPOSITE])

    assert near(TIDE) == []


def test_vector_search_respects_namespaces_and_the_limit():
    write("Slack"), write("Sources:Slack"), write("Ebb")
    read(Slack=[TIDE], Ebb=[TIDE])

    assert near(TIDE, namespaces=["Sources"]) == ["Sources:Slack"]
    assert near(TIDE, most=1) == ["Ebb"]


def test_each_part_begins_with_the_title_of_its_page():
    write("Slack", "One.\n\n" + "Two. " * 300)

    (page,) = page_vectors.pages_without_vectors("harbour", MODEL, most=5)
    assert len(page.parts) > 1
    assert all(part.startswith("Slack\n") for part in page.parts)


def test_page_with_vectors_is_not_read_again():
    write("Slack")
    read(Slack=[TIDE])

    assert page_vectors.pages_without_vectors("harbour", MODEL, most=5) == ()
    assert page_vectors.pages_without_vectors("harbour", "another model", most=5) != ()


def test_changed_page_is_read_again():
    page = write("Slack")
    read(Slack=[TIDE])
    write("Slack", "Water.", was=page.revision)
    read(Slack=[ROOF])

    assert (near(TIDE), near(ROOF)) == ([], ["Slack"])
    assert models.KnowledgePageVector.objects.count() == 1


def test_vectors_of_an_old_text_are_not_stored():
    page = write("Slack")
    (old,) = page_vectors.pages_without_vectors("harbour", MODEL, most=5)
    write("Slack", "Water.", was=page.revision)
    page_vectors.keep_vectors(old.page_id, old.sha256, MODEL, [a_vector(TIDE)])

    assert near(TIDE) == []


def test_removed_page_has_no_vectors():
    page = write("Slack")
    read(Slack=[TIDE])
    assert near(TIDE) == ["Slack"]
    remove_page("harbour", page.name, was=page.revision, by=trusted("Mira"))

    assert near(TIDE) == []


def test_knowledge_base_without_vectors_returns_nothing():
    assert near(TIDE) == []
