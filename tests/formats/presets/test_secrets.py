"""Secrets are removed from any place in a preset, and nothing else is."""

import json
from typing import Any

import pytest

from evennia_ai.formats.presets.export import dump_preset
from evennia_ai.formats.presets.reading import read_preset
from evennia_ai.formats.presets.secrets import drop_secrets
from tests.formats.presets.builders import a_file


@pytest.mark.parametrize(
    ("file", "where"),
    [
        ({"proxy_password": "hush"}, "proxy_password"),
        ({"custom_include_headers": "Authorization: hush"}, "custom_include_headers"),
        ({"api_key_openai": "hush"}, "api_key_openai"),
        ({"extensions": {"cloud": {"apiKey": "hush"}}}, "extensions.cloud.apiKey"),
        ({"extensions": {"list": [{"access_token": "hush"}]}}, "extensions.list[0].access_token"),
        ({"extensions": {"profile": {"custom_url": "hush"}}}, "extensions.profile.custom_url"),
        ({"data": {"Password": ["hush"]}}, "data.Password"),
    ],
)
def test_secret_is_removed_from_any_place_in_a_preset(file: dict[str, Any], where: str) -> None:
    preset = read_preset(a_file(**file), name="Test")
    assert preset.secrets == (where,)
    assert "hush" not in json.dumps(dict(preset.source))
    assert "hush" not in dump_preset(preset)
    assert not any("hush" in notice for notice in preset.notices)


@pytest.mark.parametrize(
    "file",
    [
        {"proxy_password": "", "reverse_proxy": "", "custom_url": None, "custom_include_body": ""},
        {"openai_max_tokens": 300, "max_context_unlocked": True, "token_bias": "x"},
        {"extensions": {"regex_scripts": [{"findRegex": "/secretary/", "scriptName": "s"}]}},
        {"assistant_prefill": "The password is tulip."},
    ],
)
def test_preset_with_only_empty_secrets_is_exported_unchanged(file: dict[str, Any]) -> None:
    """Most preset files have members for secrets that are empty. These members are exported."""
    whole = a_file(**file)
    assert json.loads(dump_preset(read_preset(whole, name="Test"))) == whole


def test_preset_file_without_secrets_is_not_copied() -> None:
    whole = a_file(extensions={"x": [1, 2]})
    assert drop_secrets(whole) == (whole, ())
    assert drop_secrets(whole)[0] is whole


def test_preset_text_that_mentions_secrets_is_kept() -> None:
    prompt = {"identifier": "vault", "name": "password", "content": "api_key: none of yours"}
    preset = read_preset(a_file(prompt), name="Test")
    assert preset.secrets == ()
    assert preset.by_identifier["vault"].content == "api_key: none of yours"
