# SPDX-License-Identifier: MIT
"""Answer the kit's task `prompt` with evennia_ai."""

from importlib.metadata import version
from importlib.util import find_spec

from evennia_ai_lore import SIDES, note_of, scenario

from evennia_ai.formats.scenario import run_scenario


def prompt(given):
    preset, persona, data = given["preset"], given["persona"], given["card"]["data"]
    if given["kind"] in ("continue", "swipe") or "quiet_prompt" in given:
        return "a character only answers events: nothing is continued, swiped or asked quietly"
    if "openai_max_context" in preset and find_spec("bpe_openai") is None:
        return "tokens are counted as SillyTavern counts them only with the extra 'tokens'"
    context, reply = preset.get("openai_max_context", 32000), preset.get("openai_max_tokens", 300)
    deep = None
    if given["author_note"]["scan"]:  # the depth prompt is scanned too, which only notes can be
        deep = data["extensions"].pop("depth_prompt", None)
    described = persona["description"] if persona["position"] == "in_prompt" else ""
    made = scenario(
        {**given, "max_context": context - reply}, list(notes_of(given, deep)), described
    )
    counter = "gpt-4-turbo" if "openai_max_context" in preset else "estimate"
    made["settings"] |= {"context_tokens": context, "reply_tokens": reply, "tokenizer": counter}
    made["settings"]["assembly"] = {"pin_examples": given["pin_examples"]}
    turns = run_scenario({**made, "preset": preset})["turns"]
    return {"turns": [{"messages": [plain(m) for m in turn["messages"]]} for turn in turns]}


def plain(message):
    return {k: message[k] for k in ("role", "content", "name") if message[k] is not None}


def notes_of(given, deep):
    """Yield the author's note, which is first even if empty, then other texts by depth."""
    note, persona = given["author_note"], given["persona"]
    described, where = persona["description"], persona["position"]
    beside = {"above_note": "summary", "below_note": "persona"}.get(where, "")
    entries = (one for book in given["books"] for one in book["entries"].values())
    has_lore_around = any(one.get("position") in (2, 3) for one in entries)
    if beside and (note["position"] in SIDES or not has_lore_around):
        parts = [described, note["content"]][:: 1 if where == "above_note" else -1]
        note, beside = {**note, "content": "\n".join(filter(None, parts))}, ""
    yield note_of(note)
    if beside and described:
        yield note_of({**note, "content": described, "scan": False}, key=beside)
    if where == "at_depth" and described:
        yield note_of({**persona, "content": described, "position": "in_chat"}, key="persona")
    if deep:
        text = {"content": deep["prompt"], "position": "in_chat", "scan": True}
        yield note_of({**deep, **text}, key="depth_prompt")
    for one in sorted(given["injections"], key=key_in_history):
        is_summary = one["key"] == "1_memory" and beside != "summary"
        yield note_of(one, **({"key": "summary"} if is_summary else {}))


def key_in_history(text):
    return text["key"] if text["position"] == "in_chat" else ""


if __name__ == "__main__":
    from loop import serve

    serve("evennia_ai", version("evennia-ai"), {"prompt": prompt})
