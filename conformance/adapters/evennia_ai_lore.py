# SPDX-License-Identifier: MIT
"""Answer the kit's task `lore` with evennia_ai."""

import math
from importlib.metadata import version

from evennia_ai.formats.scenario import run_scenario

NAMES = {"scan_depth": "depth", "group_scoring": "use_group_scoring"}
SAME = ("min_activations", "min_activations_depth_max", "include_names", "recursive")
SAME = (*SAME, "case_sensitive", "match_whole_words", "max_recursion_steps", *NAMES)
STRATEGIES = ("evenly", "character_first", "global_first")
SIDES = {"after_main": "after card_system_prompt", "before_main": "before card_system_prompt"}


def lore(given):
    # A note outside the history gets a depth too: its text is compared with the lore around it.
    texts = (given["author_note"], *given["injections"])
    notes = [note_of({**one, "position": "in_chat"}) for one in texts]
    made = run_scenario(scenario(given, notes, given["persona"]["description"]))
    return {"turns": [lore_turn(one) for one in made["turns"]]}


def scenario(given, notes, persona):
    """Return a case as a scenario, which is the input of the program in one file."""
    wanted, data = given["settings"], given["card"]["data"]
    share = max(1, math.floor(wanted["budget"] * given["max_context"] / 100 + 0.5))
    seen = [[m for m in given["history"][:n] if not m.get("hidden")] for n in given["turns"]]
    data["scenario"] = given.get("scenario_override", data["scenario"])
    return {
        "card": given["card"],
        "persona": {"description": persona},
        "lorebooks": [book_of(book) for book in given["books"]],
        "notes": notes,
        "turns": [{"history": messages} for messages in seen],
        "settings": {
            "user": given["user"],
            "layout": "classic",
            "tokenizer": "bytes/3.35",
            "facts": {"generation.kind": given["kind"]},
            "reply_tokens": 0,
            "context_tokens": 10_000_000,  # so large that only the lore budget can run out
            "lore": {
                **{name: wanted[NAMES.get(name, name)] for name in SAME},
                "rules": "sillytavern",
                "budget_percent": 100,
                "strategy": STRATEGIES[wanted["character_strategy"]],
                "budget_tokens": min(share, wanted["budget_cap"] or share),
                "dice": given["random"],
                "dry_run": given["dry_run"],
            },
        },
    }


def book_of(book):
    place = "player" if book["attach"] == "persona" else book["attach"]
    return {"name": book["name"], "attach": place, "book": {"entries": book["entries"]}}


def note_of(one, **fields):
    place = {"place": SIDES[one["position"]]} if one["position"] in SIDES else {}
    every = {"every": one["interval"]} if "interval" in one else {}
    same = {name: one[name] for name in ("content", "role", "depth")}
    return {**same, "scanned": one.get("scan", False), **place, **every, **fields}


def lore_turn(result):
    texts = {f"{one['book']}#{one['uid']}": one["content"] for one in result["activated"]}
    placed, note, depth = result["placed"], result["notes"][0], {}
    for here in placed["depth"]:
        listed = depth.setdefault(f"{here['depth']}/{here['role']}", [])
        listed += [texts[label] for label in here["entries"]]
    joined = {s: "\n".join(filter(None, map(texts.get, placed[s]))) for s in ("before", "after")}
    listed = {s: [texts[x] for x in placed[s]] for s in ("examples_before", "examples_after")}
    outlets = {n: [texts[x] for x in labels] for n, labels in placed["outlets"].items()}
    shown = {"activated": list(texts), "depth": depth, "outlets": outlets, **joined, **listed}
    return {**shown, "note_is_due": note["due"], "note": note["content"], **result["timed"]}


if __name__ == "__main__":
    from loop import serve

    serve("evennia_ai", version("evennia-ai"), {"lore": lore})
