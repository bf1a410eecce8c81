"""The cache of parsed texts: what it shares, and what it drops."""

import json
from dataclasses import dataclass
from hashlib import sha256

import pytest

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.lorebook.rules import ActivationRules
from evennia_ai.engine.lorebook.scan.key_index import book_index_of
from evennia_ai.engine.prompt.components import Scope
from evennia_ai.formats.lorebooks.books import read_book
from evennia_ai.npc.views import parse_cache
from evennia_ai.npc.views.parse_cache import Parsed, attached_book, own_book
from evennia_ai.store.authored.cards import StoredCard
from evennia_ai.store.authored.lorebooks import StoredBook
from tests.engine.lorebook.builders import DICE


@dataclass(frozen=True)
class Version:
    source: str
    revision: int = 1


@pytest.fixture
def asked():
    return []


@pytest.fixture
def parsed(asked):
    def parse(version):
        asked.append(version)
        if not version.source:
            raise FormatError("card", "card: empty")
        return [version.source]

    return Parsed(parse, most=3, most_characters=10)


def test_text_is_parsed_once_and_returns_the_same_object(parsed, asked):
    assert parsed(Version("abc")) is parsed(Version("abc"))
    assert len(asked) == 1


def test_versions_of_a_text_are_dropped_beyond_the_character_limit(parsed, asked):
    for revision in range(5):
        parsed(Version("abcd", revision))
    parsed(Version("abcd", 4))
    parsed(Version("abcd", 3))
    assert len(asked) == 5
    parsed(Version("abcd", 2))
    assert len(asked) == 6


def test_least_recently_used_text_is_dropped_beyond_the_count_limit(parsed, asked):
    for name in "abc":
        parsed(Version(name))
    parsed(Version("a"))
    parsed(Version("d"))
    parsed(Version("a"))
    assert [version.source for version in asked] == ["a", "b", "c", "d"]


def test_text_longer_than_the_limit_is_kept_until_the_next_one(parsed, asked):
    parsed(Version("a" * 100))
    parsed(Version("a" * 100))
    parsed(Version("b"))
    parsed(Version("b"))
    assert len(asked) == 2


def test_parse_error_is_not_cached(parsed, asked):
    for _ in range(2):
        with pytest.raises(FormatError):
            parsed(Version(""))
    assert len(asked) == 2


def stored_book(text, *, revision=1, scope=None):
    digest = sha256(text.encode()).hexdigest()
    return StoredBook(name="sea", source=text, sha256=digest, revision=revision, scope=scope)


def test_book_is_parsed_once_for_all_attachments_and_revisions(monkeypatch):
    text = '{"entries": [{"keys": ["moon"], "content": "Of the moon."}]}'
    read: list[str] = []
    monkeypatch.setattr(
        parse_cache,
        "read_book",
        lambda *given, **how: read.append(how["label"]) or read_book(*given, **how),
    )
    quay, game = Scope(kind="room", ref="3"), Scope(kind="game")
    books = [
        attached_book(stored_book(text, revision=number, scope=scope))
        for number, scope in ((1, quay), (2, game), (2, None), (3, quay))
    ]
    assert len(read) == 1
    assert len({id(book.entries) for book in books}) == 1
    assert [(book.attach, book.revision) for book in books] == [
        ("room", 1),
        ("game", 2),
        ("global", 2),
        ("room", 3),
    ]
    indexes = [book_index_of(book, rules=ActivationRules(), values={}, dice=DICE) for book in books]
    assert len({id(index) for index in indexes}) == 1


def test_book_of_a_card_is_parsed_once_for_all_grants(monkeypatch):
    card = {
        "spec": "chara_card_v3",
        "spec_version": "3.0",
        "data": {"name": "Sela", "character_book": {"entries": [{"keys": ["m"], "content": "A"}]}},
    }
    text = json.dumps(card)
    versions = [
        StoredCard(name="sela", source=text, sha256="a", revision=number, grants=grants)
        for number, grants in ((1, frozenset()), (2, frozenset({"positions"})))
    ]
    first, second = map(own_book, versions)
    assert first is not None
    assert second is not None
    assert first.entries is second.entries
    assert (first.grants, second.grants) == (frozenset(), frozenset({"positions"}))
