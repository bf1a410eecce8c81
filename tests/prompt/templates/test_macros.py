"""The macros of the card standard."""

from dataclasses import dataclass
from typing import Literal

import pytest

from evennia_ai.prompt.dice import Dice
from evennia_ai.prompt.templates.template import compile_template
from evennia_ai.prompt.templates.work import Meter


def expanded(text: str, *, turn: str = "1:0", conversation: str = "1") -> str:
    dice = Dice(turn=turn, conversation=conversation)
    return compile_template(text, trust="imported").render(
        {"user": "Anna", "outlet::gate": "open"}, dice
    )


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("{{roll:1}}-{{roll:d1}}-{{ROLL: D1}}", "1-1-1"),
        ("{{roll:0}}{{roll:many}}{{roll:-3}}{{roll:²}}", ""),
        ("{{random:only}}", "only"),
        ("{{random:a\\,b}}", "a,b"),
        ("{{pick::only}}", "only"),
        ("{{reverse:abc}}", "cba"),
        ("a{{// one\ntwo}}b", "ab"),
        ("a{{comment: hidden}}b", "ab"),
        ("a{{hidden_key:moon}}b", "ab"),
        ("a{{// {{user}} and {{ reverse:x }} {one} }}b", "ab"),
        ("a{{Comment: {{user}}{{user}}}}b", "ab"),
        ("a{{ hidden_key : {{user}}}}b", "ab"),
        ("a{{// {{user}} b", "a{{// Anna b"),
        ("{{// one}} {{user}} {{// two}}", " Anna "),
        ("{{reverse:{{user}}}}", "{{reverse:Anna}}"),
        ("{{USER}}{{Reverse:aB}}{{RANDOM:x}}{{Pick:y}}", "AnnaBaxy"),
        ("{{COMMENT: x}}{{Hidden_Key:x}}", ""),
        ("<USER> <user>", "Anna Anna"),
        ("<u\u017fer> <USER>", "<u\u017fer> Anna"),  # a long s is an s where case is ignored
        ("{{random: a b }}", " a b "),
        ("{{random::x}}{{random:,}}", "x"),
        ("{{pick:a\\,b}}{{pick::c\\,d}}", "a,bc,d"),
        ("{{reverse:\U0001f409\u00e9}}", "\u00e9\U0001f409"),
        ("{{original}}", "{{original}}"),
        ("{{comment}} {{roll}}", "{{comment}} {{roll}}"),
        ("{user} {{user", "{user} {{user"),
        ("{{unknown:thing}}", "{{unknown:thing}}"),
        ("{{ }}", "{{ }}"),
        ("{{outlet:: gate \n}}{{OUTLET::gate}}", "openopen"),
        (
            "{{outlet::}} {{outlet:: \n}} {{outlet::a\nb}}",
            "{{outlet::}} {{outlet:: \n}} {{outlet::a\nb}}",
        ),
    ],
)
def test_a_macro_gives_its_text(text: str, result: str) -> None:
    assert expanded(text) == result


@dataclass(frozen=True, slots=True, kw_only=True)
class _CountingDice(Dice):
    """Dice that count the characters they are thrown for."""

    asked: list[int]

    def roll(self, *what: object) -> float:
        return self._counted(what, 1)[0]

    def rolls(self, count: int, *what: object) -> list[float]:
        return self._counted(what, count)

    def pick(self, *what: object) -> float:
        return self._counted(what, 1)[0]

    def _counted(self, what: tuple[object, ...], count: int) -> list[float]:
        self.asked.append(sum(len(str(one)) for one in what))
        return [0.0] * count


@pytest.mark.parametrize("trust", ["imported", "builder"])
@pytest.mark.parametrize(
    "macro",
    [
        "{{roll:1d6}}",
        "{{roll:100d6}}",
        "{{roll 3d6+1}}",
        "{{random:a,b}}",
        "{{random::a::b}}",
        "{{random::a::{{roll:6}}}}",
        "{{pick:a,b}}",
        "{{pick::a::{{pick::b::c}}}}",
        "{{setvar::x::{{roll:6}}}}",
        "{{setvar::{{random:a,b}}::{{pick:a,b}}}}",
        "{{addvar::x::{{roll:20d6}}}}",
    ],
)
def test_dice_hash_a_few_characters_however_long_their_text_is(
    macro: str, trust: Literal["imported", "builder"]
) -> None:
    dice = _CountingDice(turn="1", conversation="1", asked=[])
    times, longest = 400, 60
    template = compile_template(macro * times + "x" * 20_000, trust=trust)
    template.render({}, dice, meter=Meter(10**9))
    assert times <= len(dice.asked) <= 2 * times  # a hundred dice of one macro are one throw
    assert max(dice.asked) <= longest


def test_random_changes_with_the_turn_and_pick_does_not() -> None:
    many = ",".join(map(str, range(1000)))
    randoms = {expanded(f"{{{{random:{many}}}}}", turn=f"1:{n}") for n in range(20)}
    picks = {expanded(f"{{{{pick:{many}}}}}", turn=f"1:{n}") for n in range(20)}
    assert len(randoms) > 10
    assert len(picks) == 1


def test_two_places_of_one_text_roll_for_themselves() -> None:
    many = ",".join(map(str, range(1000)))
    first, second = expanded(f"{{{{random:{many}}}}} {{{{random:{many}}}}}").split()
    assert first != second


def test_a_pick_is_the_same_wherever_its_text_stands_in_one_conversation() -> None:
    many = ",".join(map(str, range(1000)))
    picks = {expanded(f"{{{{pick:{many}}}}}", conversation=str(n)) for n in range(20)}
    assert len(picks) > 10
    assert len({expanded(f"{{{{pick:{many}}}}}") for _ in range(3)}) == 1


def test_no_roll_is_too_large_and_none_is_below_one() -> None:
    rolls = [int(expanded(f"{{{{roll:{'9' * digits}}}}}")) for digits in range(1, 11)]
    assert all(1 <= roll <= 10**9 for roll in rolls)
    assert expanded("{{roll:99999999999}}") == ""


def test_a_roll_stays_within_its_sides() -> None:
    rolls = {int(expanded("{{roll:6}}", turn=f"1:{n}")) for n in range(200)}
    assert rolls == {1, 2, 3, 4, 5, 6}


def test_equal_seeds_give_equal_rolls() -> None:
    assert expanded("{{roll:1000}}") == expanded("{{roll:1000}}")
