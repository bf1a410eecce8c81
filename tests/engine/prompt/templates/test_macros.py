"""The macros of the card standard, with others nested inside them."""

from dataclasses import dataclass
from typing import Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evennia_ai.engine.errors import TemplateError
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.templates.template import compile_template
from evennia_ai.engine.prompt.templates.work import Meter

_DICE = Dice(turn="1", conversation="1")


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
        ("{{reverse:{{user}}}} {{reverse::{{user}}!}} {{reverse::abc}}", "annA !annA cba"),
        ("{{reverse:<USER>}}{{random::<user>}}{{pick:<User>}}", "annAAnnaAnna"),
        ("{{setvar::a::<USER>}}{{getvar::a}}", "Anna"),
        ("{{random:{{user}} waits,{{user}} waits}}", "Anna waits"),
        ("{{random:{{user}}\\, waits}}", "Anna, waits"),
        ("{{pick:{{random::{{reverse:{{user}}}}}}}}", "annA"),
        ("{{random::{{user}},{{user}}}}", "Anna"),
        ("{{roll:{{roll:1}}}} {{roll {{roll:1}}d1+1}} {{roll:{{user}}}}.", "1 2 ."),
        ("{{reverse:{{roll:1}}{{noop}}2}}", "21"),
        ("{{setvar::n::2}}{{reverse:{{incvar::n}}4}}", "43"),
        # An unknown macro, or one with a wrong number of arguments, stays as written. The macros
        # inside it are expanded.
        ("{{weather::{{user}}}}", "{{weather::Anna}}"),
        ("{{weather <USER>}} <USER>", "{{weather Anna}} Anna"),
        ("{{weather::{{setvar::a::1}}}}[{{getvar::a}}]", "{{weather::}}[1]"),
        ("{{reverse:{{weather}}}}", "}}rehtaew{{"),
        ("{{reverse::a::b}}{{noop::x}}{{roll}}", "{{reverse::a::b}}{{noop::x}}{{roll}}"),
        ("{{setvar::a::b::c}}", "{{setvar::a::b::c}}"),
        ("{{outlet::{{user}}}}", "{{outlet::Anna}}"),
        ("{{reverse:{{outlet::none}}ab}}", "ba"),
        ("{{random::{{weather::{{user}}}}}}", "{{weather::Anna}}"),
        ("{{setvar::{{user}}}}", "{{setvar::Anna}}"),
        ("{{{{user}}}}", "{{Anna}}"),
        ("{{reverse::{{{user}}", "resu{{{"),
        ("{{user|upper}} {{ user-x }}", "{{user|upper}} {{ user-x }}"),
        # Conditions
        ("{{if {{user}}}}yes{{else}}no{{/if}}", "yes"),
        ("{{if user}}yes{{/if}}{{if !user}}no{{/if}}", "yes"),
        ("{{if .none}}yes{{else}} no {{/if}}.", "no."),
        ("{{#if off}}yes{{else}} no {{/if}}.", " no ."),
        ("{{if 0}}a{{/if}}{{if FALSE}}b{{/if}}{{if no}}c{{/if}}{{if weather}}d{{/if}}", "cd"),
        ("{{if::{{user}}::yes}}{{if user::a}}", "yes{{if user::a}}"),
        (
            "{{if}}a{{/if}}{{weather::{{setvar::a}}::{{/setvar}}}}",
            "{{if}}a{{/if}}{{weather::{{setvar::a}}::{{/setvar}}}}",
        ),
        ("{{if a}}{{if 0}}b{{else}}c{{/if}}{{else}}d{{else}}e{{/if}}", "c"),
        ("{{if 0}}b{{else}}c{{else}}d{{/if}}{{/if}}{{else}}", "cd{{/if}}"),
        ("{{if 0}}{{setvar::a::1}}{{/if}}{{if 1}}{{setvar::b::2}}{{/if}}[{{.a}}{{.b}}]", "[2]"),
        # Scopes
        ("{{setvar::a}}\n  one\n    two\n{{/setvar}}[{{.a}}]", "[one\n  two]"),
        ("{{#setvar::a}} one {{/setvar}}[{{.a}}]", "[ one ]"),
        ("{{setvar::a}}x{{setvar::b}}y{{/setvar}}z{{/setvar}}{{.a}}{{.b}}", "xzy"),
        ("{{reverse}} {{user}} {{/reverse}}{{trim}} b {{/trim}}", "annAb"),
        # A macro with all its arguments takes no scope. An unknown one loses its end.
        ("{{getvar::a}}x{{/getvar}}", "{{getvar::a}}x{{/getvar}}"),
        (
            "{{user}}{{user}}x{{/user}}{{random}}{{/random}}",
            "{{user}}Annax{{/user}}{{random}}{{/random}}",
        ),
        ("{{weather}} <USER> {{/weather}}", "{{weather}}Anna}}"),
        ("{{if 1}}{{trim}}a{{else}}b{{/trim}}{{/if}}", "a"),
        ("{{setvar::a}}{{if 1}}b{{/setvar}}c{{/if}}[{{.a}}]", "c{{/if}}[{{if 1}}b]"),
        # Short forms of variables
        ("{{.a = 3}}{{.a += 2}}{{.a}}{{ .a++ }}{{.a--}}{{.a -= 1}}{{.a}}", "5654"),
        ("{{.a ?? x}}{{.a ??= 1}}{{.a ??= 2}}{{.a || y}}", "x111"),
        ("{{.a = 0}}{{.a || y}}{{.a ||= z}}{{.a}}", "yzz"),
        (
            "{{.a = 2}}{{.a == 2}}{{.a != 2}}{{.a > 1}}{{.a >= 3}}{{.a < x}}",
            "truefalsetruefalsefalse",
        ),
        ("{{$a = 1}}{{.a = 2}}{{$a}}{{getglobalvar::a}}{{.a-b = 3}}{{.a-b}}", "113"),
        ("{{.1a}}{{.a, b}}{{.a b c}}{{.a b = 1}}", "{{.1a}}{{.a, b}}{{.a b c}}{{.a b = 1}}"),
        ("{{.a = 1}}{{.a b}}{{.a++ c}}{{.}}", "12"),
        ("{{.a = {{space}}x{{newline}}}}[{{.a}}]", "[x]"),
        ("{{.a ?? {{{user}}|{{.a ?? {{=}}|{{.a ?? {{ !}}", "{{}}{user|{{}}=|{{ !}}"),
        ("{{getvar::}}{{hasvar::}}{{incvar::}}", "false{{incvar::}}"),
        ("{{.a ?? {{setvar::b::1}}x}}{{.a = 1}}{{.a ?? {{setvar::c::2}}}}[{{.b}}{{.c}}]", "x1[1]"),
        ("{{setvar::l::[1,2]}}{{setvarkey::l::1::b}}{{.l}}{{getvarkey::l::1}}", '[1,"b"]b'),
        ("{{setvar::a::}}{{hasvar::a}}{{deletevar::a}}{{varexists::a}}", "truefalse"),
        # Signs after a name are ignored. Braces inside a macro open another only before a name.
        ("{{user's}}{{user.name}}{{useré}} {{user.name x}}", "AnnaAnnaAnna {{user.name x}}"),
        ("{{setvar.x::a::7}}{{getvar!::a}}{{user{{user}}}}", "7Anna}}"),
        ("{{reverse::{{=}}}} {{reverse::{{1}}}} {{reverse::a{\\b}}", "={{}} 1{{}} b{a"),
        ("{{reverse|a}}{{reverse::{{trim}}}}", "a|}}mirt{{"),
        (
            "{{newline::x}}{{space::-1}}{{newline::{{user}}}}",
            "{{newline::x}}{{space::-1}}{{newline::Anna}}",
        ),
        # Other forms: one argument after a blank or a colon, flags, escaped braces
        ("{{setvar::a::7}}{{getvar a}}{{getvar:a}}{{ getvar :: a }}{{!user}}", "777Anna"),
        (r"\{user\} {\{user}} a\{b", "{user} {{user}} a{b"),
        ("a{{newline}}b{{newline::2}}c{{space::3}}d{{space 0}}e", "a\nb\n\nc   de"),
        # Braces that are not closed are no macro.
        ("{{{user}} {{user}}} {{{user}}}", "{Anna Anna} {Anna}"),
        ("{{random:{{user}}", "{{random:Anna"),
        ("{{user}}}} {{ {{user}}", "Anna}} {{ Anna"),
        # Block remarks `{{//}} ... {{///}}`, which end at a closing mark.
        ("Seen.{{//}} the {{user}}'s {{weather}} secret {{///}} On.", "Seen. On."),
        ("a{{ // }}\nb\n{{ /// }}c{{comment}}d{{/comment}}e", "ace"),
        ("a{{//}}b{{// c}}d{{//}}e{{///}}f{{///}}g", "ag"),
        ("a{{// b}}c{{//}}d{{///}}e", "ace"),
        # A remark has one text. Macros in it that change variables are run.
        ("a{{//}}b{{// }}c{{///}}{{///}}{{///}}d", "a{{///}}d"),
        ("{{//}}a{{// }}", "{{//}}a{{// }}"),
        ("{{//::a::b}}{{comment}}a{{///}}", "{{//::a::b}}{{comment}}a{{///}}"),
        ("{{// {{user}} {{setvar::a::1}}}}{{//}}{{if 1}}{{.a++}}{{/if}}{{///}}{{.a}}", "2"),
        ("{{random::a{{//}}b{{///}}::a{{// ::}}}}", "a"),
        ("one\n{{noop}}{{trim}}\ntwo", "onetwo"),
        ("one\n\n{{trim}}\n{{setvar::a::1}}\r\n{{trim}}\ntwo{{noop}}", "onetwo"),
        ("a\n{{if 1}}{{trim}}\nb{{/if}}", "a\nb"),
        ("{{USER}}{{Reverse:aB}}{{RANDOM:x}}{{Pick:y}}", "AnnaBaxy"),
        ("{{COMMENT: x}}{{Hidden_Key:x}}", ""),
        ("<USER> <user>", "Anna Anna"),
        # a long s (U+017F) equals s if case is ignored, but is not part of a macro's name
        ("<u\u017fer> <USER>", "<u\u017fer> Anna"),
        ("{{random: a b }}[{{pick: a , a}}][{{random:: a :: a }}]", "a b[a][a]"),
        ("[{{random: {{user}} , {{user}} }}][{{random: x\\, y ,x\\, y}}]", "[Anna][x, y]"),
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
            "  {{outlet::a\nb}}",
        ),
    ],
)
def test_macro_expands_to_the_documented_text(text: str, result: str) -> None:
    assert expanded(text) == result


@dataclass(frozen=True, slots=True, kw_only=True)
class _CountingDice(Dice):
    """Dice that record the number of characters of each purpose for which they roll."""

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
def test_each_random_macro_in_a_long_text_hashes_only_a_few_characters(
    macro: str, trust: Literal["imported", "builder"]
) -> None:
    dice = _CountingDice(turn="1", conversation="1", asked=[])
    times, longest = 400, 60
    template = compile_template(macro * times + "x" * 20_000, trust=trust)
    template.render({}, dice, meter=Meter(10**9))
    assert times <= len(dice.asked) <= 2 * times  # the dice of one macro share one hash
    assert max(dice.asked) <= longest


def _around(head: str, inner: list[tuple[str, str]]) -> tuple[str, str]:
    held = "".join(written for written, _ in inner)
    if head == "//":
        return f"{{{{//}}}}{held}{{{{///}}}}", ""
    written = f"{{{{{head}{held}}}}}"
    if head == "// x":
        return written, ""
    if head == "if ":  # expands nothing, because it has no branch
        return written, written.replace("<USER>", "Anna")
    given = "".join(made for _, made in inner)
    if head == "weather::":
        return written, f"{{{{{head}{given}}}}}"
    return written, given[::-1] if head == "reverse:" else given


# A macro as written, and its expansion.
_NODES: st.SearchStrategy[tuple[str, str]] = st.recursive(
    st.sampled_from(
        [
            *(("{{user}}", "Anna"), ("{{ USER }}", "Anna"), ("<USER>", "Anna"), ("a b", "a b")),
            *(("{{weather}}",) * 2, ("{{weather::x}}",) * 2, ("{{roll:1}}", "1"), ("", "")),
            *(("{{// x}}", ""), ("{{getvar::none}}", ""), ("{{newline}}", "\n"), ("{x}-", "{x}-")),
        ]
    ),
    lambda inner: st.builds(
        _around,
        st.sampled_from(
            ["random:", "random::", "pick:", "pick::", "reverse:", "weather::", "if ", "// x", "//"]
        ),
        st.lists(inner, min_size=1, max_size=3),
    ),
    max_leaves=8,
)


@given(st.lists(_NODES, max_size=4))
@example([_around("reverse:", [_around("random:", [_around("if ", [("<USER>", "Anna")])])])])
def test_macro_is_expanded_at_any_depth_also_in_one_that_stays_as_written(
    nodes: list[tuple[str, str]],
) -> None:
    text = "|".join(written for written, _ in nodes)
    assert expanded(text) == "|".join(made for _, made in nodes)


@pytest.mark.parametrize("levels", [3, 19, 20, 21, 60])
def test_macro_stays_as_written_when_nested_too_deeply(levels: int) -> None:
    text = "{{user}}"
    for _ in range(levels):
        text = f"{{{{random::{text}}}}}"
    made = expanded(text)
    assert made == "Anna" if levels <= 20 else made in text
    assert made.count("{{") == made.count("}}")


def test_comment_macro_in_a_text_with_logic_hides_its_statements() -> None:
    text = (
        "a{{//}}\n{% if user %}secret{% endif %}{% raw %}{{///}}{% endraw %}{{///}}b\n{{ nobody }}"
    )
    template = compile_template(text.replace("{{ nobody }}", ""), trust="builder")
    assert template.render({"user": "Anna"}, Dice(turn="1", conversation="1")) == "ab\n"
    with pytest.raises(TemplateError, match="line 3"):
        compile_template(text, trust="builder").render(
            {"user": "Anna"}, Dice(turn="1", conversation="1")
        )
    raw = "{% raw %}{{//}}x{{///}}{% endraw %}"
    assert compile_template(raw, trust="builder").render({}, _DICE) == "{{//}}x{{///}}"


def test_trim_macro_and_condition_work_in_a_text_with_logic() -> None:
    text = "one\n{{if user}}!{{/if}}\n{{trim}}{% if user %}\ntwo{{ user | upper }}{% endif %}"
    template = compile_template(text, trust="builder")
    assert template.render({"user": "Anna"}, _DICE) == "one\n!twoANNA"


def test_random_macro_differs_between_turns_and_pick_does_not() -> None:
    many = ",".join(map(str, range(1000)))
    randoms = {expanded(f"{{{{random:{many}}}}}", turn=f"1:{n}") for n in range(20)}
    picks = {expanded(f"{{{{pick:{many}}}}}", turn=f"1:{n}") for n in range(20)}
    assert len(randoms) > 10
    assert len(picks) == 1


def test_random_macros_at_different_places_of_a_text_differ() -> None:
    many = ",".join(map(str, range(1000)))
    first, second = expanded(f"{{{{random:{many}}}}} {{{{random:{many}}}}}").split()
    assert first != second


def test_pick_macro_gives_the_same_value_in_all_turns_of_a_conversation() -> None:
    many = ",".join(map(str, range(1000)))
    picks = {expanded(f"{{{{pick:{many}}}}}", conversation=str(n)) for n in range(20)}
    assert len(picks) > 10
    assert len({expanded(f"{{{{pick:{many}}}}}") for _ in range(3)}) == 1


def test_roll_macro_is_at_least_1_and_limited() -> None:
    rolls = [int(expanded(f"{{{{roll:{'9' * digits}}}}}")) for digits in range(1, 11)]
    assert all(1 <= roll <= 10**9 for roll in rolls)
    assert expanded("{{roll:99999999999}}") == ""


def test_roll_macro_stays_within_the_sides_of_its_die() -> None:
    rolls = {int(expanded("{{roll:6}}", turn=f"1:{n}")) for n in range(200)}
    assert rolls == {1, 2, 3, 4, 5, 6}


def test_random_macros_with_equal_seeds_give_equal_results() -> None:
    assert expanded("{{roll:1000}}") == expanded("{{roll:1000}}")
