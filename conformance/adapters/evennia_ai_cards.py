# SPDX-License-Identifier: MIT
"""Answer the kit's tasks `card` and `card_prompt` with evennia_ai."""

import json
from base64 import b64decode
from functools import partial
from importlib.metadata import version
from tempfile import NamedTemporaryFile

from evennia_ai.cli.cards import described
from evennia_ai.engine.errors import EvenniaAIError
from evennia_ai.formats.cards.exporting import FORMS, dump_card, v2_copy
from evennia_ai.formats.cards.loading import load_card
from evennia_ai.formats.scenario import run_scenario

NAMES = {"user_name": "user", "system_prompt": "card_system_prompt"}
RULES = {
    "layout": "classic",
    "context_tokens": 1_000_000,
    "reply_tokens": 0,
    "lore": {"match_whole_words": False, "budget_percent": 100},
}


def answer(given, with_turns=True):
    """Return how the program shows and writes a card, the turns of a chat with it, or an error."""
    settings, book = given.get("settings", {}), given.get("lorebook")
    if "text" in given:  # a text to expand becomes the description
        given["card"]["data"]["description"] = given["text"]
    file = given.get("card_text", json.dumps(given.get("card"))).encode()
    file = b64decode(given["base64"]) if "base64" in given else file
    try:
        shown = {} if file == b"null" and book else shown_card(file, settings)
        return {**shown, "turns": turns_of(given, file, settings, book) if with_turns else []}
    except EvenniaAIError as error:
        return {"error": str(error)}


def turns_of(given, file, settings, book):
    turns = given.get("turns") or [{"history": given.get("history", [])}] * given.get("repeat", 1)
    with NamedTemporaryFile() as stored:
        stored.write(file)
        stored.flush()
        scenario = {
            **({} if file == b"null" else {"card": stored.name}),
            "lorebooks": [{"book": book, "attach": "character"}] if book else [],
            "components": given.get("components", []),
            "turns": turns,
            "settings": {NAMES.get(name, name): value for name, value in settings.items()} | RULES,
        }
        return [turn_of(one) for one in run_scenario(scenario)["turns"]]


def shown_card(file, settings):
    found = load_card(file)
    language, group = settings.get("language", "en"), settings.get("group", False)
    shown = described(found, language=language, group=group)
    written = [load_card(dump_card(found, form, modified_at=1_800_000_000)).raw for form in FORMS]
    fields, kept = ("type", "uri", "name", "ext"), ("name", "greetings", "creator_notes", "notices")
    assets = [{name: asset[name] for name in fields} for asset in shown["assets"]]
    shown = {**{name: shown[name] for name in kept}, "entry_count": shown["lorebook_entries"]}
    return {**shown, "assets": assets, "written": written, "v2": v2_copy(written[0])}


def turn_of(result):
    active = {one["entry"]: one for one in result["activated"]}
    labels = {name: f"{one['book']}#{one['uid']}" for name, one in active.items()}
    parts = (
        (message["content"], part) for message in result["messages"] for part in message["parts"]
    )
    described = (one for one in parts if one[1]["origin"] == "component:char_description")
    return {
        "active": {name: one["content"] for name, one in active.items()},
        "decorators": {name: result["decorators"][label] for name, label in labels.items()},
        "messages": [{k: one[k] for k in ("role", "content")} for one in result["messages"]],
        "history": [one for one in result["messages"] if one["block"] == "history"],
        "text": "".join(text[part["start"] : part["end"]] for text, part in described),
    }


if __name__ == "__main__":
    from loop import serve

    tasks = {"card": partial(answer, with_turns=False), "card_prompt": answer}
    serve("evennia_ai", version("evennia-ai"), tasks)
