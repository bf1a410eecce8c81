"""Convert SillyTavern's cases into scenarios, and our results into the form of its answers.

Both answers get the same form, so that a failing test shows them next to each other: labels for
entries, texts for positions, `depth/role` for lists in the history.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

ROLES = ("system", "user", "assistant")
# Settings of world info: their names in a case and in `settings.lore`.
SETTINGS = {
    "depth": "scan_depth",
    "min_activations": "min_activations",
    "min_activations_depth_max": "min_activations_depth_max",
    "include_names": "include_names",
    "recursive": "recursive",
    "case_sensitive": "case_sensitive",
    "match_whole_words": "match_whole_words",
    "use_group_scoring": "group_scoring",
    "max_recursion_steps": "max_recursion_steps",
}
STRATEGIES = ("evenly", "character_first", "global_first")
BUDGET = {"budget", "budget_cap", "character_strategy"}
# Kinds of things to which a book is attached, where SillyTavern's word is another one.
PLACES = {"persona": "player"}
CARD_TEXTS = ("description", "personality", "scenario", "creator_notes", "mes_example")
OWN_PROMPTS = ("system_prompt", "post_history_instructions")
# A context so large that only the lore budget can run out.
CONTEXT_TOKENS = 10_000_000


def scenario_of(case: Mapping[str, Any], *, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scenario of a case."""
    return {
        "card": card_of(case),
        "persona": {"description": case.get("persona", {}).get("description", "")},
        "lorebooks": list(_books(case, defaults)),
        "notes": list(_notes(case)),
        "turns": [{"history": list(_messages(case, count))} for count in _turns(case)],
        "settings": {
            "user": case.get("user", "Ren"),
            "layout": "classic",
            "tokenizer": "bytes/3.35",
            "facts": {"generation.kind": case.get("trigger", "normal")},
            "context_tokens": CONTEXT_TOKENS,
            "reply_tokens": 0,
            "lore": _lore(case),
        },
    }


def answer(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return our result of one turn, in the form of `wanted`."""
    texts = {f"{one['book']}#{one['uid']}": one["content"] for one in result["activated"]}
    placed, note = result["placed"], result["notes"][0]
    depth: dict[str, list[str]] = {}
    for here in placed["depth"]:
        listed = depth.setdefault(f"{here['depth']}/{here['role']}", [])
        listed += [texts[label] for label in here["entries"]]
    return {
        "activated": list(texts),
        "before": "\n".join(filter(None, (texts[label] for label in placed["before"]))),
        "after": "\n".join(filter(None, (texts[label] for label in placed["after"]))),
        "examples_before": [texts[label] for label in placed["examples_before"]],
        "examples_after": [texts[label] for label in placed["examples_after"]],
        "depth": depth,
        "outlets": {
            name: [texts[label] for label in labels] for name, labels in placed["outlets"].items()
        },
        "note_is_due": note["due"],
        "note": note["content"],
        "sticky": result["timed"]["sticky"],
        "cooldown": result["timed"]["cooldown"],
    }


def wanted(expected: Mapping[str, Any], case: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer of SillyTavern in one turn, with examples and depths as it printed them."""
    examples, note = expected["examples"], expected["author_note"]
    before = [one["content"] for one in examples if one["position"] == 0]
    return {
        "activated": [f"{book}#{uid}" for book, uid in expected["activated"]],
        "before": expected["before"],
        "after": expected["after"],
        # SillyTavern inserts each of these before the one inserted last.
        "examples_before": before[::-1],
        "examples_after": [one["content"] for one in examples if one["position"] == 1],
        "depth": {
            f"{here['depth']}/{ROLES[here['role']]}": here["entries"] for here in expected["depth"]
        },
        "outlets": expected.get("outlets", {}),
        "note_is_due": note["due"],
        "note": _with_names(note["with_world_info"], case),
        **{
            kind: sorted(label.replace(".", "#", 1) for label in expected["timed"][kind])
            for kind in ("sticky", "cooldown")
        },
    }


def _lore(case: Mapping[str, Any]) -> dict[str, Any]:
    given = case["settings"]
    assert given.keys() <= SETTINGS.keys() | BUDGET
    return {
        "rules": "sillytavern",
        **{SETTINGS[name]: value for name, value in given.items() if name in SETTINGS},
        "strategy": STRATEGIES[given.get("character_strategy", 1)],
        "budget_percent": 100,
        "budget_tokens": _budget(given, case.get("max_context", 8192)),
        "dice": case.get("random"),
        "dry_run": case.get("dry_run", False),
    }


def _budget(given: Mapping[str, Any], max_context: int) -> int:
    """Return SillyTavern's tokens for lore: rounded half up, at least 1, then capped."""
    share = max(1, math.floor(given.get("budget", 25) * max_context / 100 + 0.5))
    cap = given.get("budget_cap", 0)
    return min(share, cap) if cap else share


def _books(case: Mapping[str, Any], defaults: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Return every book at every place where it is attached. A book at two places occurs twice."""
    attached = case.get("attach") or {"global": list(case["books"])}
    for place, names in attached.items():
        for name in [names] if isinstance(names, str) else names or []:
            entries = case["books"][name]["entries"]
            filled = {} if case.get("raw") else defaults
            book = {uid: {**filled, **entry} for uid, entry in entries.items()}
            yield {"name": name, "attach": PLACES.get(place, place), "book": {"entries": book}}


def _notes(case: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Return the author's note, which is first even if empty, then the other injections.

    A note outside the chat gets a depth too, because its text and the lore around it are compared.
    """
    note = case.get("author_note") or {}
    yield {
        "content": note.get("prompt", ""),
        "depth": note.get("depth", 4),
        "role": ROLES[note.get("role", 0)],
        "every": note.get("interval", 1),
        "scanned": note.get("allow_wi_scan", False),
    }
    for other in case.get("extension_prompts", ()):
        role = ROLES[other.get("role", 0)]
        scanned = other.get("scan", False)
        yield {"content": other["value"], "depth": other["depth"], "role": role, "scanned": scanned}


def _turns(case: Mapping[str, Any]) -> Sequence[int]:
    return case.get("turns") or [len(case["chat"])]


def _messages(case: Mapping[str, Any], count: int) -> Iterator[dict[str, Any]]:
    """Return the first `count` messages, without hidden ones."""
    for message in case["chat"][:count]:
        if message.get("is_system"):
            continue
        is_narrator = (message.get("extra") or {}).get("type") == "narrator"
        role = "user" if message["is_user"] else "system" if is_narrator else "assistant"
        yield {"role": role, "name": message["name"], "content": message["mes"]}


def _with_names(text: str, case: Mapping[str, Any]) -> str:
    """Return the note with its names filled in, as a prompt shows it."""
    user, char = case.get("user", "Ren"), case.get("char", "Aria")
    return text.replace("{{user}}", user).replace("{{char}}", char)


def card_of(case: Mapping[str, Any]) -> dict[str, Any]:
    """Return the card of a case, with the scenario of the chat in place of the card's own."""
    given = dict(case.get("card", {}))
    if "scenario_override" in case:
        given["scenario"] = case["scenario_override"]
    depth_prompt = given.pop("depth_prompt", None)
    texts = (*CARD_TEXTS, *OWN_PROMPTS, "first_mes", "creator", "character_version")
    lists = ("alternate_greetings", "group_only_greetings", "tags")
    data: dict[str, Any] = {**dict.fromkeys(texts, ""), **{key: [] for key in lists}, **given}
    data |= {"name": case.get("char", "Aria"), "extensions": {}}
    if depth_prompt is not None:
        data["extensions"] = {"depth_prompt": depth_prompt}
    return {"spec": "chara_card_v3", "spec_version": "3.0", "data": data}
