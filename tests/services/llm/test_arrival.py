"""Test that a cut prompt is noticed, and that a whole one never counts as cut."""

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from evennia_ai.engine.prompt.messages import ToolSpec
from evennia_ai.services.llm.arrival import Arrivals, describe_cut_prompt, measure
from evennia_ai.services.llm.chat import AnswerSchema, ChatMessage, ChatReply, ChatRequest, Usage

SENTENCES = {
    "English": "The night ferry stopped running because nobody would steer her after the storm. ",
    "German": "Die Nachtfähre fährt nicht mehr, weil nach dem Sturm niemand sie steuern wollte. ",
    "French": "Le bac de nuit ne circule plus, car personne n'a voulu le piloter après l'orage. ",
    "Polish": "Nocny prom już nie pływa, bo po sztormie nikt nie chciał nim sterować. ",
    "Russian": "Ночной паром больше не ходит: после бури никто не захотел им управлять. ",
    "Greek": "Το νυχτερινό πλοίο δεν περνά πια, γιατί κανείς δεν ήθελε να το κυβερνήσει. ",
    "Hebrew": "מעבורת הלילה כבר לא שטה, כי אחרי הסערה איש לא רצה לנהוג בה. ",
    "Arabic": "لم تعد العبّارة الليلية تبحر، فبعد العاصفة لم يرد أحد أن يقودها. ",
    "Chinese": "夜里的渡船不再开了，因为风暴之后没有人愿意掌舵。",
    "Japanese": "嵐のあと誰も舵を取りたがらないので、夜の渡し船はもう出ません。",
    "Korean": "폭풍 뒤로 아무도 키를 잡으려 하지 않아 밤 나룻배는 더는 다니지 않습니다. ",
    "Thai": "เรือข้ามฟากยามค่ำคืนไม่แล่นอีกแล้ว เพราะหลังพายุไม่มีใครยอมถือหางเสือ ",
    "Hindi": "रात की नाव अब नहीं चलती, क्योंकि तूफ़ान के बाद किसी ने पतवार नहीं थामी। ",
    "Emoji": "The ferry 🚢 is gone 🌊, and so is her captain 🧔‍♂️. ",
}
TOOLS = tuple(
    ToolSpec(
        name=f"tool_{number}",
        description="Look at something or somebody here. " * number,
        parameters={"type": "object", "properties": {"at": {"type": "string"}}},
    )
    for number in range(1, 9)
)


def a_request(tokens: int, *, of: str = "English", **values: Any) -> ChatRequest:
    """Return a prompt with about this many tokens by our count."""
    tens, rest = divmod(max(1, round(tokens / _tokens_a_sentence(of))), 10)
    messages = (*[_message(of, 10)] * tens, _message(of, rest or 1))
    return replace(_asking(*messages), **values)


@cache
def _message(of: str, times: int) -> ChatMessage:
    return ChatMessage(role="user", content=SENTENCES[of] * times)


@cache
def _tokens_a_sentence(of: str) -> float:
    return measure(_asking(_message(of, 20))).words / 20


def _asking(*messages: ChatMessage) -> ChatRequest:
    return ChatRequest(messages=messages, model="m", max_tokens=50, timeout_seconds=5.0)


def counted(tokens: float, **values: Any) -> ChatReply:
    usage = Usage(input_tokens=round(tokens), output_tokens=9)
    return ChatReply(text="Aye.", model="m", usage=replace(usage, **values))


def whole_prompts(chance: random.Random, count: int) -> Iterator[tuple[str, ChatRequest, int]]:
    """Yield prompts of several games, with the counts of all kinds of servers for whole prompts.

    A server has one tokenizer and one chat template, with factors for each language. Every fourth
    server counts tools in its own way, and every fifth leaves out cached tokens.
    """
    for game in range(count // 50):
        languages = chance.sample(sorted(SENTENCES), chance.randint(1, 4))
        factors = {one: chance.choice([0.6, chance.uniform(0.6, 2.2)]) for one in languages}
        template, fixed = chance.choice([0.0, chance.uniform(0.0, 0.2)]), chance.randint(0, 80)
        tools = TOOLS[: chance.choice([0, 0, 3, 8])]
        shows_tools = chance.choice([0.0, 0.5, 1.0, 1.0]) if game % 4 == 0 else 1.0
        tokens = chance.randint(50, 3000)
        for _ in range(50):
            tokens = max(20, tokens + chance.choice([40, 90, 150, -tokens // 2]))
            language = chance.choice(languages)
            request = a_request(tokens, of=language, tools=tools)
            sent = measure(request)
            # The template may be a larger share of a short prompt, up to 40 %.
            around = min(0.4 * sent.words, template * sent.words + fixed)
            read = (sent.words + around + shows_tools * sent.beside) * factors[language]
            yield f"server {game}", request, round(read)


@pytest.mark.parametrize("seed", range(3))
def test_no_whole_prompt_of_a_thousand_counts_as_shortened_by_the_server(seed: int) -> None:
    arrivals = Arrivals()
    wrong = [
        (where, measure(request), read)
        for where, request, read in whole_prompts(random.Random(seed), 1000)
        if arrivals.whole_tokens(where, request, counted(read)) is not None
    ]
    assert wrong == []


@pytest.mark.parametrize("seed", range(3))
def test_whole_prompts_do_not_count_as_shortened_when_a_router_changes_the_model(seed: int) -> None:
    """A router may use several tokenizers under one name, and may count only new tokens."""
    chance, arrivals = random.Random(seed), Arrivals()
    for number in range(1000):
        request = a_request(chance.randint(100, 6000), of=chance.choice(sorted(SENTENCES)))
        share = chance.uniform(0.03, 0.2) if number % 5 == 4 else 1.0
        read = measure(request).tokens * chance.uniform(0.6, 2.2) * chance.uniform(1.0, 1.4) * share
        assert arrivals.whole_tokens("router", request, counted(read)) is None, (number, read)


@pytest.mark.parametrize("language", sorted(SENTENCES))
@pytest.mark.parametrize("window", [256, 512, 1024, 1300])
def test_prompt_counts_as_shortened_at_once_when_it_is_far_over_the_window(
    language: str, window: int
) -> None:
    request = a_request(5700, of=language)
    assert (Arrivals().whole_tokens("s", request, counted(window)) or 0) > window


@pytest.mark.parametrize("read", [4096, 2048])
def test_prompt_counts_as_shortened_when_the_server_counted_exactly_a_common_window(
    read: int,
) -> None:
    whole = Arrivals().whole_tokens("s", a_request(5700), counted(read))
    assert whole is not None
    assert 5500 < whole < 6000


def test_prompt_counts_as_shortened_when_the_server_counts_its_window_twice() -> None:
    arrivals = Arrivals()
    found = [
        arrivals.whole_tokens("s", a_request(tokens), counted(min(tokens, 5120)))
        for tokens in (3000, 5000, 5300, 5700)
    ]
    assert found[:3] == [None] * 3
    assert found[3] is not None


def test_messages_dropped_by_ollama_are_noticed_when_the_ratio_is_known() -> None:
    """Ollama drops whole messages, so the count is below the window and varies."""
    arrivals, chance = Arrivals(), random.Random(7)
    found = {}
    for tokens in range(900, 6000, 100):
        true = 1.1 * tokens + 40
        read = true if true <= 4096 else 4096 - chance.randint(1, 180)
        found[tokens] = arrivals.whole_tokens("s", a_request(tokens), counted(read))
    cut = [tokens for tokens, whole in found.items() if whole is not None]
    assert min(cut) <= 5200
    assert min(cut) > 4096 / 1.1
    assert cut == list(range(min(cut), 6000, 100))


def test_prompt_counts_as_shortened_when_the_server_reports_it() -> None:
    told = replace(counted(500), prompt_cut=True)
    assert Arrivals().whole_tokens("s", a_request(500), told) is not None
    assert Arrivals().whole_tokens("s", a_request(500), replace(told, usage=None)) is not None


@pytest.mark.parametrize("usage", [None, 0, 1, 10, 100, 900_000])
def test_server_that_does_not_count_prompts_gives_no_report(usage: int | None) -> None:
    reply = counted(usage or 0) if usage is not None else ChatReply(text="Aye.", model="m")
    arrivals = Arrivals()
    assert [arrivals.whole_tokens("s", a_request(5700), reply) for _ in range(9)] == [None] * 9


def test_cached_tokens_count_as_read() -> None:
    apart = counted(300, cached_tokens=5000, written_tokens=400)
    within = counted(5700, cached_tokens=5000)
    for reply in (apart, within):
        assert Arrivals().whole_tokens("s", a_request(5700), reply) is None


def test_prompt_does_not_count_as_shortened_when_the_server_does_not_count_tools_and_schema() -> (
    None
):
    schema = AnswerSchema(name="answer", schema={"type": "object", "description": "x y " * 2000})
    for beside in ({"tools": TOOLS}, {"schema": schema}):
        request = a_request(1000, **beside)
        assert Arrivals().whole_tokens("s", request, counted(measure(request).words)) is None


def test_prompt_does_not_count_as_shortened_after_a_larger_count_of_the_same_server() -> None:
    arrivals = Arrivals()
    assert arrivals.whole_tokens("s", a_request(5700), counted(5700)) is None
    assert arrivals.whole_tokens("s", a_request(5750), counted(350)) is None
    assert arrivals.whole_tokens("another", a_request(5750), counted(350)) is not None


def test_message_about_a_shortened_prompt_names_the_settings_that_help() -> None:
    told = describe_cut_prompt(counted=256, whole=5700, profile="quick")
    for part in ("256 of about 5700", "OLLAMA_CONTEXT_LENGTH", "--parallel", "context_tokens"):
        assert part in told
    assert "ai/check quick" in told
    assert json.dumps(told).isascii()


class _Counted(str):
    """A text that counts how often it is encoded."""

    __slots__ = ()
    times = 0

    def encode(self, *how: str) -> bytes:
        _Counted.times += 1
        return super().encode(*how)


def test_size_of_a_message_is_computed_once_for_all_prompts() -> None:
    message = ChatMessage(role="user", content=_Counted("The ferry is gone."))
    first, times = measure(_asking(message)), _Counted.times
    second = measure(_asking(message, message))
    assert (second.words, second.text_bytes) == (2 * first.words, 2 * first.text_bytes)
    assert _Counted.times == times
