"""Every text that a template prints passes a filter that makes its content inactive."""

import re
from pathlib import Path

import pytest
from django.template.loader import render_to_string

import evennia_ai
from tests.web.conftest import HOSTILE, acting

TEMPLATES = Path(evennia_ai.__file__).parent / "templates" / "evennia_ai"
SAFE = re.compile(
    r"\|(?:shown|line|when|clock|taken|cost|amount|as_line|pluralize|length|add|urlencode)\b"
)
# A form shows a text as it was typed, and browsers do not interpret the values of attributes.
_AS_TYPED = re.compile(
    r"<textarea.*?</textarea>"
    r"|\s(?:value|href|hx-get|src|action|for|id|name|class|data-drag|data-newest|data-tag)="
    r'"(?:\{\{.*?\}\}|\{%.*?%\}|[^"])*"',
    re.DOTALL,
)
_PRINTED = re.compile(r"\{\{\s*(.*?)\s*\}\}")
_WORDS = """at id of turn number index depth order page pages count tokens revision revisions
tokens_before changed_tokens limit_tokens sent_tokens stable_tokens shared_tokens input_tokens
output_tokens cached_tokens changed_messages shared_messages depth_before importance players
cached_percent failures times entries on constant awake hidden never always waiting passages
search whole_tokens cells folded left_out in_force older newer previous next shown_revision status
ref mark sha256 checked total"""
NUMBERS = frozenset(_WORDS.split())
"""The last words of values that are numbers, or marks and hashes made by this package."""


def _is_number(value):
    return value.split(".")[-1] in NUMBERS or value.endswith("today.calls")


def unguarded(text):
    """Return the expressions that a template prints without a filter, except numbers."""
    printed = _PRINTED.findall(_AS_TYPED.sub("", text))
    bare = (one for one in printed if not SAFE.search(one))
    return [one for one in bare if not _is_number(one.split("|")[0])]


@pytest.mark.parametrize("template", sorted(TEMPLATES.rglob("*.html")), ids=lambda path: path.stem)
def test_template_prints_every_text_through_a_filter(template):
    assert unguarded(template.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("<td>{{ entry.position }}</td>", ["entry.position"]),
        ("{{ m.calls }}", ["m.calls"]),
        ('{{ one.keys|join:", " }}', ['one.keys|join:", "']),
        ('<p title="{{ name }}">', ["name"]),
        ('<input value="{{ name }}"> {{ name|shown }} {{ one.tokens }}', []),
    ],
)
def test_text_without_a_filter_is_found(text, found):
    assert unguarded(text) == found


def message(**values):
    plain = {"index": 1, "number": "#1", "role": "assistant", "speaker": "", "block": "history"}
    rest = {"said": True, "injected": False, "depth": 1, "tokens": 3, "parts": []}
    return {"row": {"message": {**plain, **rest, **values}}, "movable": {}}


@pytest.mark.parametrize(
    "values",
    [
        {"calls": f"give {{'item': '{HOSTILE}'}}"},
        {"speaker": HOSTILE},
        {"number": HOSTILE},
        {"role": HOSTILE},
        {"parts": [{"origin": HOSTILE, "mark": "?", "text": HOSTILE}]},
        {"said": False, "parts": [{"origin": "lore:a\u202eb#0", "mark": "?", "text": HOSTILE}]},
    ],
)
def test_values_of_a_message_are_shown_as_text(values):
    page = render_to_string("evennia_ai/parts/row.html", message(**values))
    assert acting(page) == []


@pytest.mark.parametrize("field", ["place", "logic", "name", "uid", "keys", "text"])
def test_values_of_an_entry_are_shown_as_text(field):
    entry = {"uid": "1", "name": "n", "keys": ["k"], "secondary_keys": ["s"], "logic": "any"}
    entry |= {"enabled": True, "constant": False, "place": "after", "order": 1}
    entry |= {"text": "t", field: [HOSTILE] if field == "keys" else HOSTILE}
    book = {"name": "b", "revision": 1, "mode": "m", "entries": [entry]}
    values = {"book": book, "newest": {}, "totals": {}}
    assert acting(render_to_string("evennia_ai/book.html", values)) == []
