"""Preset files in the shapes that people share: made here, so that none of anybody's text is.

Each family is one way to build a preset: switches with variables, prompts in the chat, doubles,
older keys, what the prompt manager alone exports, long lists. `FILES` has them by name.
"""

from collections.abc import Iterator
from typing import Any, Final

from tests.presets.builders import a_prompt, an_order, own_prompts

File = dict[str, Any]

_SAMPLING: Final[File] = {
    "temperature": 1.0,
    "top_p": 0.95,
    "top_k": 0,
    "seed": -1,
    "openai_max_context": 65536,
    "openai_max_tokens": 1200,
    "stream_openai": True,
    "bias_preset_selected": "Default (none)",
    "chat_completion_source": "custom",
    "custom_model": "some-model",
    "reverse_proxy": "",
    "proxy_password": "",
    "custom_url": "",
    "assistant_prefill": "",
    "names_behavior": 0,
    "squash_system_messages": True,
    "wi_format": "{0}",
    "an_unknown_member": {"of": ["a", "newer", 18.5, None, False]},
}
_BEFORE: Final = (
    *("main", "worldInfoBefore", "personaDescription", "charDescription", "charPersonality"),
    *("scenario", "enhanceDefinitions", "nsfw", "worldInfoAfter", "dialogueExamples"),
)


def _file(*prompts: File, lists: list[File] | None = None, **members: Any) -> File:
    """A whole preset: the prompts stand before the history, the first of them is off."""
    names = [str(one["identifier"]) for one in prompts if "identifier" in one]
    usual = an_order(*_BEFORE, *names, "chatHistory", "jailbreak", off=names[:1])
    older = {"character_id": 100000, "order": [{"identifier": "main", "enabled": False}]}
    orders = [older, *usual] if lists is None else lists
    return {
        **_SAMPLING,
        "prompts": [*own_prompts(), *prompts],
        "prompt_order": orders,
        **members,
    }


def _switchboard(count: int) -> File:
    """A program of switches and variables: early prompts set what a later one reads."""
    sets = [
        a_prompt(f"style-{n}", f"{{{{setvar::style::kind {n}}}}}{{{{// {n}}}}}", enabled=n % 2 == 0)
        for n in range(count)
    ]
    reads = a_prompt("style-told", "Write so: {{getvar::style}}.{{trim}}")
    return _file(*sets, reads)


def _in_chat(count: int, *, newer: bool) -> File:
    """Prompts in the chat at several depths, roles and, from 1.13 on, orders."""
    roles = ("system", "user", "assistant", None)
    prompts = []
    for n in range(count):
        place: File = {"injection_position": 1, "injection_depth": n % 6}
        if newer:
            place |= {"injection_order": (100, 0, 201)[n % 3], "injection_trigger": []}
        prompts.append(a_prompt(f"chat-{n}", f"Depth {n % 6}.", **place) | {"role": roles[n % 4]})
    return _file(*prompts)


def _with_doubles(count: int) -> File:
    doubles = [a_prompt("twice", f"Version {n}.") for n in range(count)]
    return _file(*doubles, a_prompt("once", "Once."))


def _with_dangling(count: int) -> File:
    """Lines of the order that name nothing, and prompts that no list names."""
    gone = [f"gone-{n}" for n in range(count)]
    unlisted = [a_prompt(f"unlisted-{n}", "Kept.") for n in range(count)]
    order = an_order(*_BEFORE, *gone, "chatHistory", "jailbreak")
    return _file(*unlisted, lists=order)


def _long(count: int, *, characters: int) -> File:
    prompts = [
        a_prompt(f"{n:08x}-0000-4000-8000-000000000000", "wörter " * (characters // 7))
        for n in range(count)
    ]
    return _file(*prompts)


def _older(*names: str) -> File:
    texts = {"main_prompt": "Old main.", "nsfw_prompt": "Old extra.", "jailbreak_prompt": "Old end"}
    return {
        **_SAMPLING,
        **{name: texts[name] for name in names},
        "names_in_completion": True,
        "nsfw_first": False,
    }


def _of_the_manager(kind: str, count: int) -> File:
    """What the prompt manager alone exports: a flat order, and none of the own prompts."""
    prompts = [a_prompt(f"part-{n}", f"Part {n}.") for n in range(count)]
    order = [{"identifier": f"part-{n}", "enabled": n % 2 == 0} for n in range(count)]
    return {"version": 1, "type": kind, "data": {"prompts": prompts, "prompt_order": order}}


def _triggered(*kinds: str) -> File:
    return _file(a_prompt("sometimes", "Sometimes.", injection_trigger=list(kinds)))


def _behind(count: int) -> File:
    names = [f"end-{n}" for n in range(count)]
    prompts = [a_prompt(name, f"{name}.", role="assistant") for name in names]
    return _file(*prompts, lists=an_order(*_BEFORE, "chatHistory", "jailbreak", *names))


def _odd_values(content: Any, **fields: Any) -> File:
    """A prompt with values of other types, which are told and come out as they went in."""
    return _file({"identifier": "odd", "name": None, "content": content, **fields})


def _all_files() -> Iterator[tuple[str, File]]:
    yield "settings alone", dict(_SAMPLING)
    yield "no order", {**_SAMPLING, "prompts": own_prompts()}
    yield "no order in use", _file(lists=[{"character_id": 7, "order": []}])
    yield "empty lists", {"prompts": [], "prompt_order": []}
    for count in (1, 31, 120):
        yield f"switchboard of {count}", _switchboard(count)
    for count in (1, 12, 60):
        yield f"{count} in the chat, 1.12", _in_chat(count, newer=False)
        yield f"{count} in the chat, 1.13", _in_chat(count, newer=True)
    for count in (2, 3, 5):
        yield f"one identifier {count} times", _with_doubles(count)
    for count in (1, 4, 15):
        yield f"{count} lines without a prompt", _with_dangling(count)
    for names in (("main_prompt",), ("main_prompt", "nsfw_prompt", "jailbreak_prompt")):
        yield f"older keys, {len(names)}", _older(*names)
    for kind in ("full", "character"):
        for count in (0, 3, 40):
            yield f"the manager's, {kind} of {count}", _of_the_manager(kind, count)
    for kinds in ((), ("normal",), ("quiet",), ("swipe", "regenerate"), ("impersonate",)):
        yield f"triggers {' '.join(kinds) or 'none'}", _triggered(*kinds)
    for count in (1, 20, 300):
        yield f"{count} behind the history", _behind(count)
    yield "forbids overrides", _file(a_prompt("x", "X", forbid_overrides=True))
    yield "history first", _file(lists=an_order("chatHistory", *_BEFORE, "jailbreak"))
    yield "no history", _file(lists=an_order(*_BEFORE, "jailbreak"))
    yield "history off", _file(lists=an_order("main", "chatHistory", off=["chatHistory"]))
    yield "content of another type", _odd_values(["list"])
    yield "depth as text", _odd_values("x", injection_position=1, injection_depth="4")
    yield "depth with a point", _odd_values("x", injection_position=1, injection_depth=4.0)
    yield "no identifier", _file({"name": "Nameless", "content": "x"})
    yield "no object", _file() | {"prompts": ["text", None, 7]}
    yield "formats", _file(scenario_format="", personality_format="P", wi_format="no place")
    yield "regex scripts", _file(extensions={"regex_scripts": [{"findRegex": "/(a+)+$/g"}]})
    yield "326 prompts of 2 MB", _long(326, characters=6_100)
    yield "one long prompt", _long(1, characters=53_262)


FILES: Final[dict[str, File]] = dict(_all_files())
