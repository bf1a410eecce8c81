"""Nicks: which lines they match, what they make of them, and how much work that takes.

Work is counted in steps and characters. A nick for which Evennia would search forever ends at once.
"""

import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings
from evennia.typeclasses.attributes import (
    NickTemplateInvalid,
    initialize_nick_templates,
    parse_nick_template,
)

A = "a" * 1400


class Player:
    """A player with nicks, who keeps the messages of the game."""

    has_account = False

    def __init__(self, *nicks: tuple[str, str], is_regex: bool = False) -> None:
        self.told: list[str] = []
        self.msg = self.told.append
        self._nicks = [
            SimpleNamespace(
                key=pattern,
                value=(
                    *initialize_nick_templates(pattern, made, pattern_is_regex=is_regex),
                    pattern,
                    made,
                ),
            )
            for pattern, made in nicks
        ]

    def types(self, line: str) -> str:
        from evennia_ai.npc.nicks import replace_nicks

        handler: Any = SimpleNamespace(obj=self, get=lambda **_: self._nicks)
        return replace_nicks(handler, line, categories="inputline")


@pytest.mark.parametrize(
    ("pattern", "replacement", "typed", "made"),
    [
        ("hi", "say Hello", "hi", "say Hello"),
        ("hi", "say Hello", "HI\r\n", "say Hello"),
        ("hi", "say Hello", "hi there", "hi there"),
        ("hi", "say Hello", "", ""),
        ("build $1 $2", "create/drop $1;$2", "build a b c", "create/drop a;b c"),
        ("build $1 $2", "create/drop $1;$2", "build  a \t b", "create/drop a;b"),
        ("tell $1 $2", "page $1=$2", "tell anna", "tell anna"),
        ("tm?$1", "page tallman=$1", "tm:hello you", "page tallman=hello you"),
        ("tm=$1", "page tallman=$1", "tm=x", "page tallman=x"),
        ("$1 at $2", "$2 at $1", "a at b at c", "b at c at a"),
        ("$2 $1", "$1 $2", "x y z", "y z x"),
        ("$1$2", "$1,$2", "abc", "a,bc"),
        ("*", "look", "whatever there is", "look"),
        ("say*b$1", "say $1", "say abab", "say ab"),
        ("g[ae]t$1", "get$1", "gat it", "get it"),
        ("g[!ae]t$1", "get$1", "gat it", "gat it"),
        ("[a-c]x", "look", "Bx", "look"),
        ("a[b", "look", "a[b", "look"),
        ("ÄÖ $1", "say $1", "äö ß", "say ß"),
        ("w $1", "say {arg1:>9} {x} {} $1", "w a", "say {arg1:>9} {x} {} a"),
        ("w $1", "say $1$1", "w $1", "say $1$1"),
    ],
)
def test_nick_is_replaced_by_the_line_that_the_player_set(
    db: None, pattern: str, replacement: str, typed: str, made: str
) -> None:
    assert Player((pattern, replacement)).types(typed) == made


@pytest.mark.parametrize("typed", ["pub", "pub hello there", "PUB hi\n", "public hi", "pub  a"])
def test_channel_nick_expands_a_line_as_evennia_does(db: None, typed: str) -> None:
    nick = (r"pub\s*?|pub\s+?(?P<arg1>.+?)", "channel public = $1")
    regex, template = initialize_nick_templates(*nick, pattern_is_regex=True)
    compiled = re.compile(regex, re.IGNORECASE | re.DOTALL)
    wanted = parse_nick_template(typed, compiled, template)[1]
    assert Player(nick, is_regex=True).types(typed).strip() == wanted.strip()


@pytest.mark.parametrize(
    ("nick", "typed"),
    [
        (("q $1 $2 $3", "say |$1look|$2click here|$3"), "q lc lt le"),
        (("q $1", "say |l$1"), "q clook|ltclick|le"),
        (("q $1", "say |\u200b$1"), "q lclook|ltclick|le"),
        (("q $1 $2", "say ||$1look||$2click||le"), "q lc lt"),
        (("q $1 $2", "say |||n$1look|||rltclick|l|g$2"), "q lc e"),
    ],
)
def test_nick_makes_no_link(db: None, nick: tuple[str, str], typed: str) -> None:
    from evennia.utils.text2html import parse_html

    made = Player(nick).types(typed)
    assert made.startswith("say ")
    for strip in (False, True):
        assert "mxplink" not in parse_html(made, strip_ansi=strip)


@pytest.mark.parametrize("times", [2, 680])
def test_nick_makes_no_line_that_is_longer_than_a_typed_one(db: None, times: int) -> None:
    player = Player(("w $1", "say " + "$1" * times))
    assert player.types("w " + A) == ""
    assert player.told == [settings.MAX_CHAR_LIMIT_WARNING]
    with override_settings(MAX_CHAR_LIMIT=0):
        assert len(player.types("w " + A)) <= 6_000


@pytest.mark.parametrize(
    "pattern",
    [
        "$1a$2a$3a$4a$5a$6a$7a$8a$9a zz",
        "".join(f"${n}" for n in range(1, 60)) + " zz",
        "*a" * 200 + " zz",
        "?*" * 300 + " zz",
        " ".join(f"${n}" for n in range(1, 99)) + " zz",
        "[!b]" * 300 + " zz",
        "*[a-z]" * 150 + " zz",
    ],
)
def test_nick_that_does_not_match_ends_within_its_limit_of_steps(db: None, pattern: str) -> None:
    player = Player((pattern, "look " + "".join(re.findall(r"\$\d+", pattern))))
    assert player.types(A) == A
    assert player.types(" a" * 700) == " a" * 700
    assert player.told == []


def test_line_is_not_executed_when_its_nicks_need_too_many_steps(db: None) -> None:
    from evennia_ai.npc.nicks import TOO_MUCH_WORK

    player = Player(*((f"{'?' * 1300}{n}", "look") for n in range(100)))
    assert player.types(A) == ""
    assert player.told == [TOO_MUCH_WORK]


def test_nicks_of_an_account_apply_to_its_character(db: None) -> None:
    player, account = Player(), Player(("hi", "say Hello"))
    player.has_account = True
    player.account = SimpleNamespace(  # type: ignore[attr-defined]
        nicks=SimpleNamespace(get=lambda **_: account._nicks)
    )
    from evennia_ai.npc.nicks import replace_nicks

    handler: Any = SimpleNamespace(obj=player, get=lambda **_: None)
    assert replace_nicks(handler, "hi", include_account=True) == "say Hello"
    assert replace_nicks(handler, "hi", include_account=False) == "hi"


class Keeping:
    """A player who stores nicks with Evennia's own command."""

    def __init__(self) -> None:
        from evennia import create_object
        from evennia.typeclasses.attributes import NickHandler

        from evennia_ai.npc.nicks import bound_nicks

        before = NickHandler.add, NickHandler.nickreplace
        bound_nicks()
        self.ends = lambda: [
            setattr(NickHandler, name, one)
            for name, one in zip(("add", "nickreplace"), before, strict=True)
        ]
        self.person = create_object("evennia.objects.objects.DefaultCharacter", key="Mallory")
        self.told: list[str] = []
        self.person.msg = self.told.append

    def keeps(self, pattern: str, replacement: str, *, is_regex: bool = False) -> bool:
        try:
            self.person.nicks.add(pattern, replacement, pattern_is_regex=is_regex)
        except NickTemplateInvalid:
            assert self.told[-1].startswith("This nick was not kept")
        return bool(self.person.nicks.has(pattern))


@pytest.fixture
def keeping(db: None) -> Iterator[Keeping]:
    made = Keeping()
    yield made
    made.ends()


@pytest.mark.parametrize(
    ("pattern", "replacement", "kept"),
    [
        ("build $1 $2", "create/drop $1;$2", True),
        ("a" * 250, "b" * 250, True),
        ("a" * 251, "b", False),
        ("a", "b" * 251, False),
        ("w $1", "say " + "$1" * 6, True),
        ("w $1", "say " + "$1" * 7, False),
        ("*" * 7, "look", False),
        ("a", "say |ra|gb|bc|yd|re|gf|bg", False),
    ],
)
def test_nick_is_stored_unless_it_is_too_large(
    keeping: Keeping, pattern: str, replacement: str, kept: bool
) -> None:
    assert keeping.keeps(pattern, replacement) is kept
    assert bool(keeping.told) is not kept


def test_too_large_alias_of_a_channel_is_not_stored_and_raises_no_error(
    keeping: Keeping,
) -> None:
    assert keeping.keeps(r"pub\s*?|pub\s+?(?P<arg1>.+?)", "channel public = $1", is_regex=True)
    assert not keeping.keeps("x*" * 200, "channel public = $1", is_regex=True)
    assert len(keeping.told) == 1


@pytest.mark.long
def test_all_nicks_of_one_player_have_a_common_limit(keeping: Keeping) -> None:
    kept = [keeping.keeps(f"n{n} $1", "say Hello $1") for n in range(100)]
    assert 40 < sum(kept) < 80
    assert keeping.keeps("n1 $1", "say Bye $1"), "a nick that is written again is not counted twice"
    keeping.person.nicks.remove("n1 $1")
    assert keeping.keeps("hi", "say Hello")
    assert keeping.person.nicks.nickreplace("n2 x") == "say Hello x"
