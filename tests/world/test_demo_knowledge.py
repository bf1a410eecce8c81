"""Test that the demo's knowledge bases are valid and its questions name existing pages."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from evennia_ai.engine.knowledge.pages.files import PageFolder, read_folder
from evennia_ai.engine.knowledge.pages.page import Page, PageName, alias_names, page_name
from world.demo_content import DEMO

KNOWLEDGE = DEMO / "knowledge"
BASES = sorted(path.name for path in KNOWLEDGE.iterdir() if path.is_dir())
# Pages that others link to and that nobody has written: the intended broken links.
RED_LINKS = {"Corwin Dace", "Leek Show", "Saltholm Chapel", "The Fever Winter"}
NO_LONGER_THAN = 4_000


def folder(base: str) -> PageFolder:
    return read_folder(KNOWLEDGE / base)


def pages_of(base: str) -> tuple[Page, ...]:
    return folder(base).pages


def known_names(base: str) -> set[tuple[str, str]]:
    """Return all titles and aliases, folded."""
    return {
        (name.namespace, name.folded)
        for page in pages_of(base)
        for name in (page.name, *alias_names(page.meta, page.name))
    }


def missing_links(base: str) -> set[str]:
    known = known_names(base)
    return {
        link.full
        for page in pages_of(base)
        for link in page.links
        if (link.namespace, link.folded) not in known
    }


def of_namespace(base: str, namespace: str) -> list[Page]:
    return [page for page in pages_of(base) if page.name.namespace == namespace]


def test_demo_has_an_open_and_a_restricted_knowledge_base() -> None:
    assert {base: folder(base).info.restricted for base in BASES} == {
        "harbour": False,
        "secret": True,
    }


@pytest.mark.parametrize("base", BASES)
def test_every_file_is_a_page(base: str) -> None:
    assert folder(base).skipped == ()


def test_every_namespace_has_pages() -> None:
    counts = {one: len(of_namespace("harbour", one)) for one in ("Main", "Instructions", "Sources")}
    assert all(count >= least for count, least in zip(counts.values(), (20, 12, 6), strict=True))


@pytest.mark.parametrize("base", BASES)
def test_every_required_page_exists(base: str) -> None:
    names = {page.name for page in pages_of(base)}
    broken = {
        page.name.full: one.full
        for page in pages_of(base)
        for one in page.meta.requires
        if one not in names
    }
    assert broken == {}


def test_only_intended_links_are_broken() -> None:
    assert missing_links("harbour") == RED_LINKS


def test_restricted_knowledge_base_links_only_to_the_open_one() -> None:
    there = {page.name.full for page in pages_of("harbour")}
    assert missing_links("secret") <= there
    assert missing_links("secret")


def test_page_names_are_unique() -> None:
    names = [
        (name.namespace, name.folded)
        for page in pages_of("harbour")
        for name in (page.name, *alias_names(page.meta, page.name))
    ]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("page", pages_of("harbour"), ids=lambda page: page.name.full)
def test_page_has_a_text_or_is_a_redirect(page: Page) -> None:
    assert bool(page.body.strip()) != bool(page.meta.redirect)
    assert len(page.body) < NO_LONGER_THAN


def test_every_source_names_its_author_and_reliability() -> None:
    wanted = {"source_type", "author", "date", "location", "canonical", "reliability", "bias"}
    without = {
        page.name.full: wanted - set(page.meta.fields)
        for page in of_namespace("harbour", "Sources")
        if not wanted <= set(page.meta.fields)
    }
    assert without == {}


def test_every_talk_page_is_about_an_existing_source() -> None:
    talked = {source.name.talk for source in of_namespace("harbour", "Sources")}
    assert {page.name for page in of_namespace("harbour", "Talk")} <= talked


def test_demo_has_a_stub_and_a_redirect() -> None:
    pages = of_namespace("harbour", "Main")
    assert [page.name.full for page in pages if "stub" in page.meta.tags] == ["Grey Salt"]
    assert {page.name.full: str(page.meta.redirect) for page in pages if page.meta.redirect} == {
        "Ferryman": "Oren Vale"
    }


def test_hint_reveals_no_secret() -> None:
    info = folder("secret").info
    told = " ".join([info.hint, *info.keywords]).casefold()
    assert info.hint
    assert [name for name in ("wagtail", "odile", "pell", "eleven", "hoop") if name in told] == []


def questions() -> list[dict[str, Any]]:
    text = Path(KNOWLEDGE / "questions.yaml").read_text(encoding="utf-8")
    read: list[dict[str, Any]] = yaml.safe_load(text)
    return read


def test_demo_has_forty_questions() -> None:
    assert len({one["question"] for one in questions()}) == 40


def test_every_question_names_existing_pages() -> None:
    names = {page.name for page in pages_of("harbour")}
    asked: list[PageName] = [page_name(one) for it in questions() for one in it["pages"]]
    assert [name.full for name in asked if name not in names] == []
