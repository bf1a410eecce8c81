"""Preset files in the shapes that people share, by name; written by this script, not collected.

`python -m tests.formats.presets.shapes FOLDER` writes them as files.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from tests.formats.presets.builders import a_file, a_prompt, an_order, own_prompts

File = dict[str, Any]

ROLES = ("system", "user", "assistant")
WORDS = ("dawn", "harbour", "ember", "slowly", "never", "the guard", "two sentences", "quiet")
SAMPLING: dict[str, Any] = {
    "temperature": 1.0,
    "top_p": 0.95,
    "top_k": 0,
    "frequency_penalty": 0.05,
    "seed": -1,
    "openai_max_context": 200000,
    "openai_max_tokens": 8192,
    "max_context_unlocked": True,
    "stream_openai": True,
}
CONNECTION = {
    "chat_completion_source": "openrouter",
    "openai_model": "gpt-4-turbo",
    "claude_model": "claude-2.1",
    "openrouter_providers": [],
}


def shapes() -> dict[str, File]:
    """Return the JSON of all preset files by name."""
    return dict(_shapes())


def _shapes() -> Iterator[tuple[str, File]]:
    yield "bare", {"prompts": []}
    yield "own alone", {"prompts": own_prompts()}
    yield "empty order", {"prompts": own_prompts(), "prompt_order": []}
    yield "order of the dummy alone", _with_list(100000)
    yield "order as text", _with_list("100001")
    yield "old keys", {"main_prompt": "M", "nsfw_prompt": "N", "jailbreak_prompt": "J"}
    yield "old keys beside prompts", a_file(main_prompt="Never used.")
    yield "names in completion", a_file(names_in_completion=True)
    yield "one string of texts", a_file(new_chat_prompt="", wi_format="", scenario_format="")
    yield "a format without lore", a_file(wi_format="[Lore]")
    yield "in the chat", a_file(*_in_chat(0), before=["main", *_names(5)])
    yield "in the chat with orders", a_file(*_in_chat(1), before=["main", *_names(5)])
    yield "in the chat and after", a_file(*_in_chat(2), after=["jailbreak", *_names(5)])
    yield "places in the chat", _places_in_chat()
    yield "history first", a_file(*_plain(8), before=(), after=["main", *_names(8)])
    yield "history last", a_file(*_plain(8), before=["main", *_names(8)], after=())
    yield "history off", a_file(off=("chatHistory",))
    yield "main off", a_file(off=("main",))
    yield "main in the chat", a_file(a_prompt("main", "M", injection_position=1))
    yield "no history in the order", {**a_file(), "prompt_order": an_order("main", "jailbreak")}
    yield "doubles", a_file(a_prompt("d", "1"), a_prompt("d", "2"), a_prompt("d", "3"))
    yield "doubles of an own one", a_file(a_prompt("nsfw", "1"), a_prompt("nsfw", "2"))
    yield "alike", a_file(a_prompt("A B"), a_prompt("a-b"), a_prompt("a_b"), before=("a-b", "A B"))
    yield "dangling", a_file(before=("gone", "main", "gone too", "charDescription", "gone"))
    yield "twice in the order", a_file(before=("main", "scenario", "main"))
    yield "loose", a_file(*_plain(15))
    yield "without identifiers", {"prompts": [{"name": "x", "content": "y"}, *own_prompts()]}
    yield "odd fields", a_file(*_odd(), before=["main", *_names(4)])
    yield "no objects", {"prompts": [None, 5, "x", *own_prompts()], "prompt_order": [3, None]}
    yield "variables", _variables()
    yield "triggers", _triggers()
    yield "regex scripts", a_file(extensions=_extensions())
    yield "unknown members", a_file(zebra={"a": [1, 2.50, None]}, Apple=True, ünïcode="é ✓")
    yield "numbers", a_file(a=1, b=1.0, c=1e3, d=-0.0, e=12345678901234, f=0.1)
    yield "sampling and models", a_file(**SAMPLING, **CONNECTION)
    yield "secrets", a_file(reverse_proxy="http://p", proxy_password="hunter2", custom_url="u")
    yield "forbidden", a_file(a_prompt("main", "Mine.", forbid_overrides=True))
    yield "export of the manager", _export("full")
    yield "export for a character", _export("character")
    yield "326 prompts", a_file(*_plain(314), before=["main", *_names(314)])
    yield "400 after the history", a_file(*_plain(400), after=["jailbreak", *_names(400)])
    yield "2 MB", _two_megabytes()
    for seed in range(12):
        yield f"drawn {seed}", _drawn(Random(seed))


def _names(number: int) -> list[str]:
    return [f"p{index}" for index in range(number)]


def _plain(number: int) -> list[File]:
    return [
        a_prompt(name, f"Text of {name}.", role=ROLES[index % 3])
        for index, name in enumerate(_names(number))
    ]


def _in_chat(step: int) -> list[File]:
    """Return prompts at several depths with several roles; `step` sets their injection orders."""
    return [
        a_prompt(
            name,
            f"At {index % 3}.",
            role=ROLES[index % 3],
            injection_position=1,
            injection_depth=index % 3,
            **({"injection_order": 100 - step * index} if step else {}),
        )
        for index, name in enumerate(_names(5))
    ]


def _places_in_chat() -> File:
    place: dict[str, Any] = {
        "marker": True,
        "injection_position": 1,
        "injection_depth": 2,
        "role": "user",
    }
    return a_file(
        a_prompt("charDescription", **place),
        a_prompt("worldInfoBefore", **place),
        before=("main", "charDescription", "worldInfoBefore"),
    )


def _with_list(character: Any) -> File:
    order = an_order("main", "chatHistory", off=("main",))
    return {"prompts": own_prompts(), "prompt_order": [{**order[0], "character_id": character}]}


def _odd() -> list[File]:
    return [
        a_prompt("p0", role="narrator", injection_depth="2"),
        a_prompt("p1", injection_position=7, injection_depth=-3),
        a_prompt("p2", injection_position=1, injection_depth=10**9, injection_order=10**12),
        a_prompt("p3", injection_trigger="quiet", forbid_overrides="no"),
    ]


def _variables() -> File:
    """Return a preset whose prompts set variables, and one prompt that reads them."""
    setters = [
        a_prompt(f"p{index}", f"{{{{setvar::v{index}::{word}}}}}{{{{trim}}}}")
        for index, word in enumerate(WORDS)
    ]
    reads = "\n".join(f"- {{{{getvar::v{index}}}}}" for index in range(len(WORDS)))
    names = _names(len(WORDS))
    text = a_prompt("reader", f"{{{{// all}}}}\n{reads}\n{{{{addglobalvar::n::1}}}}")
    return a_file(*setters, text, before=[*names, "main", "reader"], off=names[::2])


def _triggers() -> File:
    kinds = ("normal", "continue", "impersonate", "swipe", "regenerate", "quiet")
    prompts = [
        a_prompt(name, injection_trigger=[kind], injection_order=100)
        for name, kind in zip(_names(6), kinds, strict=True)
    ]
    return a_file(*prompts, a_prompt("all", injection_trigger=[]), before=[*_names(6), "all"])


def _extensions() -> File:
    script = {"scriptName": "hide", "findRegex": "/<think>.*?<\\/think>/gs", "replaceString": ""}
    return {"regex_scripts": [script], "SPreset": {"ChatSquash": {"enabled": True}}}


def _export(kind: str) -> File:
    order = [{"identifier": name, "enabled": name != "p1"} for name in ("main", *_names(3))]
    return {
        "version": 1,
        "type": kind,
        "data": {
            "prompts": _plain(3),
            "prompt_order": [*order, {"identifier": "chatHistory", "enabled": True}],
        },
    }


def _two_megabytes() -> File:
    texts = [a_prompt(name, "Words and more. " * 800) for name in _names(150)]
    return a_file(*texts, before=["main", *_names(150)], off=_names(149))


def _drawn(random: Random) -> File:
    """Return a preset file with random allowed values."""
    names = _names(random.randint(1, 40))
    prompts = [
        a_prompt(
            name,
            " ".join(random.choices(WORDS, k=random.randint(0, 30))),
            name=random.choice(WORDS),
            role=random.choice(ROLES),
            injection_position=random.choice((0, 0, 1)),
            injection_depth=random.randint(0, 5),
            enabled=random.random() < 0.5,
        )
        for name in names
    ]
    places = ["main", "charDescription", "scenario", "worldInfoBefore", "dialogueExamples"]
    before, after = [*places, *names], ["jailbreak", "nsfw"]
    random.shuffle(before)
    cut = random.randint(0, len(before))
    file = a_file(
        *prompts,
        before=before[:cut],
        after=[*before[cut:], *after],
        off=random.sample(names, len(names) // 2),
        names_behavior=random.choice((-1, 0, 1, 2)),
        squash_system_messages=random.random() < 0.5,
        **SAMPLING,
    )
    file["prompt_order"].insert(0, {"character_id": 100000, "order": []})
    return file


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for title, made in shapes().items():
        text = json.dumps(made, ensure_ascii=False, indent=4)
        (folder / f"{title}.json").write_text(text, encoding="utf-8")
