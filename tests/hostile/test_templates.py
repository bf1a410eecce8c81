"""Templates written with a stolen builder's account: each is refused in a line, or harmless.

Each component is created, and the prompt that the NPC would send is shown.
"""

import re

import pytest

from tests.hostile.audit import audit
from tests.hostile.harbour import Harbour

pytestmark = pytest.mark.server

MOST_GROWN_MIB = 60
"""The most MiB by which the server may grow for one template. The worst once took 977."""

TEMPLATES = {
    # Names of Jinja2 are used or assigned
    "self": "{{ self._TemplateReference__context }}",
    "self alone": "{{ self }}{{ char|upper }}",
    "a name that Python takes for another": "{% if \ufb01 %}x{% endif %}",
    "set binds range": "{% set range = char.format %}{{ range(9) }}",
    "a macro called range": "{% macro range(a) %}x{% endmacro %}{{ range(9) }}",
    # Methods and attributes of texts
    "format by item": "{{ '{:>900000000}'['format'](1) }}",
    "upper by item": "{{ char['upper'] }}",
    "format by attribute": "{{ char.format(1) }}",
    "a class": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "a class by item": "{{ ''['__class__'] }}",
    "a class by a joined name": "{{ ''['__cla' + 'ss__'] }}",
    "a class by a filter": "{{ char|attr('__class__') }}",
    "a method by map": "{{ [char]|map(attribute='format')|list }}",
    "globals of a helper": "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
    "lipsum": "{{ lipsum.__globals__['os'] }}",
    "the insides of a loop": "{% for x in char %}{{ loop.__class__ }}{{ loop._i }}{% endfor %}",
    "range itself": "{{ range }}",
    "undefined of the insides": "{{ nobody.__class__ }}",
    # Very long texts
    "a long loop": "{% for x in range(2000000000) %}x{% endfor %}",
    "filters in filters": "{{ char" + "|upper" * 45 + " }}",
    "a filter of what was said, again and again": "{% if lastMessage|upper %}{% endif %}" * 60,
    "a search for a long text": "{% if '" + "a" * 9_999 + "b' in lastMessage %}x{% endif %}",
    "a text that doubles": "{% for x in range(60) %}{{ char * 2 ** x }}{% endfor %}",
    "a text that is added": "{{ " + " + ".join(["char"] * 200) + " }}",
    "a text times a number": "{{ 'x' * 2000000000 }}",
    "a list times a number": "{{ [1] * 900000000 }}",
    "a center": "{{ char|center(2000000000) }}",
    "an indent": "{{ char|indent(2000000000) }}",
    "a percent": "{{ '%2000000000d' % 1 }}",
    "a replace": "{{ char|replace('e', 'e' * 99999)|replace('e', 'e' * 99999) }}",
    "a batch": "{{ char|batch(2000000000, 'x')|list }}",
    "a join of a join": "{{ [char, char]|join([char, char]|join(char))|join(char) }}",
    "a power": "{{ 9 ** 9 ** 9 }}",
    "a number of many digits": "{{ " + "9" * 1200 + " }}",
    "digits that are joined": "{{ 999999999999999999 + 999999999999999999 }}",
    "a shifted number": "{{ 1 << 9999999999 }}",
    "a division by nothing": "{{ 1 / 0 }}{{ 1 % 0 }}{{ 1 // 0 }}",
    # Very deep nesting
    "three hundred brackets": "{{ " + "(" * 300 + "1" + ")" * 300 + " }}",
    "three hundred lists": "{{ " + "[" * 300 + "]" * 300 + " }}",
    "many negations": "{{ " + "not " * 250 + "1 }}",
    "many signs": "{{ " + "-" * 1000 + "1 }}",
    "ifs in ifs": "{% if 1 %}" * 50 + "x" + "{% endif %}" * 50,
    "three thousand elif": "{% if 0 %}" + "{% elif 1 %}x" * 3000 + "{% endif %}",
    "ten thousand names": "{{char}}" * 6000,
    # Macros that take work: dice, lists, variables, values, and some that only look harmless
    "a hundred dice, 1,999 times": "{{roll:100d6}}" * 1_999,
    "a hundred dice, 2,001 times": "{{roll:100d6}}" * 2_001,
    "random in random in random": "{{random::{{random::{{random::a::b}}::c}}::d}}" * 600,
    "a list of a thousand, again and again": ("{{random:" + "a," * 1_000 + "}}") * 20,
    "picks": "{{pick::a::b}}" * 1_999,
    "a variable that is counted": "{{incvar::a}}" * 1_999,
    "a variable that doubles": "{{setvar::a::x}}"
    + "{{setvar::a::{{getvar::a}}{{getvar::a}}}}" * 600,
    "a variable that grows": "{{addvar::a::{{lastMessage}}}}" * 900 + "{{getvar::a}}" * 100,
    "variables whose names are made": "{{setvar::{{char}}{{roll:999}}::1}}" * 600,
    "what was said last": "{{lastMessage}}" * 1_999,
    "a text turned round": ("{{reverse:" + "ab" * 200 + "}}") * 100,
    "trims": "{{newline}}{{trim}}{{newline}}" * 666,
    "remarks in remarks": "{{// {{// a}} {{comment: b}} }}" * 600,
    "names that nobody has": "{{nobody}}" * 1_999,
    "comments that do not end": "{#" * 20_000,
    "statements that do not end": "{%" * 20_000,
    "blanks in the name of an outlet": "{{outlet::a" + " " * 40_000 + "b}}",
    # Invalid templates
    "half a statement": "{% for",
    "half a name": "{{ char",
    "an end alone": "{% endfor %}",
    "a zero byte": "{{ '\0' }}",
    "a text that does not end": "{{ 'x }}",
    "another file": "{% include '/etc/passwd' %}{% import 'os' as os %}{% extends 'x' %}",
    "a call of a block": "{% call range(9) %}x{% endcall %}",
    "a comment that does not end": "{# " + "{{" * 200,
    "a raw that does not end": "{% raw %}" + "{{ char.format }}" * 20,
}
ADDRESS = re.compile(r"0x[0-9a-f]{6}|<bound method|<built-in|<class|<function")
LINE = 1200
"""How many characters fit into a typed line."""


def test_hostile_templates_are_not_evaluated(harbour: Harbour) -> None:
    harbour.scene("templates", npc="Tess")
    builder = harbour.builder
    with audit("templates", harbour) as subject:
        for name, template in TEMPLATES.items():
            before = harbour.memory_mib()
            with subject.attack(name):
                made = builder.types(*lines_of(template))
                shown = builder.types("component/preview/full tess = hello")
                gone = builder.types("component/remove evil@npc:tess", "yes")
                assert "messages" in shown, shown[:500]
                assert not ADDRESS.search(shown.replace(template[:40], "")), shown[:500]
                assert ("evil" in gone) or ("component" in made), (made[-500:], gone)
                assert harbour.memory_mib() - before < MOST_GROWN_MIB


def lines_of(template: str) -> list[str]:
    """Return the lines to type: one line, or lines for the editor if the template is longer."""
    create = "component/create evil@npc:tess = 1301, system"
    if len(template) < LINE:
        return [f"{create}: {template}"]
    pieces = [template[at : at + LINE] for at in range(0, len(template), LINE)]
    return [create, *pieces, ":wq"]
