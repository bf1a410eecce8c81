"""Lorebook keys with regular expressions that never end, and the texts that trigger them."""

import json

import pytest

from tests.hostile.audit import audit
from tests.hostile.harbour import Harbour
from tests.services.llm.clients.stub_server import answers

pytestmark = pytest.mark.server

A = "a" * 900
PATTERNS: dict[str, tuple[str, str]] = {
    "pluses in one another": ("(a+)+$", A),
    "stars in one another": ("(a*)*$", A),
    "a star of everything": ("(.*)*x", A),
    "a choice that begins alike": ("(?:a|aa)+$", A),
    "a choice of the same": ("(a|a)*$", A),
    "words of words": (r"(\w|\w\w)*$", A),
    "words and blanks": (r"(\w+\s?)*$", "word " * 250),
    "five in one another": ("((((a*)*)*)*)*b", A),
    "pluses that touch": ("(x+x+)+y", "x" * 900),
    "many stars in a row": ("a*" * 30 + "b", A),
    "many dots in a row": (".*" * 20 + "b", A),
    "dots with words between": (".*a.*a.*a.*a.*a.*a.*a.*a.*b", A),
    "an address": (r"^([a-zA-Z0-9])(([\-.]|[_]+)?([a-zA-Z0-9]+))*(@){1}[a-z0-9]+$", A),
    "a list of numbers": (r"^(\d+,?)*$", "1" * 900),
    "quotes that never end": (r'"(?:[^"\\]|\\.)*"*"$', '"' + "\\a" * 400),
    "a tag": (r"<([a-z]+)([^>]*)*>x", "<a" + " b" * 400),
    "spaces at the end": (r"\s+$", " " * 900),
    "a comment": (r"/\*(.|\n)*\*/x", "/*" + "*" * 900),
    "a look ahead": ("(?=(a+))a*b", A),
    "looks ahead in a row": ("(?=.*a)(?=.*b)(?=.*c)(?=.*d)x", A),
    "a look behind": ("(?<=a)(a+)+$", A),
    "a look that refuses": ("(?!(a+)+b)a", A),
    "a reference to itself": (r"(a*)\1\1\1b", A),
    "a named reference": (r"(?P<x>a+)(?P=x)+b", A),
    "a condition": (r"(a)?(?(1)b|c)+$", A),
    "a large count": ("(?:a{1,300}){1,300}b", A),
    "counts in one another": ("(((a{1,30}){1,30}){1,30}){1,30}b", A),
    "a count without end": ("a{99999999}", A),
    "a count of a count": ("(a{0,65535}){0,65535}", A),
    "ten thousand groups": ("(" * 2000 + "a" + ")" * 2000, A),
    "a thousand choices": ("|".join(f"a{n}" for n in range(1000)) + "$", A),
    "choices that share a beginning": ("(?:" + "|".join("a" * n for n in range(1, 60)) + ")+$", A),
    "case without end": ("(?i)(A+)+$", A),
    "letters of Unicode": (r"(\w+)+$", "\u00e4" * 400),
    "a class of everything": (r"([\s\S]+)+$", A),
    "atoms that are none": ("(?>a+)+$", A),
    "greed that gives nothing back": ("a++b", A),
    "recursion": ("(?R)", A),
    "a call": ("(?{ print(1) })", A),
    "an end that is missing": ("(a+", A),
    "a class that is open": ("[a-", A),
    "a wrong range": ("[z-a]", A),
    "nothing": ("", A),
    "only an anchor": ("^$", A),
    "a zero byte": ("a\0+", A),
    "flags of another": ("(?sxu-mi:(a+)+)$", A),
    "unicode names": (r"\N{DRAGON}\p{L}+$", A),
}
BOOK = "bombs"


def test_hostile_patterns_do_not_block_the_game(harbour: Harbour) -> None:
    harbour.model.behaves(answers("Aye."))
    put_book(harbour)
    scene = harbour.scene("patterns", npc="Rune")
    anna = scene.enters(harbour.anna)
    imported = harbour.builder.types(f"lore/import {BOOK}.json = {BOOK}")
    assigned = harbour.builder.types(f"lore/assign {BOOK} = npc:rune")
    with audit("patterns", harbour) as subject:
        with subject.attack("a book of nothing but patterns is imported"):
            assert BOOK in imported, imported
            assert BOOK in assigned, assigned
        for number, (name, (_, text)) in enumerate(PATTERNS.items()):
            with subject.attack(name):
                request = scene.asks(anna, f"talk rune = {text}!")
                sent = json.dumps(request.body["messages"])
                assert "The ferry sails at six." in sent, (
                    f"an honest key wakes nothing: {sent[:600]}"
                )
                told = harbour.builder.types(f"lore/why rune = {BOOK}#{number}")
                assert "Nothing" not in told[:200] or BOOK in told, told


def put_book(harbour: Harbour) -> None:
    """Write a file with an entry for each pattern, and one whose key ends every text."""
    entries = [
        {**FIELDS, "keys": [f"/{pattern}/"], "content": f"Pattern {number}.", "use_regex": True}
        for number, (pattern, _) in enumerate(PATTERNS.values())
    ]
    honest = {**FIELDS, "keys": ["!"], "content": "The ferry sails at six."}
    book = {"name": BOOK, "entries": [*entries, honest], "extensions": {}}
    path = harbour.game.root / "world" / "demo" / "cards" / f"{BOOK}.json"
    path.write_text(json.dumps({"spec": "lorebook_v3", "data": book}), encoding="utf-8")


FIELDS = {"enabled": True, "insertion_order": 1, "use_regex": False, "extensions": {}}
