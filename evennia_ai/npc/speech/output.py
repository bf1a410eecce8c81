"""Send texts of models and players to clients so that they appear as plain text only.

Evennia interprets text in several places. `msg_contents` expands its template (`$name()`,
`{name}`), so templates here are constants and foreign text is only a mapping value. The Portal
turns `|r` into a colour. It searches for links (`|lc..|lt..|le`) after it has replaced `||` by `|`,
so doubled pipes do not prevent links. The web client turns addresses into links. A game may run
FuncParser on everything that is sent.

Regex scripts may change what players see of an NPC's words (`npc/views/regex_scripts.py`), act by
act, so a script cannot turn speech into an action. NPCs and records get the words themselves.

The frames around texts, such as `says, "..."`, and the game's own lines are in the language of each
receiver. A message to a room is `{line}` with one value, which `msg_contents` asks for the line of
each receiver.

A player can also show a thing to an NPC (`show_item`). Everybody in the room sees that. A player
who ignores an NPC is not sent what it says and does.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final

from django.conf import settings
from django.db import DatabaseError
from evennia.utils import logger

from evennia_ai.engine.text.columns import escape_controls
from evennia_ai.engine.text.phrases import Phrase, translatable
from evennia_ai.npc.senses.choices import has_met, ignores, note_met
from evennia_ai.npc.senses.happenings import (
    Happening,
    describe_to,
    item_name,
    let_perceive,
    npcs_in,
)
from evennia_ai.npc.senses.labels import label_of
from evennia_ai.npc.senses.languages import own_language, read_by, translate
from evennia_ai.npc.senses.presence import NPC, bystanders
from evennia_ai.npc.senses.text import LINE_BREAK, one_line, plain_name
from evennia_ai.npc.senses.utterance import Utterance, spoken_words, uttering
from evennia_ai.npc.speech.reply_acts import JOINED, Act, acts_of

MAX_CHARACTERS: Final = 2000
MAX_LINES: Final = 40

SAY: Final = translatable('{npc} says, "{speech}"')
WHISPER: Final = translatable('{npc} whispers to you, "{speech}"')
POSE: Final = "{npc} {action}"
POSE_JOINED: Final = "{npc}{action}"
GIVE: Final = translatable("{npc} gives you {item}.")
TALK: Final = translatable('{speaker} says to {npc}, "{speech}"')
TALK_SELF: Final = translatable('You say to {npc}, "{speech}"')
_LINE: Final = "{line}"

ITEM_INDENT: Final = "  "
"""The indent of all lines of speech but the first, so none looks like another speaker's line."""

_ITEM: Final = re.compile(r"\s*(?:[-*•+–]|\d{1,3}[.)]|[A-Za-z]\))\s+\S")
_DOUBLE_QUOTES: Final = str.maketrans(dict.fromkeys('"“”„', "'"))
_LINK_MARK: Final = re.compile(r"\|(?=l)")
_ADDRESS: Final = re.compile(r"(?i)(?:https?|ftp):(?=//)|\b(?:www|ftp)\.(?=\S)")


def safe_text(
    text: str, *, max_characters: int = MAX_CHARACTERS, max_lines: int = MAX_LINES
) -> str:
    """Return `text` so that a client shows it unchanged and interprets none of it.

    Text over `max_characters` or `max_lines` is cut and ends with an ellipsis. With `max_lines=1`
    all lines are joined. The result is safe for `msg` and as a mapping value of `msg_contents`, but
    not as a template.
    """
    lines = [one_line(line) for line in (LINE_BREAK.split(text) if max_lines > 1 else [text])]
    kept = "\n".join(lines[:max_lines])
    if len(lines) > max_lines or len(kept) > max_characters:
        kept = kept[:max_characters].rstrip() + "…"
    return escape_markup(kept)


def safe_speech(text: str) -> str:
    """Return safe text for use between quotation marks.

    The lines of a list are kept and indented. All other lines are joined. If the text begins or
    ends with a double quote, all double quotes become single ones.
    """
    bare = text.strip()
    if bare[:1] in '"“”„' or bare[-1:] in '"“”„':
        bare = bare.translate(_DOUBLE_QUOTES)
    first, *more = LINE_BREAK.split(bare)
    shown = first
    in_list = _ITEM.match(first) is not None
    for line in more:
        is_item = _ITEM.match(line) is not None
        shown += f"\n{line}" if is_item or in_list else f" {line}"
        in_list = is_item
    return safe_text(shown).replace("\n", f"\n{ITEM_INDENT}")


def escape_markup(text: str) -> str:
    """Escape everything that a client would interpret; see the module docstring."""
    text = _LINK_MARK.sub("| ", text)
    text = _ADDRESS.sub(r"\g<0> ", text)
    text = text.replace("{", "{{").replace("|", "||")
    if settings.FUNCPARSER_PARSE_OUTGOING_MESSAGES_ENABLED:
        start = settings.FUNCPARSER_START_CHAR
        text = text.replace(start, settings.FUNCPARSER_ESCAPE_CHAR + start)
    return text


def escape_block(text: str) -> str:
    """Return a text of several lines for `msg`; everything that a client interprets is escaped."""
    lines = text.replace("\r\n", "\n").replace("\t", "    ").split("\n")
    shown = escape_markup("\n".join(escape_controls(line) for line in lines))
    return f"{shown} " if shown.endswith("|") else shown  # the portal misreads a pipe at the end


class SafeName:
    """The escaped name of an object in a message, as each looker knows the object."""

    __slots__ = ("_named",)

    def __init__(self, named: Any) -> None:
        self._named = named

    def get_display_name(self, looker: Any = None, **kwargs: Any) -> str:
        """Return the name that `looker` knows. Evennia calls this hook."""
        return escape_markup(plain_name(self._named.get_display_name(looker, **kwargs)))


class _Line:
    """A line in a message, which each receiver reads in their own language."""

    __slots__ = ("_render",)

    def __init__(self, render: Callable[[Any, str], str]) -> None:
        """Keep the function that returns the line for a looker and the code of a language."""
        self._render = render

    def get_display_name(self, looker: Any = None, **kwargs: Any) -> str:
        """Return the line as `looker` reads it. Evennia calls this hook."""
        return self._render(looker, read_by(looker))


def _framed(template: str, **values: Any) -> _Line:
    """Return a line of a frame and its values. A value may be a name that depends on the looker."""

    def render(looker: Any, language: str) -> str:
        named = {
            name: value.get_display_name(looker) if hasattr(value, "get_display_name") else value
            for name, value in values.items()
        }
        return translate(Phrase(template, **named), language)

    return _Line(render)


def say_aloud(npc: NPC, text: str, *, hops: int = 0) -> None:
    """Make `npc` say `text` aloud in its room."""
    with uttering(Utterance(speaker=npc, text=text, kind="say", hops=hops)):
        if shown := _as_seen(npc, text):
            _to_room(npc, _framed(SAY, npc=SafeName(npc), speech=safe_speech(shown)), "say")


def show_pose(npc: NPC, text: str | Phrase, *, told: str = "", hops: int = 0) -> None:
    """Show everybody in the room what `npc` does, such as "looks up.".

    NPCs in the room perceive `told` instead, if it is given. People read a phrase in their own
    language.
    """
    with uttering(Utterance(speaker=npc, text=told or str(text), kind="pose", hops=hops)):
        if shown := text if isinstance(text, Phrase) else _as_seen(npc, text):
            _to_room(npc, _posed(npc, shown), "pose")


def _posed(npc: NPC, text: str | Phrase) -> _Line:
    """Return the line about what `npc` does. A phrase is translated for each looker."""

    def render(looker: Any, language: str) -> str:
        action = translate(text, language) if isinstance(text, Phrase) else text
        frame = POSE_JOINED if action.startswith(JOINED) else POSE
        name = SafeName(npc).get_display_name(looker)
        return frame.format_map({"npc": name, "action": _action(action)})

    return _Line(render)


def deliver_reply(
    npc: NPC,
    text: str,
    *,
    own_names: Iterable[str],
    after: int = 0,
    hops: int = 0,
    to: Any = None,
    by_rote: bool = False,
    is_games: bool = False,
) -> None:
    """Make `npc` say and do what a reply contains.

    Other NPCs perceive the whole reply as one event, in its original form, so they do not answer
    each of its lines. They do not answer a reply said `by_rote`. Only the listener of a whisper
    perceives it; nobody does if the listener is not in the room.

    Args:
        own_names: The names by which the reply may call its speaker.
        after: How many characters of the text were said and done before.
        to: The only person who perceives the reply; None: everybody in the room.
        by_rote: True if no model chose the words, as in a fallback line.
        is_games: True if the text is a line of the game. Each person reads it in their own
            language, and NPCs perceive it in the language of `npc`.
    """
    own_names, line = tuple(own_names), text
    if is_games:
        text = translate(line, own_language(npc))
    acts = acts_of(text, own_names=own_names, after=after)
    whispers = [
        act
        for act in acts
        if act.kind == "whisper" and (to is None or not is_called(npc, to, act.to))
    ]
    if whispers:
        acts = tuple(act for act in acts if act not in whispers)
        text, after = " ".join(act.told or act.text for act in acts), 0
    is_done = all(act.kind == "pose" for act in acts)
    is_mixed = len({act.kind for act in acts}) > 1
    heard = text[after:] if is_mixed else " ".join(act.told or act.text for act in acts)
    kind = "whisper" if to is not None else "pose" if is_done else "say"
    said = Utterance(speaker=npc, text=heard, kind=kind, hops=hops, by_rote=by_rote or is_games)
    with uttering(said):
        if is_games and acts:
            lines = [(_games_line(npc, line, own_names=own_names, to=to), acts[0].kind)]
        else:
            seen = [replace(act, text=_as_seen(npc, act.text)) for act in acts]
            lines = [(_act_line(npc, act, to=to), act.kind) for act in seen if act.text]
        for shown, act_kind in lines:
            if to is None:
                _to_room(npc, shown, "pose" if act_kind == "pose" else "say")
            else:
                _to_one(npc, to, shown, "whisper")
    for act in whispers:
        for listener in (who for who in bystanders(npc) if is_called(npc, who, act.to)):
            whisper_to(npc, listener, act.text, hops=hops)


def _act_line(npc: NPC, act: Act, *, to: Any) -> _Line:
    """Return the line of one act for the room, or for the only person `to`."""
    if act.kind == "pose":
        return _posed(npc, act.text)
    frame = SAY if to is None else WHISPER
    return _framed(frame, npc=SafeName(npc), speech=safe_speech(act.text))


def _games_line(npc: NPC, line: str, *, own_names: Iterable[str], to: Any) -> _Line:
    """Return a line of the game that `npc` says or does. Its acts may depend on the language."""

    def render(looker: Any, language: str) -> str:
        acts = acts_of(translate(line, language), own_names=own_names)
        return "\n".join(_act_line(npc, act, to=to).get_display_name(looker) for act in acts)

    return _Line(render)


def is_called(npc: NPC, who: Any, name: str) -> bool:
    """True if an NPC may call a person by this name."""
    return name.casefold() in (plain_name(who.key).casefold(), label_of(npc, who).casefold())


def whisper_to(npc: NPC, target: Any, text: str, *, hops: int = 0) -> None:
    """Make `npc` whisper `text` to `target`."""
    with uttering(Utterance(speaker=npc, text=text, kind="whisper", hops=hops)):
        if shown := _as_seen(npc, text):
            framed = _framed(WHISPER, npc=SafeName(npc), speech=safe_speech(shown))
            _to_one(npc, target, framed, "whisper")


def show_gesture(npc: NPC, people: Iterable[Any], line: str) -> None:
    """Show what `npc` does to these people only, each in their own language."""
    for person in people:
        _to_one(npc, person, _posed(npc, translate(line, read_by(person))), "pose")


def tell_given(npc: NPC, target: Any, item: Any) -> None:
    """Send `target` the message that `npc` gave it `item`."""
    given = escape_markup(plain_name(str(item.get_numbered_name(1, target, return_string=True))))
    line = _framed(GIVE, npc=SafeName(npc), item=given).get_display_name(target)
    target.msg(text=(line, {"type": "give"}), from_obj=npc)


def talk_to(speaker: Any, npc: NPC, text: str) -> bool:
    """Make `speaker` say `text` aloud to `npc`. Return False if the speaker's hook forbids it."""
    text = spoken_words(str(speaker.at_pre_say(text) or ""))
    if not text:
        return False
    speech, heard = safe_speech(text), SafeName(npc)
    line = _framed(TALK, speaker=SafeName(speaker), npc=heard, speech=speech)
    own = _framed(TALK_SELF, npc=heard, speech=speech).get_display_name(speaker)
    with uttering(Utterance(speaker=speaker, text=text, kind="talk", to_ref=str(npc.id))):
        speaker.at_say(
            speech, msg_self="{own}", msg_location=_LINE, mapping={"line": line, "own": own}
        )
    return True


def _as_seen(npc: NPC, text: str) -> str:
    """Return words of an NPC as players see them. Most games have no scripts that change them."""
    view = npc.ai.known_view
    return text if view is not None and not view.scripts else str(npc.ai.display(text))


def _action(text: str) -> str:
    return safe_text(text, max_lines=1).rstrip("|")  # the portal misreads a pipe at the end


def _to_one(npc: NPC, target: Any, line: _Line, kind: str) -> None:
    if ignores(target, str(npc.id)):
        return
    _disclose(npc, [target])
    target.msg(text=(line.get_display_name(target), {"type": kind}), from_obj=npc)


def _to_room(npc: NPC, line: _Line, kind: str) -> None:
    if npc.location is None:
        return
    people = bystanders(npc)
    ignoring = [one for one in people if ignores(one, str(npc.id))]
    _disclose(npc, [one for one in people if one not in ignoring])
    npc.location.msg_contents(
        (_LINE, {"type": kind}),
        from_obj=npc,
        exclude=[npc, *ignoring],
        mapping={"line": line},
    )


def tell_about(npc: NPC, person: Any, line: str, *, language: str = "") -> None:
    """Show one person a line of the game about `npc`. `{npc}` in it becomes the NPC's name.

    Args:
        language: The code of the language. "": the one that the person reads.
    """
    name = SafeName(npc).get_display_name(person)
    told = translate(line, language or read_by(person)).replace("{npc}", name)
    person.msg(text=(told, {"type": "disclosure"}))


def _disclose(npc: NPC, people: Iterable[Any]) -> None:
    """Tell each player who meets this kind of NPC for the first time that a model speaks for it.

    The kind is the typeclass of the NPC.
    """
    kind = f"{type(npc).__module__}.{type(npc).__name__}"
    accounts = ((person, getattr(person, "account", None)) for person in people)
    for person, account in accounts:
        if account is None or has_met(account, kind) or not npc.ai.disclosure.meeting:
            continue
        tell_about(npc, person, npc.ai.disclosure.meeting)
        try:
            note_met(account, kind)
        except DatabaseError as error:  # the player is told again the next time
            logger.log_err(f"evennia_ai: cannot note that {account} has met NPC {npc.id}: {error}")


SEEN: Final = translatable("{shower} shows {item} to {npc}.")
MAX_DESCRIPTION: Final = 1000
"""The most characters of a shown thing's description that an NPC reads."""


class _OneOf:
    """The name of a thing in a message, with its article: "a rope"."""

    def __init__(self, item: Any) -> None:
        self._item = item

    def get_display_name(self, looker: Any = None, **kwargs: Any) -> str:
        """Return the name that `looker` knows. Evennia calls this hook."""
        return escape_markup(item_name(looker, self._item))


def show_item(shower: Any, item: Any, npc: NPC) -> bool:
    """Make `shower` show a thing to `npc`. Return False if the NPC does not see the shower.

    The NPC learns the name and description of the thing. Everybody else in the room learns only
    that the thing was shown.
    """
    shower.location.msg_contents(
        (_LINE, {"type": "show"}),
        from_obj=shower,
        exclude=[shower],
        mapping={
            "line": _framed(SEEN, shower=SafeName(shower), item=_OneOf(item), npc=SafeName(npc))
        },
    )
    seen = Happening(
        kind="show", text="{actor} shows {item} to {to}.", actor=shower, item=item, to=npc
    )
    for other in npcs_in(shower.location):
        if other != npc:
            let_perceive(other, seen)
    looks = describe_to(npc, item, most=MAX_DESCRIPTION) if item.access(npc, "view") else ""
    shown = Happening(
        kind="show",
        text="{actor} shows you {item}.",
        actor=shower,
        item=item,
        to=npc,
        wants_answer=True,
        detail=f"It looks like this: {looks}" if looks else "",
    )
    return let_perceive(npc, shown)
