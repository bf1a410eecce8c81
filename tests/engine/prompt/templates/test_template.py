"""Templates: how they render, which are refused when saved, and limits for hostile text."""

import pytest

from evennia_ai.engine.errors import TemplateError
from evennia_ai.engine.prompt.templates.template import (
    LONG_SOURCE,
    MOST_LONG_COMPILED,
    compile_template,
)
from tests.effort import little_work
from tests.engine.prompt.builders import DICE, a_component, texts, the_prompt, verdicts_of

VALUES = {"user": "Anna", "char": "Oren", "speaker": "Ben"}


def rendered(source: str, *, trust: str = "builder", **values: str) -> str:
    return compile_template(source, trust=trust).render({**VALUES, **values}, DICE)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("Plain text.", "Plain text."),
        ("{{user}} meets {{ char }}.", "Anna meets Oren."),
        ("{{CHAR}} and {{Speaker}}", "Oren and Ben"),
        ("{char} costs {5}", "{char} costs {5}"),
        ("ends with {{char", "ends with {{char"),
        ("{{nobody}} stays", "{{nobody}} stays"),
        ("{% if user == 'Anna' %}Welcome back.{% endif %}", "Welcome back."),
        ("{% if user in ['Ben', 'Anna'] and 'nn' in user %}friend{% endif %}", "friend"),
        ("{% if user == 'Ben' %}b{% elif user | length > 3 %}long{% endif %}", "long"),
        ("{{ user | upper }}", "ANNA"),
        ("{% if mood is defined %}{{ mood }}{% else %}calm{% endif %}", "calm"),
        ("{# nobody reads this #}seen", "seen"),
    ],
)
def test_names_and_logic_in_a_builders_text_are_expanded(source: str, text: str) -> None:
    assert rendered(source) == text


@pytest.mark.parametrize("source", ["{% if true %}x{% endif %}", "{{ 7 * 7 }}", "{{ user.x + 1 }}"])
@pytest.mark.parametrize("trust", ["imported", "player"])
def test_logic_in_imported_text_stays_as_written(source: str, trust: str) -> None:
    assert rendered(source, trust=trust) == source


def test_imported_text_expands_the_macros_of_card_version_1() -> None:
    assert rendered("<USER> and <bot> and <Char>", trust="imported") == "Anna and Oren and Oren"
    assert rendered("<USER>", trust="builder") == "<USER>"


def test_player_text_is_never_expanded() -> None:
    assert rendered("{{user}} {{roll:6}}", trust="player") == "{{user}} {{roll:6}}"


def test_macros_in_an_expanded_value_are_not_expanded() -> None:
    assert rendered("Hello {{user}}", user="{{char}} {% if 1 %}") == "Hello {{char}} {% if 1 %}"
    assert rendered("{% if user %}{{ user }}{% endif %}", user="{{ char }}") == "{{ char }}"


HOSTILE = {
    "class walk": "{{ ''.__class__.__mro__ }}",
    "attr filter": "{{ user | attr('__class__') }}",
    "attribute of a value": "{{ user.upper }}",
    "format trick": "{{ '{0.__class__}'.format(user) }}",
    "printf of two billion blanks": "{{ '%2000000000d' % 1 }}",
    "huge range": "{% for a in range(1000000000) %}x{% endfor %}",
    "nested loops over a value": "{% for a in user %}{% for b in user %}x{% endfor %}{% endfor %}",
    "huge text": "{{ 'a' * 2000000000 }}",
    "huge power": "{{ 9 ** 9 ** 9 }}",
    "joining without end": "{{ user ~ user }}",
    "doubling": "{% set x = 'a' %}{% for i in range(99) %}{% set x = x + x %}{% endfor %}{{ x }}",
    "center": "{{ user | center(2000000000) }}",
    "indent": "{{ user | indent(2000000000) }}",
    "batch": "{{ user | batch(2000000000, 'x') | list }}",
    "join with itself": "{{ user | join(user) }}",
    "join of a join": "{{ user | join('12345678901234567890') | join('12345678901234567890') }}",
    "join with a long text": "{{ user | join('" + "x" * 50 + "') }}",
    "join of methods": "{{ user | join('', attribute='upper') }}",
    "join of methods by place": "{{ user | join('', 'upper') }}",
    "sort by a hidden attribute": "{{ user | sort(attribute='__class__') }}",
    "replace": "{{ user | replace('n', 'nnnn') }}",
    "macro recursion": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "recursive loop": "{% for a in [1] recursive %}{{ loop([1]) }}{% endfor %}",
    "include": "{% include 'secrets' %}",
    "import": "{% import 'os' as os %}",
    "extends": "{% extends 'base' %}",
    "call of a method": "{{ user.delete() }}",
    "call of a value": "{{ user() }}",
    "lipsum": "{{ lipsum(99) }}",
    "cycler": "{{ cycler('a').next }}",
    "statements that do not end": "{%" * 25_000,
    "comments that do not end": "{#" * 25_000,
    "raw texts that do not end": "{% raw %}" * 5_500,
    "deep brackets": "{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}",
    "deep conditions": "{% if user %}" * 300 + "x" + "{% endif %}" * 300,
    "conditions a little too deep": "{% if user %}" * 90 + "x" + "{% endif %}" * 90,
    "deep additions": "{{ " + "1 + " * 5000 + "1 }}",
    "deep negations": "{{ " + "not " * 5000 + "1 }}",
    "the insides of a template": "{{ self }}{{ user | upper }}",
    "a name that Python takes for another": "{% if \ufb01 %}x{% endif %}",
    "a number without end": "{% if user == 1e999 %}x{% endif %}",
    "trimming by a text": "{{ user | trim(char) }}",
    "a method as an item": "{{ user['upper'] }}",
    "the method format as an item": "{{ '{:>2000000000}'['format'](user) }}",
    "a class as an item": "{% if user['__class__'] %}x{% endif %}",
    "an item by a half number": "{{ user[1.5] }}",
    "a huge number": "{{ " + "9" * 5000 + " }}",
    "a huge number in another notation": "{{ 0x" + "f" * 5000 + " }}",
    "a huge name": "{{ " + "a" * 5000 + " | upper }}",
    "3,000 conditions": "{% if user %}" + "{% elif user %}" * 3000 + "{% endif %}",
    "a condition in a condition without end": "{{ " + "1 if 1 else " * 3000 + "1 }}",
    "a chain of comparisons": "{{ 1" + " < 2" * 3000 + " }}",
    "a chain of filters": "{{ user" + "|upper" * 3000 + " }}",
    "a chain of items": "{{ user" + "[0]" * 3000 + " }}",
    "a test that calls": "{% if user is callable %}x{% endif %}",
    "a test for an object": "{% if user is sameas char %}x{% endif %}",
    "a test with options": "{% if user is divisibleby(num=3) %}x{% endif %}",
    "a test by a computed name": "{% if user is eq(*[user]) %}x{% endif %}",
    "half a letter": "{{ '\\ud800' | upper }}",
    "a null character": "{{ '\\0' | upper }}",
    "much text": "{# #}" + "x" * 50_000,
    "much text without logic": "x" * 50_001,
    "an item of a number": "{{ 1[0] }}{{ user['x'] }}",
    "namespace": "{% set ns = namespace(a=user) %}{% set ns.a = ns.a + ns.a %}",
    "a block of another": "{% block a %}{% for b in range(100) %}x{% endfor %}{% endblock %}",
    "with": "{% with a = user + user %}{{ a }}{% endwith %}",
    "call blocks": "{% call range(3) %}x{% endcall %}",
    "tojson": "{{ user | tojson(indent=2000000000) }}",
    "wordwrap": "{{ user | wordwrap(1, true, 'xxxxxxxx') }}",
    "slice": "{{ user | slice(2000000000) | list }}",
    "format": "{{ '%2000000000d' | format(1) }}",
    "a dictionary": "{{ {'a': user}['a'] }}",
    "unclosed": "{% if user %}",
    "unknown tag": "{% autoescape %}",
    "debug": "{% debug %}",
    "trans": "{% trans %}x{% endtrans %}",
}


# Templates that pass the check when saved, but fail for some values, and words of the error.
STOPPED = {
    "much text": ("{{ big }}" * 4 + "{{ big | upper }}" * 4, "makes more than 200000 characters"),
    "much text in macros": ("{% if user %}{{big}}{{big}}{{big}}{{big}}{% endif %}" * 2, "200000"),
    "many passes through a text": (
        "{{ big" + " | lower" * 40 + " }}{% if big | lower == same %}{% endif %}" * 20,
        "more work than is left",
    ),
    "looking for a long text": ("{% if long in big %}x{% endif %}", "at most 99 characters"),
    "looking for a long constant": (
        "{% if '" + "x" * 100 + "' not in big %}x{% endif %}",
        "at most 99 characters",
    ),
    "looking for nobody": ("{% if nobody in big %}x{% endif %}", "'nobody' is undefined"),
    "looking in nobody": ("{% if 'x' in nobody %}x{% endif %}", "'nobody' is undefined"),
    "comparing with nobody": ("{% if user < nobody %}x{% endif %}", "'nobody' is undefined"),
    "a text below a number": ("{{ user < 1 }}", "a number where a text is needed"),
    "the length of a number": ("{{ 1 | length }}", "a number where a text is needed"),
    "a number in a text": ("{% if 1 in user %}x{% endif %}", "a number where a text is needed"),
    "names of Jinja2": ("{% if true %}{{ range }}{% endif %}", "'range' is undefined"),
    "the name of a loop": ("{% if true %}{{ loop }}{% endif %}", "'loop' is undefined"),
}


@pytest.mark.parametrize(("source", "problem"), STOPPED.values(), ids=STOPPED.keys())
def test_template_limit_that_depends_on_values_is_checked_when_rendering(
    source: str, problem: str
) -> None:
    big, long = "so it is " * 3_000, "so it is " * 300
    with little_work(), pytest.raises(TemplateError, match=problem) as caught:
        rendered("\n{# #}" + source, big=big, same=big[:-1] + " ", long=long + "!")
    if "more work" not in problem:
        assert str(caught.value).startswith("line 2: cannot be rendered: ")


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{% if user in [char, user] and user is not undefined %}x{% endif %}", "x"),
        ("{% if user not in (char, 'Ben') and 'x' not in user %}x{% endif %}", "x"),
        ("{% if USER == 'Anna' %}{{ CHAR | lower }}{% endif %}", "oren"),
        ("{{ nobody | default(user) | capitalize }}", "Anna"),
        ("{{ 'x' if user == 'Ben' }}", ""),
        ("{{ ' x ' | trim }}{{ 'a' if user == 'Anna' else 'b' }}", "xa"),
        ("{{ user == 'Anna' }}{{ user | length }}{{ none }}", "True4None"),
        ("{% raw %}{{ x }}{% endraw %}{%- if 1 %} y{% endif %}", "{{ x }} y"),
    ],
)
def test_template_logic_gives_the_documented_result(source: str, text: str) -> None:
    assert rendered("{# #}" + source) == text


@pytest.mark.parametrize(
    ("source", "instead"),
    [
        ("{% for x in user %}{% endfor %}", "write each case out, with {% if %}"),
        ("{% set x = 1 %}", "write {{setvar::name::value}}"),
        ("{{ user + char }}", "write the values one after the other"),
        ("{{ user ~ char }}", "write the values one after the other"),
        ("{{ 2 - 1 }}", "templates do not calculate"),
        ("{{ user[0] }}", "values are plain texts without parts"),
        ("{{ user.name }}", "values are plain texts without parts"),
        ("{{ user() }}", "write a filter"),
        ("{{ [user] }}", "lists are allowed after 'in' only"),
        ("{% if user == [char] %}{% endif %}", "lists are allowed after 'in' only"),
        ("{% if 1 < 2 < 3 %}{% endif %}", "join them with 'and'"),
        ("{{ user | title }}", "use one of upper, lower, capitalize, trim, length, default"),
        ("{% if user is string %}{% endif %}", "use 'is defined'"),
        ("{% macro f() %}{% endmacro %}", "write its text at that place"),
    ],
)
def test_refused_template_syntax_names_what_to_write_instead(source: str, instead: str) -> None:
    with pytest.raises(TemplateError, match=r"^line 2: ") as caught:
        compile_template("one\n" + source, trust="builder")
    assert instead in str(caught.value)


@pytest.mark.parametrize("times", [3, 300])
def test_builders_text_that_expands_to_too_many_characters_is_an_error(times: int) -> None:
    with pytest.raises(TemplateError, match="makes more than 200000 characters; name its values"):
        rendered("{{mood}} " * times, mood="x" * (300_000 // times))


def test_names_in_imported_text_stay_as_written_when_their_values_do_not_fit() -> None:
    text = rendered("{{mood}} " * 300, trust="imported", mood="x" * 1_000)
    assert len(text) <= 200_000
    assert text.startswith("x" * 1_000 + " ")
    assert text.endswith("{{mood}} " * 90)


def test_random_macro_chooses_among_at_most_a_thousand_values() -> None:
    chosen = rendered("{{random:" + "," * 1_000 + "x" * 48_000 + "}}")
    assert chosen == ""


def test_template_conditions_may_be_nested_a_few_levels_deep() -> None:
    assert rendered("{% if user %}" * 20 + "x" + "{% endif %}" * 20) == "x"


@pytest.mark.parametrize("source", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_template_is_refused_when_it_is_saved(source: str) -> None:
    with little_work():
        with pytest.raises(TemplateError) as caught:
            compile_template(source, trust="builder")
        assert len(str(caught.value)) < 400


@pytest.mark.parametrize("count", [10, 10_000])
def test_text_is_split_into_macros_in_linear_time(count: int) -> None:
    blanks = " " * 4 * count
    for whole in (f"{{{{outlet::a{blanks}b}}}}", f"{{{{outlet::{blanks}}}}}", f"{{{{roll{blanks}"):
        with little_work():
            rendered(whole, trust="imported")
    for hostile in (
        "{{",
        "{{a",
        "}}",
        "{{random:",
        "<user",
        "{{{{",
        "{{//",
        "{{//{{a}}",
        "{{//{{",
        "{{// }",
    ):
        with little_work():
            rendered(hostile * count, trust="imported")


def test_template_error_names_the_line() -> None:
    with pytest.raises(TemplateError, match=r"^line 3: \* is not allowed") as caught:
        compile_template("one\ntwo\n{{ 'a' * 3 }}", trust="builder")
    assert caught.value.line == 3


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{{random:a}}{% if user %} for {{user}}{% endif %}", "a for Anna"),
        ("{{setvar::mood::calm}}{% if user %}{{getvar::mood}}{% endif %}", "calm"),
        ("{% if user %}{{pick:x}}{% endif %}{{// a remark}}{{pick:x}}", "xx"),
        ("{% raw %}{{random:a}}{% endraw %}", "{{random:a}}"),
    ],
)
def test_macros_and_logic_work_in_one_text(source: str, text: str) -> None:
    assert rendered(source) == text


@pytest.mark.parametrize(
    ("source", "blamed", "way"),
    [
        ("{{#if x}}", "{{#if", "a condition is written {% if name == 'value' %}"),
        ("{{setvar::mood::calm}}{{#if x}}", "{{#if", "a condition is written"),
        ("{{roll 1d6}} {{weekday 2}}", "{{weekday 2", "put it between {% raw %} and {% endraw %}"),
        ("{% if user %}{{setvar::a", "{{setvar::", "it is written {{setvar::name::value}}"),
    ],
)
def test_template_error_names_the_unknown_macro_and_its_correct_form(
    source: str, blamed: str, way: str
) -> None:
    with pytest.raises(TemplateError) as caught:
        compile_template(source, trust="builder")
    told = f"'{blamed}' is neither a macro that is known here nor an expression of Jinja2: "
    assert told in str(caught.value) and way in str(caught.value)


def test_unknown_name_in_template_logic_is_an_error_when_rendered() -> None:
    with pytest.raises(TemplateError, match="'mood' is undefined"):
        rendered("{% if mood %}x{% endif %}")


@pytest.mark.parametrize("name", ["lipsum", "dict", "cycler", "joiner", "namespace", "self.x"])
def test_templates_cannot_name_objects_of_jinja(name: str) -> None:
    with pytest.raises(TemplateError):
        rendered(f"{{% if true %}}{{{{ {name} }}}}{{% endif %}}")


def test_invalid_template_gives_a_verdict_in_the_prompt() -> None:
    prompt = the_prompt([a_component("{{ 7 * 7 }}", key="sum"), a_component("kept", id=1202)])
    assert texts(prompt) == ["kept"]
    problem = (
        "template error: line 1: * is not allowed in templates; templates do not calculate; write"
        " the result"
    )
    assert verdicts_of(prompt, "component:sum") == [("expand", False, problem)]


def test_equal_texts_share_a_compiled_template_and_few_long_ones_are_cached() -> None:
    text = "{{char}} waits."
    assert compile_template(text, trust="builder") is compile_template(text, trust="builder")
    assert compile_template(text, trust="imported") != compile_template(text, trust="builder")
    long = text * (LONG_SOURCE // len(text) + 1)
    compiled = compile_template(long, trust="builder")
    assert compile_template(long, trust="builder") is compiled
    for number in range(MOST_LONG_COMPILED):
        compile_template(f"{long}{number}", trust="builder")
    assert compile_template(long, trust="builder") is not compiled


def test_template_name_without_a_value_stays_as_written_at_each_place() -> None:
    source = "{{ Char }} and {{char}}, {{CHAR}}"
    assert compile_template(source, trust="builder").render({}, DICE) == source
