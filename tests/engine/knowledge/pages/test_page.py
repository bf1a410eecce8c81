"""Tests of the hash of a page, which covers everything that authors write."""

from dataclasses import replace

import pytest

from evennia_ai.engine.knowledge.pages.page import Page, PageMeta, page_name

FERRY = Page(name=page_name("Ferry"), body="It crosses.", meta=PageMeta(fields={"age": 4}))


@pytest.mark.parametrize(
    "change",
    [
        {"name": page_name("Sources:Ferry")},
        {"body": "It sank."},
        {"meta": PageMeta(summary="s")},
        {"meta": PageMeta(topics=("t",))},
        {"meta": PageMeta(aliases=("t",))},
        {"meta": PageMeta(tags=("t",))},
        {"meta": PageMeta(requires=(page_name("Quay"),))},
        {"meta": PageMeta(redirect=page_name("Quay"))},
        {"meta": PageMeta(fields={"age": 5})},
    ],
)
def test_page_hash_changes_with_every_authored_field(change):
    assert replace(FERRY, **change).sha256 != FERRY.sha256


def test_page_hash_does_not_depend_on_storage():
    stored = replace(FERRY, base="harbour", revision="7", locks="view:all()")

    assert stored.sha256 == FERRY.sha256


def test_page_hash_does_not_depend_on_field_order():
    one, other = ({"a": 1, "b": 2}, {"b": 2, "a": 1})

    hashes = {replace(FERRY, meta=PageMeta(fields=fields)).sha256 for fields in (one, other)}
    assert len(hashes) == 1


def test_page_hash_exists_with_a_lone_surrogate():
    assert len(replace(FERRY, body="\ud800").sha256) == 64
