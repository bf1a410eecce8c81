"""Test the check of a profile: each problem is one finding that says what to do."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from evennia_ai.engine.errors import (
    EvenniaAIError,
    ModelRefused,
    ModelRubbish,
    ModelTimeout,
    ModelUnavailable,
    RoleWish,
)
from evennia_ai.engine.prompt.messages import ToolCall
from evennia_ai.services.endpoints import Access
from evennia_ai.services.llm import doctor
from evennia_ai.services.llm.chat import ChatReply, ChatRequest, Listener, Usage
from evennia_ai.services.llm.clients.scripted import ScriptedModel
from evennia_ai.services.llm.doctor import Finding, examine
from evennia_ai.services.llm.probes import Answer, Probe
from evennia_ai.services.llm.profiles import ModelProfile

PROFILE = ModelProfile(
    name="quick",
    base_url="http://127.0.0.1:9/v1",
    model="small",
    api_key_env="QUICK_KEY",
    context_tokens=8192,
)
LISTED = Answer(status=200, json={"data": [{"id": "small"}]})
MISSING = Answer(status=404)
REPLY = ChatReply(text="It rains.", model="small", usage=Usage(input_tokens=20, output_tokens=40))
CALLED = replace(REPLY, text="", tool_calls=(ToolCall(id="1", name="look", arguments="{}"),))
IN_FORM = replace(REPLY, text='{"colour": "grey"}')


class Server:
    """An imitation of a server. It answers by the end of the address, and replies in order."""

    def __init__(
        self,
        answers: dict[str, Answer] | None = None,
        *,
        replies: Sequence[ChatReply | EvenniaAIError] = (REPLY, CALLED, IN_FORM),
        seconds: float = 0.5,
    ) -> None:
        self.answers = {"/v1/models": LISTED, **(answers or {})}
        self.replies = list(replies)
        self.seconds = seconds
        self.clock = 100.0
        self.asked: list[ChatRequest] = []
        self.probed: list[Probe] = []
        self.allowed = 0.0
        self.access = Access(model=ScriptedModel([]))

    async def fetch(self, probes: Sequence[Probe], seconds: float) -> list[Answer]:
        self.probed += probes
        self.allowed += seconds
        return [
            next((told for end, told in self.answers.items() if one.address.endswith(end)), MISSING)
            for one in probes
        ]

    async def ask(self, request: ChatRequest, hear: Listener | None) -> ChatReply:
        self.asked.append(request)
        self.allowed += request.timeout_seconds
        self.clock += min(self.seconds, request.timeout_seconds)
        reply = self.replies.pop(0)
        if isinstance(reply, EvenniaAIError):
            raise reply
        if hear is not None:
            hear(reply.text[:3])
            self.clock += 1.0
        return reply


def found_by(
    server: Server, profile: ModelProfile = PROFILE, *, has_key: bool = True
) -> dict[str, Finding]:
    """Return the findings in a dictionary, by their subjects."""
    findings = asyncio.run(
        examine(
            profile,
            has_key=has_key,
            restart="then restart",
            fetch=server.fetch,
            request=replace(server.access, profile=profile).request,
            learned=server.access.learned,
            ask=server.ask,
            now=lambda: server.clock,
        )
    )
    by_about = {one.about: one for one in findings}
    assert len(by_about) == len(findings)
    return by_about


def test_faultless_server_has_only_good_findings() -> None:
    entry = {"id": "small", "max_model_len": 8192}
    found = found_by(Server({"/v1/models": Answer(status=200, json={"data": [entry]})}))
    assert list(found) == [
        *("address", "key", "model", "reply", "streaming", "speed", "window", "tools", "schema")
    ]
    assert {one.state for one in found.values()} == {"ok"}
    assert found["speed"].told == "about 40 tokens a second"
    assert found["streaming"].told == "first words after 0.5 s"
    assert not any("\n" in one.line() for one in found.values())


def test_unreachable_address_ends_the_check() -> None:
    found = found_by(Server({"/v1/models": Answer(problem="Connection refused")}))
    assert list(found) == ["address"]
    assert found["address"].state == "FAIL"
    assert "Connection refused" in found["address"].told
    assert "Start the server" in found["address"].advice


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("http://127.0.0.1:9", "http://127.0.0.1:9/v1"),
        ("http://127.0.0.1:9/", "http://127.0.0.1:9/v1"),
        ("http://127.0.0.1:9/v1/chat/completions", "http://127.0.0.1:9/v1"),
        ("http://127.0.0.1:9/api/v2", "http://127.0.0.1:9/v1"),
        ("https://router.example/v1x", "https://router.example/api/v1"),
    ],
)
@pytest.mark.parametrize("refusal", [MISSING, Answer(status=200, json={"error": "Unexpected"})])
def test_address_with_another_path_is_suggested(wrong: str, right: str, refusal: Answer) -> None:
    server = Server({f"{right}/models": LISTED, "/v1/models": refusal, "": refusal})
    server.answers = {f"{right}/models": LISTED, "": refusal}
    found = found_by(server, replace(PROFILE, base_url=wrong))
    assert list(found) == ["address"]
    assert found["address"].advice == f'Set base_url to "{right}"'
    origin = right.split("//")[1].partition("/")[0]
    assert all(one.address.split("//")[1].startswith(origin) for one in server.probed)


def test_redirect_is_reported_and_not_followed() -> None:
    moved = Answer(status=301, location="https://127.0.0.1:9/v1/models")
    found = found_by(Server({"/v1/models": moved}))
    assert list(found) == ["address"]
    assert "redirects to https://127.0.0.1:9" in found["address"].told


@pytest.mark.parametrize("has_key", [True, False])
def test_wrong_or_missing_key_is_reported_with_its_variable(has_key: bool) -> None:
    found = found_by(Server({"/v1/models": Answer(status=401)}), has_key=has_key)
    assert list(found) == ["address", "key"]
    assert found["key"].state == "FAIL"
    assert "QUICK_KEY, then restart" in found["key"].advice
    assert ("has none" in found["key"].told) is not has_key


def test_key_needed_only_by_the_model_is_reported() -> None:
    server = Server(replies=[ModelRefused("small", 401, "no key")])
    found = found_by(server, has_key=False)
    assert (found["key"].state, found["reply"].state) == ("FAIL", "FAIL")


def test_no_key_is_fine_when_none_is_required() -> None:
    assert found_by(Server(), has_key=False)["key"].state == "ok"


def test_similar_names_are_suggested_for_an_unknown_model() -> None:
    names = [{"id": name} for name in ("llama3.2:3b", "qwen3:4b", "llama3.1:8b", "gemma")]
    server = Server(
        {"/v1/models": Answer(status=200, json={"data": names})},
        replies=[ModelRefused("small", 404, "no such model")],
    )
    found = found_by(server, replace(PROFILE, model="llama3.2"))
    assert found["model"].state == "FAIL"
    assert "Nearest: llama3.2:3b, llama3.1:8b" in found["model"].advice


def test_server_that_accepts_any_model_name_gives_a_note() -> None:
    names = Answer(status=200, json={"data": [{"id": "model.gguf"}]})
    assert found_by(Server({"/v1/models": names}))["model"].state == "note"


@pytest.mark.parametrize("listed", [MISSING, Answer(status=200, json={"data": []})])
def test_server_without_model_list_is_judged_by_its_reply(listed: Answer) -> None:
    found = found_by(Server({"/v1/models": listed}))
    assert (found["address"].state, found["model"].state) == ("ok", "ok")


def test_model_that_does_not_answer_ends_the_check() -> None:
    found = found_by(Server(replies=[ModelTimeout("small", 4.0)]))
    assert list(found) == ["address", "key", "model", "reply"]
    assert "try once more" in found["reply"].advice


class Roles(Server):
    """A server that refuses the roles of a prompt. Its client learns which ones it accepts."""

    wishes: ClassVar[list[RoleWish]] = ["no_system", "in_turn"]

    async def ask(self, request: ChatRequest, hear: Listener | None) -> ChatReply:
        wish = next((one for one in self.wishes if one not in self.access.learned.roles), None)
        if wish is None:
            return await super().ask(request, hear)
        self.access.learned.learn_roles(wish)
        raise ModelRefused("small", 400, "no", wants_roles=wish)


def test_refused_roles_give_a_note_with_the_setting_and_the_check_goes_on() -> None:
    server = Roles()
    found = found_by(server)
    assert found["request"].state == "note"
    assert "Set strict_roles to True and system_role to False" in found["request"].advice
    assert [found[about].state for about in ("reply", "tools", "schema")] == ["ok"] * 3
    assert [one.role for one in server.asked[0].messages] == ["user"]


def test_refused_fields_give_a_note_with_one_setting() -> None:
    server = Server()
    for field in ("user", "seed"):
        server.access.learned.learn_refusal(field)
    server.access.learned.learn_refusal("max_tokens", instead="max_completion_tokens")
    request = found_by(server)["request"]
    assert "now it gets no user, gets no seed, gets max_completion_tokens for" in request.told
    assert "extra to {'user': None, 'seed': None} in the profile" in request.advice


def test_refused_roles_without_a_remedy_are_a_failure() -> None:
    refused = ModelRefused("small", 400, "no", wants_roles="no_system")
    assert found_by(Server(replies=[refused]))["reply"].state == "FAIL"


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (ModelUnavailable("small", "status 503: Loading model", status=503), "in a minute"),
        (ModelRubbish("small", "the text is empty"), "server's own log"),
        (ModelRubbish("small", "a page; check base_url of the profile"), ""),
        (ModelRefused("small", 402, "no credit"), ""),
    ],
)
def test_doctor_gives_advice_for_a_failed_reply_only_when_the_error_has_none(
    error: EvenniaAIError, advice: str
) -> None:
    reply = found_by(Server(replies=[error]))["reply"]
    assert reply.state == "FAIL"
    assert advice in reply.advice
    assert bool(advice) == bool(reply.advice)


def test_unstreamed_reply_gives_a_note_unless_the_profile_wants_it() -> None:
    class Whole(Server):
        async def ask(self, request: ChatRequest, hear: Listener | None) -> ChatReply:
            return await super().ask(request, None)

    assert found_by(Whole())["streaming"].state == "note"
    assert found_by(Whole(), replace(PROFILE, stream=False))["streaming"].state == "ok"


def test_slow_model_gives_a_note() -> None:
    few = replace(REPLY, usage=Usage(input_tokens=20, output_tokens=2))
    assert found_by(Server(replies=[few, CALLED, IN_FORM]))["speed"].state == "note"


@pytest.mark.parametrize(
    ("about", "replies", "option"),
    [
        ("tools", [REPLY, ModelRefused("s", 400, "no tools"), IN_FORM], "tools"),
        ("tools", [REPLY, REPLY, IN_FORM], "tools"),
        ("schema", [REPLY, CALLED, ModelRefused("s", 400, "no form")], "schema"),
        ("schema", [REPLY, CALLED, REPLY], "schema"),
    ],
)
def test_failing_tools_and_schemas_name_the_option(
    about: str, replies: list[Any], option: str
) -> None:
    found = found_by(Server(replies=replies))
    assert found[about].state in ("FAIL", "note")
    assert f"Set {option} to " in found[about].advice


def test_features_the_profile_does_not_use_are_not_tested() -> None:
    server = Server(replies=[REPLY])
    found = found_by(server, replace(PROFILE, tools="none", schema="text"))
    assert (found["tools"].state, found["schema"].state) == ("ok", "ok")
    assert len(server.asked) == 1


def test_whole_check_takes_less_than_ten_seconds_with_any_server() -> None:
    for seconds in (0.1, 1.0, 3.0, 100.0):
        server = Server(seconds=seconds, replies=[REPLY, ModelTimeout("s", 1.0), IN_FORM])
        began = server.clock
        found_by(server)
        assert server.clock - began <= doctor.SECONDS + 1.0  # The time of the first fragment
        assert server.asked[0].timeout_seconds <= doctor.REPLY_SECONDS

    class Late(Server):
        async def fetch(self, probes: Sequence[Probe], seconds: float) -> list[Answer]:
            self.clock += 3.0
            return await super().fetch(probes, seconds)

    late = Late(seconds=100.0, replies=[REPLY])
    found = found_by(late)
    assert found["tools"].told == found["schema"].told
    assert len(late.asked) == 1


def test_profile_without_server_has_one_finding() -> None:
    for client in ("offline", "scripted"):
        found = found_by(Server(), replace(PROFILE, client=client))  # type: ignore[arg-type]
        assert [one.state for one in found.values()] == ["ok"]


def ollama(**loaded: Any) -> dict[str, Answer]:
    return {"/api/ps": Answer(status=200, json={"models": [{"model": "small:latest", **loaded}]})}


SHOWN = Answer(status=200, json={"parameters": "stop x\nnum_ctx   16384"})


@pytest.mark.parametrize(
    ("answers", "tokens", "setting"),
    [
        (ollama(context_length=4096), 4096, "OLLAMA_CONTEXT_LENGTH"),
        ({**ollama(), "/api/show": SHOWN}, 16384, "num_ctx"),
        (
            {"/props": Answer(status=200, json={"default_generation_settings": {"n_ctx": 2048}})},
            2048,
            "--parallel",
        ),
        ({"/slots": Answer(status=200, json=[{"n_ctx": 1024}])}, 1024, "-c of llama.cpp"),
        (
            {
                "/api/v0/models": Answer(
                    status=200, json={"data": [{"id": "small", "loaded_context_length": 4000}]}
                )
            },
            4000,
            "LM Studio",
        ),
        (
            {"/true_max_context_length": Answer(status=200, json={"value": 6144})},
            6144,
            "--contextsize",
        ),
    ],
)
def test_window_is_read_from_any_servers_format(
    answers: dict[str, Answer], tokens: int, setting: str
) -> None:
    window = found_by(Server(answers))["window"]
    assert str(tokens) in window.told
    assert window.state == ("FAIL" if tokens < 8192 else "ok")
    if tokens < 8192:
        assert setting in window.advice
        assert f"set context_tokens to {tokens}" in window.advice


@pytest.mark.parametrize(
    "entry",
    [
        {"max_model_len": 4096},
        {"context_length": 131072, "top_provider": {"context_length": 4096}},
        {"context_window": 4096},
        {"max_input_tokens": 4096},
    ],
)
def test_window_is_read_from_the_list_of_models(entry: dict[str, Any]) -> None:
    listed = Answer(status=200, json={"data": [{"id": "other"}, {"id": "small", **entry}]})
    server = Server({"/v1/models": listed})
    assert "reads 4096 tokens" in found_by(server)["window"].told
    assert not any(one.address.endswith("/props") for one in server.probed)


HOSTILE: list[Any] = [None, [], {}, "x", 7, [[]], {"data": {}}, {"data": [None, {"id": 3}, []]}]


@pytest.mark.parametrize("told", HOSTILE)
@pytest.mark.parametrize("value", [-1, 0, True, "4096", None, 2.5, []])
def test_invalid_window_of_a_server_is_ignored(told: Any, value: Any) -> None:
    nonsense = Answer(status=200, json=told)
    named = Answer(status=200, json={"data": [{"id": "small", "max_model_len": value}]})
    ends: Callable[[str], dict[str, Answer]] = lambda end: {end: nonsense}  # noqa: E731
    for answers in ({"": nonsense}, {"/v1/models": named}, ends("/slots"), ends("/props")):
        assert found_by(Server(answers))["window"].state == "note"
