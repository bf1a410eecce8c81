"""How texts of players, models and builders are shown on a page, without active content."""

import pytest
from django.template import Context, Template

HOSTILE = (
    ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
    ("abc\u202edef", "abc\\u202edef"),
    ("a\x1b[31mb", "a\\x1b[31mb"),
    ('" onmouseover="alert(1)', "&quot; onmouseover=&quot;alert(1)"),
    ("{{ request }}{% csrf_token %}", "{{ request }}{% csrf_token %}"),
    ("one\ntwo", "one\ntwo"),
)


@pytest.mark.parametrize(("text", "stands"), HOSTILE)
def test_text_is_shown_as_written_without_active_content(text, stands):
    shown = Template("{% load evennia_ai_pages %}{{ text|shown }}").render(Context({"text": text}))
    assert shown == stands
