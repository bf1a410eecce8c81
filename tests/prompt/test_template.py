"""Templates: what is rendered, what is refused when saved, what hostile text cannot do."""

import time

import pytest

from evennia_ai.prompt.errors import TemplateError
from evennia_ai.prompt.template import compile_template
from tests.prompt.builders import DICE, a_component, texts, the_prompt, verdicts_of

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
        ("{% for n in range(3) %}{{ n }}{% endfor %}", "012"),
        ("{{ user | upper }}", "ANNA"),
        ("{{ [user, char] | sort | join(', ') }}", "Anna, Oren"),
        ("{% if mood is defined %}{{ mood }}{% else %}calm{% endif %}", "calm"),
        ("{# nobody reads this #}seen", "seen"),
    ],
)
def test_a_builder_writes_names_and_a_little_logic(source: str, text: str) -> None:
    assert rendered(source) == text


@pytest.mark.parametrize("source", ["{% if true %}x{% endif %}", "{{ 7 * 7 }}", "{{ user.x }}"])
@pytest.mark.parametrize("trust", ["imported", "player"])
def test_logic_in_text_that_nobody_vouches_for_stays_as_written(source: str, trust: str) -> None:
    assert rendered(source, trust=trust) == source


def test_imported_text_knows_the_names_of_version_1() -> None:
    assert rendered("<USER> and <bot> and <Char>", trust="imported") == "Anna and Oren and Oren"
    assert rendered("<USER>", trust="builder") == "<USER>"


def test_player_text_is_never_expanded() -> None:
    assert rendered("{{user}} {{roll:6}}", trust="player") == "{{user}} {{roll:6}}"


def test_a_value_is_not_expanded_again() -> None:
    assert rendered("Hello {{user}}", user="{{char}} {% if 1 %}") == "Hello {{char}} {% if 1 %}"
    assert rendered("{% if user %}{{ user }}{% endif %}", user="{{ char }}") == "{{ char }}"


HOSTILE = {
    "class walk": "{{ ''.__class__.__mro__ }}",
    "attr filter": "{{ user | attr('__class__') }}",
    "attribute of a value": "{{ user.upper }}",
    "format trick": "{{ '{0.__class__}'.format(user) }}",
    "printf of two billion blanks": "{{ '%2000000000d' % 1 }}",
    "huge range": "{% for a in range(1000000000) %}x{% endfor %}",
    "a range that is computed": "{% for a in range(99 + 99) %}x{% endfor %}",
    "nested loops over a value": "{% for a in user %}{% for b in user %}x{% endfor %}{% endfor %}",
    "three nested loops": "{% for a in range(9) %}{% for b in range(9) %}{% for c in range(9) %}"
    "{% endfor %}{% endfor %}{% endfor %}",
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
    "deep brackets": "{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}",
    "deep conditions": "{% if user %}" * 300 + "x" + "{% endif %}" * 300,
    "conditions a little too deep": "{% if user %}" * 90 + "x" + "{% endif %}" * 90,
    "deep additions": "{{ " + "1 + " * 5000 + "1 }}",
    "deep negations": "{{ " + "not " * 5000 + "1 }}",
    "much in nested loops": "{% for a in range(100) %}{% for b in range(100) %}"
    + "{% if a %}{% endif %}" * 50
    + "{% endfor %}{% endfor %}",
    "sorting in nested loops": "{% for a in range(100) %}{% for b in range(100) %}"
    "{% if [user|sort, user|sort] %}{% endif %}{% endfor %}{% endfor %}",
    "long text in nested loops": "{% for a in range(100) %}{% for b in range(100) %}{% if ('"
    + "ab" * 5000
    + "' + user)|sort %}{% endif %}{% endfor %}{% endfor %}",
    "unclosed": "{% if user %}",
    "unknown tag": "{% autoescape %}",
    "debug": "{% debug %}",
    "trans": "{% trans %}x{% endtrans %}",
}


def test_conditions_may_be_nested_as_deep_as_anybody_writes() -> None:
    assert rendered("{% if user %}" * 20 + "x" + "{% endif %}" * 20) == "x"


@pytest.mark.parametrize("source", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_template_is_refused_when_it_is_saved(source: str) -> None:
    started = time.process_time()
    with pytest.raises(TemplateError) as caught:
        compile_template(source, trust="builder")
    assert len(str(caught.value)) < 400
    assert time.process_time() - started < 1.0


@pytest.mark.parametrize(
    "source",
    [
        "{% for a in range(100) %}{% for b in user %}" + "x" * 99 + "{% endfor %}{% endfor %}",
        "{% for a in user %}{{ user }}{% endfor %}",
    ],
)
def test_a_template_that_makes_too_much_is_stopped(source: str) -> None:
    started = time.process_time()
    with pytest.raises(TemplateError, match="makes more than 200000 characters"):
        rendered(source, user="A" * 100_000)
    assert time.process_time() - started < 1.0


@pytest.mark.parametrize("count", [10, 10_000])
def test_macros_are_split_in_linear_time(count: int) -> None:
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
        started = time.process_time()
        rendered(hostile * count, trust="imported")
        assert time.process_time() - started < 0.5


def test_a_range_without_numbers_is_an_error_when_rendered() -> None:
    with pytest.raises(TemplateError, match="range expected"):
        rendered("{% for a in range() %}x{% endfor %}")


def test_an_error_names_the_line() -> None:
    with pytest.raises(TemplateError, match=r"^line 3: \* \(it can make huge texts\)") as caught:
        compile_template("one\ntwo\n{{ 'a' * 3 }}", trust="builder")
    assert caught.value.line == 3


def test_an_unknown_name_in_logic_is_an_error_when_rendered() -> None:
    with pytest.raises(TemplateError, match="'mood' is undefined"):
        rendered("{% if mood %}x{% endif %}")


@pytest.mark.parametrize("name", ["lipsum", "dict", "cycler", "joiner", "namespace", "self.x"])
def test_a_template_names_values_and_nothing_of_jinja(name: str) -> None:
    with pytest.raises(TemplateError):
        rendered(f"{{% if true %}}{{{{ {name} }}}}{{% endif %}}")


def test_a_bad_template_is_a_verdict_and_no_crash() -> None:
    prompt = the_prompt([a_component("{{ 7 * 7 }}", key="sum"), a_component("kept", id=1202)])
    assert texts(prompt) == ["kept"]
    problem = "template error: line 1: * (it can make huge texts) is not allowed in templates"
    assert verdicts_of(prompt, "component:sum") == [("expand", False, problem)]
