"""Test that settings are typed and checked at the start, with keys only from the environment."""

from dataclasses import fields
from pathlib import Path

import pytest
from django.core import checks

from evennia_ai.engine.history.compaction.planning import CompactionRules, CompactionSettings
from evennia_ai.formats.cards.limits import CardLimits
from evennia_ai.services.settings import conf as conf_module
from evennia_ai.services.settings.conf import SettingError, conf
from evennia_ai.services.settings.game import SETTINGS


@pytest.fixture(autouse=True)
def _read_anew(monkeypatch):
    for name in ("BASE_URL", "MODEL", "API_KEY"):
        monkeypatch.delenv(f"EVENNIA_AI_{name}", raising=False)
    conf.cache_clear()
    yield
    conf.cache_clear()


def found() -> list[checks.CheckMessage]:
    return [m for m in checks.run_checks() if (m.id or "").startswith("evennia_ai.")]


def key_of_default() -> str:
    return conf().key_of(conf().profiles["default"]).reveal()


def test_game_without_settings_is_offline_with_defaults():
    settings = conf()

    assert settings.is_offline
    assert (settings.context_tokens, settings.reply_tokens) == (8192, 400)
    assert (settings.layout, settings.queue_limit, settings.hop_limit) == ("cache", 128, 3)
    assert settings.dynamic_block == "latest"
    assert settings.max_concurrent_calls == 4


@pytest.mark.req("S0-12")
def test_lines_get_the_time_by_default():
    assert SETTINGS["time_suffix"].default == "game"


def test_settings_replace_defaults(settings_of_ai):
    settings_of_ai(CONTEXT_TOKENS=4096, LAYOUT="classic", COOLDOWN_SECONDS=0)

    assert (conf().context_tokens, conf().layout, conf().cooldown_seconds) == (4096, "classic", 0)


def test_environment_takes_precedence_over_settings(settings_of_ai, monkeypatch):
    settings_of_ai(BASE_URL="http://localhost:1/v1", MODEL="small")
    monkeypatch.setenv("EVENNIA_AI_BASE_URL", "http://localhost:2/v1")
    monkeypatch.setenv("EVENNIA_AI_MODEL", "large")
    conf.cache_clear()

    assert (conf().base_url, conf().model) == ("http://localhost:2/v1", "large")


def test_key_comes_from_the_environment_and_is_never_shown(monkeypatch):
    monkeypatch.setenv("EVENNIA_AI_API_KEY", "sk-very-secret")
    conf.cache_clear()

    assert key_of_default() == "sk-very-secret"
    assert "secret" not in repr(conf())


def test_another_variable_may_have_the_key(settings_of_ai, monkeypatch):
    settings_of_ai(API_KEY_ENV="HARBOUR_KEY")
    monkeypatch.setenv("HARBOUR_KEY", "sk-other")
    conf.cache_clear()

    assert key_of_default() == "sk-other"


def test_relative_card_folder_is_in_the_game_folder(settings_of_ai, settings_of_game):
    settings_of_game(GAME_DIR="/games/harbour")
    settings_of_ai(CARD_FOLDER="world/people")

    assert conf().card_folder == Path("/games/harbour/world/people")


def test_relative_knowledge_folder_is_in_the_game_folder(settings_of_ai, settings_of_game):
    settings_of_game(GAME_DIR="/games/harbour")
    settings_of_ai(KNOWLEDGE_FOLDER="world/wiki")
    assert conf().knowledge_folder == Path("/games/harbour/world/wiki")


def test_absolute_card_folder_is_used_unchanged(settings_of_ai):
    settings_of_ai(CARD_FOLDER="/srv/cards")

    assert conf().card_folder == Path("/srv/cards")


def test_settings_of_the_demo_pass_the_checks():
    assert found() == []


@pytest.mark.parametrize(
    ("name", "value", "check"),
    [
        ("BASE_URL", "ftp://localhost", "E001"),
        ("BASE_URL", "localhost:8000", "E001"),
        ("BASE_URL", "http://anna:pw@localhost", "E001"),
        ("BASE_URL", "http://[bad", "E001"),
        ("BASE_URL", None, "E001"),
        ("MODEL", 7, "E002"),
        ("API_KEY_ENV", "not a name", "E003"),
        ("MODEL_TIMEOUT_SECONDS", 0, "E004"),
        ("MODEL_TIMEOUT_SECONDS", float("inf"), "E004"),
        ("CONTEXT_TOKENS", "8192", "E005"),
        ("CONTEXT_TOKENS", 8192.0, "E005"),
        ("REPLY_TOKENS", 0, "E006"),
        ("LAYOUT", "fast", "E007"),
        ("MAX_CONCURRENT_CALLS", True, "E008"),
        ("QUEUE_LIMIT", -1, "E009"),
        ("SPEAKER_LIMIT", 0, "E081"),
        ("HOP_LIMIT", None, "E010"),
        ("LINE_NPCS", 0, "E082"),
        ("LINE_CALLS", True, "E083"),
        ("COOLDOWN_SECONDS", -1, "E011"),
        ("ENGAGEMENT_SECONDS", "soon", "E012"),
        ("REFRESH_SECONDS", 0, "E013"),
        ("FALLBACK_LINE", "two\nlines", "E014"),
        ("FALLBACK_LINE", " ", "E014"),
        ("CARD_FOLDER", "", "E015"),
        ("PRESET_FOLDER", "", "E093"),
        ("KNOWLEDGE_FOLDER", "", "E060"),
        ("MAX_SOURCE_CHARACTERS", 1, "E016"),
        ("MESSAGES_IN_MEMORY", 999, "E086"),
        ("LORE", [], "E019"),
        ("LORE", {"scan_depth": -1}, "E019"),
        ("LORE", {"scan_dept": 4}, "E019"),
        ("LORE", {"dice": 0.5}, "E019"),
        ("LORE", {"dry_run": True}, "E019"),
        ("ASSEMBLY", [], "E089"),
        ("ASSEMBLY", {"tie": "role"}, "E089"),
        ("ASSEMBLY", {"rules": "agnai"}, "E089"),
        ("LORE_FACTS", "world.facts.of_the_tide", "E020"),
        ("LORE_FACTS", ["of_the_tide"], "E020"),
        ("LORE_FACTS", [len], "E020"),
        ("CARD_LIMITS", [], "E021"),
        ("CARD_LIMITS", {"file_byte": 4}, "E021"),
        ("CARD_LIMITS", {"file_bytes": 0}, "E021"),
        ("CARD_LIMITS", {"file_bytes": "4"}, "E021"),
        ("CARD_LIMITS", {"nesting": 65}, "E021"),
        ("KEEP_DAYS", -1, "E022"),
        ("KEEP_DAYS", 1.5, "E022"),
        ("SUMMARY_MODEL", None, "E023"),
        ("COMPACTION", [], "E024"),
        ("COMPACTION", {"keep_message": 4}, "E024"),
        ("COMPACTION", {"enabled": 1}, "E024"),
        ("COMPACTION", {"by": "magic"}, "E024"),
        ("COMPACTION", {"keep_messages": "4"}, "E024"),
        ("COMPACTION", {"turn_percent": 50}, "E024"),
        ("DYNAMIC_BLOCK", "newest", "E025"),
        ("DYNAMIC_BLOCK", None, "E025"),
        ("PROFILES", [], "E026"),
        ("PROFILES", {"cheap": {"temprature": 1}}, "E026"),
        ("PROFILES", {"cheap": {"api_key": "sk-secret"}}, "E026"),
        ("MODEL_ROLES", ["speaker"], "E027"),
        ("MODEL_ROLES", {"speakers": "default"}, "E027"),
        ("MODEL_ROLES", {"speaker": []}, "E027"),
    ],
)
def test_wrong_value_fails_at_start_with_a_hint(settings_of_ai, name, value, check):
    settings_of_ai(**{name: value})
    (message,) = found()

    assert message.id == f"evennia_ai.{check}"
    assert f"EVENNIA_AI_{name}" in message.msg
    assert message.hint.startswith("It must be ")


def test_default_lore_rules_limit_each_speaker():
    assert (conf().lore.speaker_share_percent, conf().lore.speaker_matches) == (50, 40)
    assert conf().lore_facts == ()


def test_missing_lore_rules_keep_their_defaults(settings_of_ai):
    settings_of_ai(LORE={"scan_depth": 6, "speaker_matches": 10, "clock": "seconds"})
    rules = conf().lore

    assert (rules.scan_depth, rules.speaker_matches, rules.clock) == (6, 10, "seconds")
    assert (rules.speaker_share_percent, rules.recursive) == (50, True)


def test_missing_card_limit_keeps_its_default(settings_of_ai):
    settings_of_ai(CARD_LIMITS={"file_bytes": 4096})

    assert conf().card_limits == CardLimits(file_bytes=4096)


def test_misspelt_limit_suggests_the_right_name(settings_of_ai):
    settings_of_ai(CARD_LIMITS={"file_byte": 4096})

    with pytest.raises(SettingError, match=r"no limit 'file_byte'; did you mean file_bytes\?"):
        conf()


def test_histories_are_compacted_by_a_model_by_default():
    settings = conf()

    assert (settings.compaction, settings.summary_model) == (CompactionSettings(), "")


def test_missing_compaction_rules_keep_their_defaults(settings_of_ai):
    settings_of_ai(COMPACTION={"by": "extract", "turn_percent": 90})

    rules = CompactionRules(turn_percent=90)
    assert conf().compaction == CompactionSettings(by="extract", rules=rules)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"keep_message": 4}, "COMPACTION: there is no rule 'keep_message'; did you mean"),
        ({"by": "magic"}, 'COMPACTION.by: must be "model" or "extract", not \'magic\'.'),
        ({"turn_percent": 50}, "COMPACTION: result_percent, idle_percent, turn_percent cannot be"),
    ],
)
def test_wrong_compaction_rule_is_named(settings_of_ai, given, told):
    settings_of_ai(COMPACTION=given)

    assert told in found()[0].msg


def test_preset_sillytavern_brings_its_own_lore_rules(settings_of_ai):
    settings_of_ai(LORE={"rules": "sillytavern"})

    assert (conf().lore.rules, conf().lore.scan_depth) == ("sillytavern", 2)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"scan_depth": -1}, "LORE.scan_depth: must be a whole number, 0 or more, not -1."),
        ({"dice": None}, "LORE.dice: is only for scenarios; remove it."),
        ("deep", "LORE: must be a dictionary."),
    ],
)
def test_wrong_lore_rule_is_named(settings_of_ai, given, told):
    settings_of_ai(LORE=given)

    assert found()[0].msg == f"EVENNIA_AI_{told}"
    assert found()[0].hint.startswith("It must be a dictionary with rules of lore")


def test_address_with_a_password_is_not_repeated(settings_of_ai):
    settings_of_ai(BASE_URL="http://anna:hunter2@localhost")

    assert "hunter2" not in found()[0].msg


def test_address_without_a_model_is_refused(settings_of_ai):
    settings_of_ai(BASE_URL="http://localhost:8000/v1")

    assert [m.id for m in found()] == ["evennia_ai.E017"]


def test_reply_that_leaves_the_prompt_no_tokens_is_refused(settings_of_ai):
    settings_of_ai(CONTEXT_TOKENS=1000, REPLY_TOKENS=1000)

    assert [m.id for m in found()] == ["evennia_ai.E018"]


def test_misspelt_setting_gives_a_warning(settings_of_ai):
    settings_of_ai(CONTEXT_TOKNES=4096)
    (message,) = found()

    assert message.id == "evennia_ai.W001"
    assert message.hint == "Did you mean EVENNIA_AI_CONTEXT_TOKENS?"


def test_wrong_settings_are_never_used(settings_of_ai):
    settings_of_ai(LAYOUT="fast")

    with pytest.raises(SettingError, match=r"EVENNIA_AI_LAYOUT 'fast' .*\"classic\""):
        conf()


# Profiles of models, and which roles use them

CHEAP = {"cheap": {"base_url": "http://localhost:1/v1", "model": "small"}}


def test_model_settings_without_profiles_define_the_default_profile(settings_of_ai):
    settings_of_ai(BASE_URL="http://localhost:1/v1", MODEL="large", REPLY_TOKENS=200)
    profile = conf().profiles["default"]

    assert (profile.client, profile.base_url, profile.model, profile.reply_tokens) == (
        "openai",
        "http://localhost:1/v1",
        "large",
        200,
    )


def test_every_role_uses_the_default_profile_by_default():
    assert set(conf().model_roles.values()) == {("default",)}


def test_prompt_limit_follows_the_speakers_model(settings_of_ai):
    cheap = {**CHEAP["cheap"], "context_tokens": 4096}
    settings_of_ai(PROFILES={"cheap": cheap}, MODEL_ROLES={"speaker": ["cheap", "default"]})

    assert conf().limit_tokens == 4096 - 400


def test_role_without_setting_uses_the_speakers_profiles(settings_of_ai):
    settings_of_ai(PROFILES=CHEAP, MODEL_ROLES={"speaker": ["cheap", "default"]})

    assert conf().model_roles["planner"] == ("cheap", "default")
    assert not conf().is_offline


def test_role_uses_its_own_profiles(settings_of_ai):
    settings_of_ai(PROFILES=CHEAP, MODEL_ROLES={"decider": "cheap"})

    assert conf().model_roles["decider"] == ("cheap",)
    assert conf().model_roles["speaker"] == ("default",)


def test_summary_model_makes_a_profile_from_default(settings_of_ai):
    settings_of_ai(BASE_URL="http://localhost:1/v1", MODEL="large", SUMMARY_MODEL="small")
    (name,) = conf().model_roles["summariser"]

    profile = conf().profiles[name]
    assert (profile.model, profile.base_url) == ("small", "http://localhost:1/v1")
    assert conf().model_roles["speaker"] == ("default",)


def test_profile_has_the_key_whose_variable_it_names(settings_of_ai, monkeypatch):
    settings_of_ai(PROFILES={"cheap": {**CHEAP["cheap"], "api_key_env": "CHEAP_KEY"}})
    monkeypatch.setenv("EVENNIA_AI_API_KEY", "sk-default")
    monkeypatch.setenv("CHEAP_KEY", "sk-cheap")
    conf.cache_clear()

    profile = conf().profiles["cheap"]
    assert conf().key_of(profile).reveal() == "sk-cheap"
    assert "sk-" not in repr(conf())


def test_profile_elsewhere_does_not_get_the_key_of_default(settings_of_ai, monkeypatch):
    settings_of_ai(PROFILES=CHEAP)
    monkeypatch.setenv("EVENNIA_AI_API_KEY", "sk-default")
    conf.cache_clear()

    assert not conf().key_of(conf().profiles["cheap"])


@pytest.mark.parametrize(
    ("given", "check", "told"),
    [
        (
            {"PROFILES": CHEAP, "MODEL_ROLES": {"speaker": ["chaep"]}},
            "E028",
            "EVENNIA_AI_MODEL_ROLES['speaker']: there is no profile 'chaep'; did you mean cheap?",
        ),
        (
            {
                "BASE_URL": "http://localhost:2",
                "MODEL": "m",
                "PROFILES": {"default": CHEAP["cheap"]},
            },
            "E029",
            "EVENNIA_AI_BASE_URL and EVENNIA_AI_PROFILES['default'] both say where a model is.",
        ),
        (
            {"SUMMARY_MODEL": "small", "MODEL_ROLES": {"summariser": "default"}},
            "E029",
            "EVENNIA_AI_SUMMARY_MODEL and EVENNIA_AI_MODEL_ROLES both say who summarises.",
        ),
        (
            {"PROFILES": {"cheap": {"base_url": "http://localhost:1/v1"}}},
            "E030",
            "Profile 'cheap' has no model: name the model to ask for at its address.",
        ),
        (
            {"PROFILES": {"cheap": {**CHEAP["cheap"], "context_tokens": 300}}},
            "E030",
            "Profile 'cheap' leaves no tokens for the prompt: its reply_tokens 400 are not",
        ),
    ],
)
def test_contradictory_profiles_fail_at_start(settings_of_ai, given, check, told):
    settings_of_ai(**given)
    (message,) = found()

    assert message.id == f"evennia_ai.{check}"
    assert told in message.msg
    assert message.hint


def test_missing_key_gives_a_warning(settings_of_ai, monkeypatch):
    monkeypatch.delenv("CHEAP_KEY", raising=False)
    cheap = {**CHEAP["cheap"], "api_key_env": "CHEAP_KEY"}
    settings_of_ai(PROFILES={"cheap": cheap}, MODEL_ROLES={"speaker": "cheap"})
    (message,) = found()

    assert message.id == "evennia_ai.W002"
    assert message.msg == "Profile 'cheap': the environment has no CHEAP_KEY."


def test_missing_key_with_another_name_gives_a_warning(settings_of_ai, monkeypatch):
    monkeypatch.delenv("HARBOUR_KEY", raising=False)
    settings_of_ai(BASE_URL="http://localhost:1/v1", MODEL="large", API_KEY_ENV="HARBOUR_KEY")

    assert [message.msg for message in found()] == [
        "Profile 'default': the environment has no HARBOUR_KEY."
    ]


def test_missing_tables_of_prices_give_a_warning_unless_the_profile_has_a_price(
    settings_of_ai, monkeypatch
):
    installed = conf_module._is_installed
    monkeypatch.setattr(
        conf_module, "_is_installed", lambda name: name != "genai_prices" and installed(name)
    )
    settings_of_ai(BASE_URL="https://api.example/v1", MODEL="large")
    (message,) = found()
    assert message.id == "evennia_ai.W008"
    assert "the price of profile 'default' is not known" in message.msg
    settings_of_ai(
        BASE_URL="https://api.example/v1",
        MODEL="large",
        PROFILES={"default": {"price": {"input": 1, "output": 2}}},
    )
    assert found() == []


@pytest.mark.parametrize(
    "address",
    ["http://models.example/v1", "http://10.0.0.7:8080/v1", "http://[fe80::1]/v1", "http://box/v1"],
)
def test_key_sent_unencrypted_gives_a_warning(settings_of_ai, monkeypatch, address):
    monkeypatch.setenv("HARBOUR_KEY", "sk-1")
    settings_of_ai(BASE_URL=address, MODEL="large", API_KEY_ENV="HARBOUR_KEY")
    (message,) = found()

    assert message.id == "evennia_ai.W007"
    assert message.msg.startswith("Profile 'default' sends its key over plain http to another")


@pytest.mark.parametrize(
    "address",
    [
        "https://models.example/v1",
        "http://localhost:8080/v1",
        "http://model.localhost/v1",
        "http://127.9.9.9/v1",
        "http://[::1]:8080/v1",
    ],
)
def test_key_sent_encrypted_gives_no_warning(settings_of_ai, monkeypatch, address):
    monkeypatch.setenv("HARBOUR_KEY", "sk-1")
    settings_of_ai(BASE_URL=address, MODEL="large", API_KEY_ENV="HARBOUR_KEY")

    assert found() == []


def test_server_without_key_may_be_anywhere(settings_of_ai, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    settings_of_ai(BASE_URL="http://models.example/v1", MODEL="large")

    assert found() == []


def test_server_that_needs_no_key_gives_no_warning(settings_of_ai):
    settings_of_ai(BASE_URL="http://localhost:1/v1", MODEL="large")

    assert found() == []


def test_profiles_unused_by_the_speaker_give_a_warning(settings_of_ai):
    settings_of_ai(PROFILES=CHEAP)
    (message,) = found()

    assert message.id == "evennia_ai.W003"
    assert "NPCs speak without a model, although there are profiles: cheap." in message.msg


def test_setting_is_declared_in_exactly_one_field():
    """A new setting is one field of the model. tests/docs compares it with its row on the page."""
    settings = conf()
    named = {field.name for field in fields(settings)} - {"game_folder", "api_keys"}

    assert list(SETTINGS) == [field.name for field in fields(settings) if field.name in named]
    assert all(setting.id and setting.wanted for setting in SETTINGS.values())
