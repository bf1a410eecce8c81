"""The settings of one NPC: checked before they are stored, cached, and seen when they change."""

from dataclasses import replace

import pytest
from django.test import override_settings
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.actors import THE_GAME, trusted
from evennia_ai.npc.mind.handler import AIHandler
from evennia_ai.npc.npc_settings import (
    ATTRIBUTE,
    MOST_CHANGES,
    SettingChange,
    change_settings,
    changes_of,
    given_to,
    settings_in,
    settings_of,
)
from evennia_ai.npc.runtime import current
from evennia_ai.services.llm.profiles import ModelProfile
from evennia_ai.services.settings.conf import SettingError
from evennia_ai.services.settings.npc import MODES, NAMES, USUAL

CHEAP = {"cheap": {"base_url": "http://127.0.0.1:9/v1", "model": "small"}}


def refused(npc, **values):
    before = npc.attributes.get(ATTRIBUTE)
    with pytest.raises(SettingError) as refusal:
        change_settings(npc, **values, by=THE_GAME)
    assert npc.attributes.get(ATTRIBUTE) == before
    return str(refusal.value)


def test_npc_follows_the_games_settings_until_one_is_set(stage):
    assert settings_of(stage.npc) == USUAL
    assert given_to(stage.npc) == frozenset()


def test_changed_setting_survives_a_reload(stage):
    made = change_settings(
        stage.npc, mode="always", languages=["common", "elvish"], tick_seconds=60, by=THE_GAME
    )

    assert (made.mode, made.languages, made.tick_seconds) == ("always", ("common", "elvish"), 60)
    stage.npc.attributes.reset_cache()
    assert AIHandler(stage.npc, current).settings == made
    assert given_to(stage.npc) == {"mode", "languages", "tick_seconds"}


def test_npc_setting_follows_the_game_again_after_it_is_set_to_none(stage):
    change_settings(stage.npc, mode="always", temperature=0.5, by=THE_GAME)
    change_settings(stage.npc, mode=None, by=THE_GAME)

    assert settings_of(stage.npc) == replace(USUAL, temperature=0.5)


def test_reading_unchanged_settings_makes_no_query_and_no_new_value(stage, no_queries):
    change_settings(stage.npc, mode="always", by=THE_GAME)
    first = settings_of(stage.npc)
    with no_queries():
        assert settings_of(stage.npc) is first


def test_reading_settings_of_an_npc_without_any_makes_no_query(stage, no_queries):
    settings_of(stage.npc)
    with no_queries():
        assert settings_of(stage.npc) is USUAL


def test_change_of_the_attribute_by_other_code_is_seen(stage):
    change_settings(stage.npc, mode="always", by=THE_GAME)
    settings_of(stage.npc)
    stage.npc.attributes.get(ATTRIBUTE)["values"]["mode"] = "whisper_only"

    assert settings_of(stage.npc).mode == "whisper_only"


def test_removed_attribute_resets_all_settings(stage):
    change_settings(stage.npc, mode="always", by=THE_GAME)
    settings_of(stage.npc)
    stage.npc.attributes.remove(ATTRIBUTE)

    assert settings_of(stage.npc) == USUAL


def test_invalid_stored_value_is_ignored_and_logged_once(stage, logged):
    stored = {"values": {"mode": "loud", "temperature": 0.5, "colour": "red"}}
    stage.npc.attributes.add(ATTRIBUTE, stored)

    assert settings_of(stage.npc) == replace(USUAL, temperature=0.5)
    assert settings_of(stage.npc) == replace(USUAL, temperature=0.5)
    assert len([line for line in logged if "mode: must be" in line]) == 1
    assert len([line for line in logged if "there is no setting 'colour'" in line]) == 1


@pytest.mark.parametrize("stored", [[], "always", {"values": []}, {"changes": 7}, {}])
def test_stored_junk_counts_as_no_settings(stage, stored):
    stage.npc.attributes.add(ATTRIBUTE, stored)

    assert settings_of(stage.npc) == USUAL
    assert changes_of(stage.npc) == ()
    assert change_settings(stage.npc, mode="always", by=THE_GAME).mode == "always"


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=8,
)
STORED = st.fixed_dictionaries(
    {"values": st.dictionaries(st.sampled_from(NAMES) | st.integers(), JUNK), "changes": JUNK}
)


class Stored:
    """An object in place of an NPC, whose Attribute has this value."""

    id, key = 7, "Oren"

    def __init__(self, value):
        self.attributes, self.db_value = self, value

    def get(self, key, *, return_obj):
        return self


@given(STORED | JUNK)
def test_any_stored_value_gives_usable_settings(stored):
    npc = Stored(stored)
    settings, _ = settings_in(stored)

    assert settings.mode in MODES
    assert 0 <= settings.talkativeness <= 1
    assert all(isinstance(word, str) for word in (*settings.tools, *settings.react_to))
    assert all(isinstance(change, SettingChange) for change in changes_of(npc))


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"mode": "loud"}, "Oren: mode: must be 'name_match', 'always', 'whisper_only' or"),
        ({"mood": "bad"}, "there is no setting 'mood'; did you mean mode?"),
        ({"temperature": 3}, "temperature: must be less than or equal to 2, not 3"),
        ({"temperature": "hot"}, "temperature: must be a valid number, not 'hot'"),
        ({"top_p": 0}, "top_p: must be greater than 0, not 0"),
        ({"reply_tokens": 0}, "reply_tokens: must be greater than or equal to 1, not 0"),
        ({"reply_tokens": 8192}, "reply_tokens must be fewer than the 8192 of the profile"),
        ({"cooldown_seconds": -1}, "cooldown_seconds: must be greater than or equal to 0"),
        ({"tick_seconds": 1}, "tick_seconds: must be 0 for never, or at least 5"),
        ({"hop_limit": 1.5}, "hop_limit: must be a valid integer, not 1.5"),
        ({"talkativeness": 2}, "talkativeness: must be less than or equal to 1, not 2"),
        ({"limits": {"call_per_minute": 3}}, "did you mean calls_per_minute?"),
        ({"limits": {"calls_per_minute": -3}}, "must be greater than or equal to 0, not -3"),
        ({"thinking": "two\nlines"}, "thinking: must be one line of printable text"),
        ({"languages": ["two words"]}, "languages: "),
        ({"profile": "cheep"}, "profile: there is no profile 'cheep'; did you mean cheap?"),
    ],
)
def test_invalid_change_is_refused_and_changes_nothing(stage, values, told):
    change_settings(stage.npc, temperature=0.5, by=THE_GAME)
    with override_settings(EVENNIA_AI_PROFILES=CHEAP):
        message = refused(stage.npc, **values)

    assert told in message
    assert message.endswith("Nothing was changed.")


@pytest.mark.parametrize("name", ["api_key", "api_key_env", "base_url", "client", "extra"])
def test_address_and_key_of_a_model_cannot_be_set_for_an_npc(stage, name):
    assert f"there is no setting {name!r}" in refused(stage.npc, **{name: "http://evil.example"})


def test_changes_are_stored_with_their_author_and_logged(stage, logged):
    change_settings(stage.npc, by=trusted("Mara"), mode="always")
    change_settings(stage.npc, by=trusted("Mara"), mode="decide", temperature=0.5)
    change_settings(stage.npc, by=trusted("Pim"), mode=None)

    told = [(one.by, one.name, one.old, one.new) for one in changes_of(stage.npc)]
    assert told == [
        ("Mara", "mode", None, "always"),
        ("Mara", "mode", "always", "decide"),
        ("Mara", "temperature", None, 0.5),
        ("Pim", "mode", "decide", None),
    ]
    assert logged[-1].endswith("mode was 'decide', is None, set by Pim")


def test_invalid_stored_value_does_not_prevent_another_change(stage):
    stage.npc.attributes.add(ATTRIBUTE, {"values": {"profile": "gone", "mode": "always"}})
    change_settings(stage.npc, by=trusted("Mara"), temperature=0.5)

    assert settings_of(stage.npc) == replace(USUAL, mode="always", temperature=0.5)
    told = [(one.name, one.old, one.new) for one in changes_of(stage.npc)]
    assert told == [("profile", "gone", None), ("temperature", None, 0.5)]


def test_setting_the_same_value_again_is_no_change(stage):
    change_settings(stage.npc, mode="always", by=THE_GAME)
    change_settings(stage.npc, mode="always", by=THE_GAME)

    assert len(changes_of(stage.npc)) == 1


def test_only_the_newest_changes_are_stored(stage):
    for number in range(MOST_CHANGES + 3):
        change_settings(stage.npc, temperature=number / 100, by=THE_GAME)

    assert len(changes_of(stage.npc)) == MOST_CHANGES
    assert changes_of(stage.npc)[-1].new == (MOST_CHANGES + 2) / 100


def test_profile_gets_the_npcs_own_values():
    profile = ModelProfile(name="default", context_tokens=1000, reply_tokens=100)
    made = replace(USUAL, temperature=0.2, reply_tokens=50).applied_to(profile)

    assert (made.sampling.temperature, made.sampling.top_p, made.reply_tokens) == (0.2, None, 50)


def test_too_large_reply_tokens_of_an_npc_are_replaced_by_those_of_the_profile():
    profile = ModelProfile(name="small", context_tokens=1000, reply_tokens=100)

    assert replace(USUAL, reply_tokens=2000).applied_to(profile).reply_tokens == 100
