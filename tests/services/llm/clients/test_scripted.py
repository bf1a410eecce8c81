"""Test the scripted model."""

from dataclasses import replace
from pathlib import Path

import pytest
from twisted.internet.defer import CancelledError
from twisted.internet.task import Clock

from evennia_ai.engine.errors import (
    EndpointError,
    ModelRefused,
    ModelRubbish,
    ModelTimeout,
    ModelUnavailable,
)
from evennia_ai.services.llm.chat import ChatReply, ChatRequest, Usage
from evennia_ai.services.llm.clients.scripted import (
    ScriptedModel,
    ScriptedReply,
    ScriptEndedError,
    scripted_from,
)
from tests.services.llm.builders import a_call, a_message, a_request
from tests.services.llm.test_resilience import outcome, watched


def test_script_lines_are_said_in_order_and_requests_kept() -> None:
    model = ScriptedModel(["One.", "Two."])
    requests = [a_request("a"), a_request("b")]
    assert [outcome(model.complete(one)).text for one in requests] == ["One.", "Two."]
    assert model.requests == requests


def test_script_may_be_a_single_text() -> None:
    assert outcome(ScriptedModel("One.").complete(a_request())).text == "One."


def test_script_may_be_a_callable_of_the_request() -> None:
    model = ScriptedModel(lambda request: request.question.upper())
    assert outcome(model.complete(a_request("hello"))).text == "HELLO"


def test_script_line_may_be_a_whole_reply() -> None:
    reply = ChatReply(text="cut", model="other", finish_reason="length")
    assert outcome(ScriptedModel([reply]).complete(a_request())) is reply


def test_script_line_may_be_an_error() -> None:
    problem = ModelTimeout("scripted", 5)
    assert outcome(ScriptedModel([problem]).complete(a_request())) is problem


def test_ended_script_error_names_the_question() -> None:
    problem = outcome(ScriptedModel([]).complete(a_request("More?")))
    assert isinstance(problem, ScriptEndedError)
    assert str(problem) == "model 'scripted' has no line left for 'More?'"


def test_script_reply_may_have_a_delay() -> None:
    clock = Clock()
    result = watched(ScriptedModel(["Late."], delay_seconds=2, clock=clock).complete(a_request()))
    clock.advance(1.9)
    assert result == []
    clock.advance(0.1)
    assert result[0].text == "Late."


def test_script_delay_without_clock_is_refused() -> None:
    with pytest.raises(EndpointError, match="a delay needs one"):
        ScriptedModel([], delay_seconds=1)


def test_script_usage_counts_words() -> None:
    reply = outcome(ScriptedModel(["one two three"]).complete(a_request("Hello there")))
    assert reply.usage == Usage(input_tokens=5, output_tokens=3)


# Streaming


def test_listener_hears_a_scripted_reply_in_pieces_before_the_reply() -> None:
    heard: list[str] = []
    model = ScriptedModel(["One two three."], piece_characters=5)
    reply = outcome(model.complete(a_request(), listener=heard.append))
    assert heard == ["One t", "wo th", "ree."]
    assert reply.text == "One two three."


def test_scripted_pieces_may_have_pauses() -> None:
    clock, heard = Clock(), list[str]()
    model = ScriptedModel(["abcd"], piece_characters=2, piece_seconds=1, clock=clock)
    result = watched(model.complete(a_request(), listener=heard.append))
    assert (heard, result) == (["ab"], [])
    clock.advance(1)
    assert (heard, result) == (["ab", "cd"], [])
    clock.advance(1)
    assert result[0].text == "abcd"


def test_cancelled_scripted_reply_is_not_heard_any_more() -> None:
    clock, heard = Clock(), list[str]()
    model = ScriptedModel(["abcd"], piece_characters=2, piece_seconds=1, clock=clock)
    asked = model.complete(a_request(), listener=heard.append)
    result = watched(asked)
    asked.cancel()
    clock.advance(5)
    assert heard == ["ab"]
    assert isinstance(result[0], CancelledError)


def test_scripted_reply_may_break_off_after_its_start() -> None:
    heard: list[str] = []
    problem = ModelTimeout("scripted", 5)
    model = ScriptedModel([ScriptedReply(text="Aye, the", error=problem)])
    assert outcome(model.complete(a_request(), listener=heard.append)) is problem
    assert heard == ["Aye, the"]


def test_scripted_reply_may_call_tools() -> None:
    reply = outcome(ScriptedModel([ScriptedReply(tool_calls=(a_call(),))]).complete(a_request()))
    assert (reply.tool_calls, reply.finish_reason) == ((a_call(),), "tool_calls")


def test_delayed_script_line_without_clock_fails() -> None:
    problem = outcome(
        ScriptedModel([ScriptedReply(text="x", delay_seconds=1)]).complete(a_request())
    )
    assert isinstance(problem, EndpointError)


def test_empty_script_line_does_not_end_the_script() -> None:
    assert outcome(ScriptedModel([""]).complete(a_request())).text == ""


# Scripts in files


def a_file(folder: Path, text: str, name: str = "script.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def answers(model: ScriptedModel, *questions: str) -> list[str]:
    return [outcome(model.complete(a_request(one))).text for one in questions]


def test_script_file_has_replies_in_order_and_on_a_cue(tmp_path: Path) -> None:
    path = a_file(
        tmp_path,
        """
        - Good evening.
        - when: Ferry
          reply: The ferry is late.
        - Mind the step.
        """,
    )
    model = scripted_from(path)
    said = answers(model, "Hello!", "Where is the ferry?", "The FERRY?", "Bye.")
    assert said == ["Good evening.", "The ferry is late.", "The ferry is late.", "Mind the step."]
    assert isinstance(outcome(model.complete(a_request())), ScriptEndedError)


def test_script_file_may_repeat(tmp_path: Path) -> None:
    model = scripted_from(a_file(tmp_path, "repeat: true\nreplies: [One., Two.]"))
    assert answers(model, "a", "b", "c") == ["One.", "Two.", "One."]


def test_script_file_may_be_json(tmp_path: Path) -> None:
    path = a_file(tmp_path, '{"replies": ["One."]}', "script.json")
    assert answers(scripted_from(str(path)), "a") == ["One."]


def test_script_file_may_call_tools_and_answer_their_results(tmp_path: Path) -> None:
    path = a_file(
        tmp_path,
        """
        - when: a boat
          reply: A boat.
        - when: look
          tool_calls:
            - {tool: look, arguments: {at: sea}}
            - {tool: wait}
        """,
    )
    model = scripted_from(path)
    asked = a_request("Look!")
    first = outcome(model.complete(asked))
    assert [(call.name, call.arguments) for call in first.tool_calls] == [
        ("look", '{"at": "sea"}'),
        ("wait", "{}"),
    ]
    assert len({call.id for call in first.tool_calls}) == 2
    result = a_message("tool", "a boat", tool_call_id=first.tool_calls[0].id)
    again = replace(asked, messages=(*asked.messages, result, a_message("system", "Look!")))
    assert outcome(model.complete(again)).text == "A boat."


@pytest.mark.parametrize(
    ("fails", "error"),
    [
        ("timeout", ModelTimeout),
        ("unavailable", ModelUnavailable),
        ("refused", ModelRefused),
        ("rubbish", ModelRubbish),
    ],
)
def test_script_file_may_fail(tmp_path: Path, fails: str, error: type[Exception]) -> None:
    model = scripted_from(a_file(tmp_path, f"- {{fail: {fails}, reply: Well}}"))
    heard: list[str] = []
    assert isinstance(outcome(model.complete(a_request(), listener=heard.append)), error)
    assert heard == ["Well"]


def test_script_file_sets_its_delays(tmp_path: Path) -> None:
    clock, heard = Clock(), list[str]()
    path = a_file(
        tmp_path,
        """
        delay_seconds: 2
        piece_characters: 3
        piece_seconds: 0.5
        replies: [abcd, {reply: x, delay_seconds: 0}]
        """,
    )
    model = scripted_from(path, clock=clock)
    result = watched(model.complete(a_request(), listener=heard.append))
    clock.pump([1.9, 0.2, 0.5])
    assert (heard, result) == (["abc", "d"], [])
    clock.advance(0.5)
    assert result[0].text == "abcd"
    assert answers(model, "b") == ["x"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- [", "is not YAML"),
        ("just a text", "it must be a list of replies, or an object"),
        ("replies: []", "replies: List should have at least 1 item"),
        ("- 1", "replies 1: must be a text or an object"),
        ("- a\n- {when: x}", "replies 2: is empty: give it a reply, tool_calls or fail"),
        ("- {reply: a, wen: x}", "replies 1 wen: unknown name; a reply has when, reply"),
        ("- {when: '', reply: a}", "replies 1 when: String should have at least 1 character"),
        ("- {tool_calls: [{tool: 1}]}", "replies 1 tool_calls 1 tool: must be a valid string"),
        ("- {fail: badly}", "replies 1 fail: must be 'timeout'"),
        ("{replies: [a], delay_seconds: -1}", "delay_seconds: must be greater than"),
        ("{replies: [a], piece_characters: 0}", "piece_characters: must be greater than"),
    ],
)
def test_invalid_script_file_is_refused_with_the_place(
    tmp_path: Path, text: str, problem: str
) -> None:
    path = a_file(tmp_path, text)
    with pytest.raises(EndpointError) as caught:
        scripted_from(path, name="demo")
    assert str(caught.value).startswith(f"endpoint 'demo': script {path}: ")
    assert problem in str(caught.value)


def test_missing_script_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EndpointError, match=r"none\.yaml: cannot be read"):
        scripted_from(tmp_path / "none.yaml")


# Scripts in code


LINES = ["One."]


def shouting(request: ChatRequest) -> str:
    return request.question.upper()


def test_dotted_path_may_name_lines_or_a_function() -> None:
    assert answers(scripted_from(f"{__name__}.LINES"), "a") == ["One."]
    assert answers(scripted_from(f"{__name__}.shouting"), "a") == ["A"]


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("no.such.module", "'no.such.module' cannot be imported: No module named 'no'"),
        (f"{__name__}.nothing", "has no attribute 'nothing'"),
        (f"{__name__}.__name__", "is no script: it must be the path of a .yaml or .json file"),
        ("script", "'script' is no script"),
        ("..x", "'..x' is no script"),
    ],
)
def test_dotted_path_to_something_else_is_refused(path: str, problem: str) -> None:
    with pytest.raises(EndpointError) as caught:
        scripted_from(path)
    assert problem in str(caught.value)


def test_script_in_the_documentation_is_valid(tmp_path: Path) -> None:
    page = (Path(__file__).parents[4] / "docs" / "extend" / "scripts.md").read_text(
        encoding="utf-8"
    )
    script = page.split("```yaml world/oren.yaml\n")[1].split("```")[0]
    clock = Clock()
    model = scripted_from(a_file(tmp_path, script), clock=clock)
    result = watched(model.complete(a_request("When does the ferry leave?")))
    clock.advance(0.5)
    assert result[0].text == "The ferry leaves at dusk."
