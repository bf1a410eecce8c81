"""Test that profiles are read strictly, with errors that name profile and field and no key."""

from typing import Any

import pytest

from evennia_ai.engine.errors import FormatError
from evennia_ai.services.llm.profiles import (
    ModelProfile,
    Price,
    Sampling,
    problem_of_profile,
    profiles_of,
    read_profiles,
    read_roles,
)

GAME = ModelProfile(
    name="default",
    base_url="http://127.0.0.1:8080/v1",
    model="large",
    api_key_env="EVENNIA_AI_API_KEY",
    reply_tokens=300,
    context_tokens=4096,
)


def made(**given: dict[str, Any]) -> dict[str, ModelProfile]:
    return profiles_of(read_profiles(given, where="PROFILES"), game=GAME)


def refused(given: Any) -> str:
    with pytest.raises(FormatError) as refusal:
        read_profiles(given, where="PROFILES")
    return str(refusal.value)


def test_profile_default_always_exists() -> None:
    assert made() == {"default": GAME}


def test_profile_without_place_inherits_from_default() -> None:
    dreamy = made(dreamy={"temperature": 1.3, "stop": ["\n"]})["dreamy"]
    assert dreamy.sampling == Sampling(temperature=1.3, stop=("\n",))
    assert (dreamy.base_url, dreamy.model, dreamy.api_key_env) == (
        GAME.base_url,
        "large",
        "EVENNIA_AI_API_KEY",
    )


def test_profile_at_another_address_does_not_inherit_the_key() -> None:
    cheap = made(cheap={"base_url": "https://elsewhere.example/v1", "model": "small"})["cheap"]
    assert (cheap.api_key_env, cheap.client) == ("", "openai")
    assert (cheap.reply_tokens, cheap.context_tokens) == (300, 4096)


def test_profile_with_another_client_inherits_neither_address_nor_key() -> None:
    claude = made(claude={"client": "anthropic", "model": "claude"})["claude"]
    assert (claude.base_url, claude.api_key_env) == (
        "https://api.anthropic.com",
        "ANTHROPIC_API_KEY",
    )


def test_anthropic_profile_at_its_own_address_uses_only_its_named_key() -> None:
    given = {"client": "anthropic", "model": "claude", "base_url": "http://127.0.0.1:9/"}
    assert made(proxy=given)["proxy"].api_key_env == ""


def test_profile_with_a_script_uses_the_scripted_client() -> None:
    assert made(demo={"script": "world/demo.yaml"})["demo"].client == "scripted"


def test_profile_default_can_be_changed_by_name() -> None:
    profiles = made(default={"temperature": 0.2}, other={"top_p": 0.5})
    assert profiles["default"].sampling == Sampling(temperature=0.2)
    assert profiles["other"].sampling == Sampling(temperature=0.2, top_p=0.5)


def test_price_belongs_to_the_model_for_which_it_is_given() -> None:
    price = {"input": 1, "output": 2.5, "cached": 0.1}
    profiles = made(
        default={"price": price},
        warm={"temperature": 0.9},
        small={"model": "tiny"},
        dear={"model": "large", "price": {"input": 9, "output": 9}},
        far={"base_url": "https://api.example/v1", "model": "x"},
    )
    found = {name: profile.price for name, profile in profiles.items()}
    of_default = Price(input=1, output=2.5, cached=0.1)
    assert (found["default"], found["warm"]) == (of_default, of_default)
    assert (found["small"], found["far"]) == (None, None)
    assert found["dear"] == Price(input=9, output=9)


def test_prompt_limit_is_the_context_without_the_reply() -> None:
    assert GAME.limit_tokens == 3796


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([], "PROFILES: must be a dictionary of profiles"),
        ({"cheap": []}, "PROFILES['cheap']: must be a dictionary"),
        ({"two words": {}}, "PROFILES['two words']: a profile's name has letters, digits"),
        ({7: {}}, "PROFILES[7]: a profile's name has letters"),
        (
            {"cheap": {"temprature": 1}},
            "PROFILES['cheap']: there is no field 'temprature'; did you mean temperature?",
        ),
        (
            {"cheap": {"temperature": 5}},
            "PROFILES['cheap'].temperature: must be less than or equal to 2, not 5",
        ),
        ({"cheap": {"temperature": float("nan")}}, ".temperature: must be a finite number"),
        ({"cheap": {"reply_tokens": "400"}}, ".reply_tokens: must be a valid integer, not '400'"),
        ({"cheap": {"stream": 1}}, ".stream: must be a valid boolean, not 1"),
        ({"cheap": {"client": "magic"}}, ".client: must be 'openai', 'anthropic', 'scripted' or"),
        ({"cheap": {"tools": "some"}}, ".tools: must be 'native', 'schema' or 'none', not 'some'"),
        ({"cheap": {"schema": "xml"}}, ".schema: must be 'native' or 'text', not 'xml'"),
        ({"cheap": {"extra": {"messages": []}}}, ".extra: cannot contain messages: the game sets"),
        ({"cheap": {"extra": {"x": object()}}}, ".extra: must be plain JSON"),
        ({"cheap": {"price": 3}}, ".price: must be a dictionary, such as {'input': 0.25, 'output'"),
        ({"cheap": {"price": {"input": 1}}}, ".price: must be a dictionary, such as"),
        (
            {"cheap": {"price": {"input": -1, "output": 2}}},
            ".price: price.input: must be a number of dollars from 0 on, not -1",
        ),
        (
            {"cheap": {"price": {"input": 1, "output": 2, "cash": 3}}},
            ".price: there is no price 'cash'",
        ),
    ],
)
def test_invalid_profile_is_named_with_its_field(given: Any, told: str) -> None:
    assert told in refused(given)


def test_all_problems_of_profiles_are_reported_at_once() -> None:
    told = refused({"a": {"seed": "x", "top_p": 2}, "b": {"model": 7}})
    assert all(part in told for part in ("['a'].seed", "['a'].top_p", "['b'].model"))


def test_key_instead_of_a_variable_name_is_refused_and_not_repeated() -> None:
    told = refused({"cheap": {"api_key_env": "sk-very-secret-4711"}})
    assert "must be the NAME of an environment variable" in told
    assert "sk-very" not in told


def test_key_in_a_field_of_its_own_is_refused_and_not_repeated() -> None:
    told = refused({"cheap": {"api_key": "sk-very-secret-4711"}})
    assert "['cheap'].api_key: never put a key in settings" in told
    assert "sk-very" not in told


def test_address_with_a_password_is_refused_and_not_repeated() -> None:
    told = refused({"cheap": {"base_url": "http://anna:hunter2@localhost"}})
    assert "['cheap'].base_url: must be an http or https address without a name" in told
    assert "hunter2" not in told


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"client": "openai", "model": "m"}, "has no base_url"),
        ({"base_url": "http://127.0.0.1/v1"}, "has no model"),
        ({"client": "scripted"}, "has no script"),
        ({"reply_tokens": 4096}, "its reply_tokens 4096 are not fewer than 4096"),
        ({"client": "offline"}, ""),
        ({"temperature": 1}, ""),
    ],
)
def test_unusable_profile_says_why(fields: dict[str, Any], told: str) -> None:
    problem = problem_of_profile(made(cheap=fields)["cheap"])
    assert told in problem
    assert bool(told) == bool(problem)


def test_role_names_one_profile_or_several_in_order() -> None:
    read = read_roles({"speaker": ["default", "cheap", "default"], "decider": "cheap"}, where="R")
    assert read == {"speaker": ("default", "cheap"), "decider": ("cheap",)}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("speaker", "R: must be a dictionary of roles"),
        ({"speakers": "x"}, "R: there is no role 'speakers'; did you mean speaker?"),
        (
            {"speaker": []},
            "R['speaker']: is an empty list; write the name of a profile, or remove it",
        ),
        ({"speaker": 7}, "R['speaker']: must be a profile's name or a list of them"),
        ({"speaker": ["a", 7]}, "R['speaker']: must be a profile's name or a list of them"),
    ],
)
def test_invalid_role_is_named(given: Any, told: str) -> None:
    with pytest.raises(FormatError) as refusal:
        read_roles(given, where="R")
    assert str(refusal.value) == told


def test_none_in_extra_leaves_a_field_out() -> None:
    extra = {"user": None, "temperature": None, "top_k": 5}
    assert made(strict={"extra": extra})["strict"].sampling.extra == extra


@pytest.mark.parametrize("needed", ["model", "messages", "tools", "max_tokens", "stream"])
def test_needed_field_cannot_be_left_out_by_extra(needed: str) -> None:
    assert f"cannot leave out {needed}" in refused({"strict": {"extra": {needed: None}}})


def test_reply_limit_is_the_name_of_a_field() -> None:
    problem = refused({"new": {"extra": {"max_completion_tokens": 90}}})
    assert "cannot contain max_completion_tokens" in problem
    assert "set reply_limit to its name" in problem
    newer = made(new={"reply_limit": "max_completion_tokens"})["new"]
    assert newer.sampling.reply_limit == "max_completion_tokens"
