"""Safe output: text of models, players and names reaches a client as text and nothing else.

What Evennia would interpret, and where: `msg_contents` parses its template (`$name()`, `{name}`),
so templates here are constant and untrusted text is a mapping value; the portal turns `|r` into
colour and looks for links (`|lc..|lt..|le`) after it has un-doubled `||`, so that doubling alone
does not stop them; the web client makes links of addresses; a game may switch on FuncParser for
everything that is sent.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from django.conf import settings

from evennia_ai.game.text import LINE_BREAK, one_line, plain_name
from evennia_ai.game.utterance import uttered

MAX_CHARACTERS: Final = 2000
MAX_LINES: Final = 40

SAY: Final = '{npc} says, "{speech}"'
WHISPER: Final = '{npc} whispers to you, "{speech}"'
POSE: Final = "{npc} {action}"
GIVE: Final = "{npc} gives you {item}."
TALK: Final = '{object} says to {npc}, "{speech}"'
TALK_SELF: Final = '{self} say to {npc}, "{speech}"'

_LINK_MARK: Final = re.compile(r"\|(?=l)")
_ADDRESS: Final = re.compile(r"(?i)(?:https?|ftp):(?=//)|\b(?:www|ftp)\.(?=\S)")


def safe_text(
    text: str, *, max_characters: int = MAX_CHARACTERS, max_lines: int = MAX_LINES
) -> str:
    """`text` such that a client shows it as it stands and interprets none of it.

    Longer than `max_characters` or `max_lines` is cut and ends in an ellipsis; with one line the
    others are joined to it. The result may be given to `msg` or stand as a mapping value of
    `msg_contents`, never as a template.
    """
    lines = [one_line(line) for line in (LINE_BREAK.split(text) if max_lines > 1 else [text])]
    kept = "\n".join(lines[:max_lines])
    if len(lines) > max_lines or len(kept) > max_characters:
        kept = kept[:max_characters].rstrip() + "…"
    return escaped(kept)


def escaped(text: str) -> str:
    """`text` with everything a client would interpret made plain; see the head of this file."""
    text = _LINK_MARK.sub("| ", text)
    text = _ADDRESS.sub(r"\g<0> ", text)
    text = text.replace("{", "{{").replace("|", "||")
    if settings.FUNCPARSER_PARSE_OUTGOING_MESSAGES_ENABLED:
        start = settings.FUNCPARSER_START_CHAR
        text = text.replace(start, settings.FUNCPARSER_ESCAPE_CHAR + start)
    return text


class SafeName:
    """An object's name for a message: the one each looker knows it by, with nothing live in it."""

    __slots__ = ("_named",)

    def __init__(self, named: Any) -> None:
        self._named = named

    def get_display_name(self, looker: Any = None, **kwargs: Any) -> str:
        """The name for `looker`, as Evennia's hook of this name."""
        return escaped(plain_name(self._named.get_display_name(looker, **kwargs)))

    def __str__(self) -> str:
        return escaped(plain_name(str(self._named.key)))


def speak(npc: Any, text: str, *, hops: int = 0) -> None:
    """Say `text` aloud where `npc` is."""
    with uttered(npc, text, kind="say", hops=hops):
        _to_room(npc, SAY, "say", {"speech": safe_text(text, max_lines=1)})


def pose(npc: Any, text: str, *, hops: int = 0) -> None:
    """Show everybody there what `npc` does, as in "looks up."."""
    action = safe_text(text, max_lines=1).rstrip("|")  # the portal misreads a last pipe
    with uttered(npc, text, kind="pose", hops=hops):
        _to_room(npc, POSE, "pose", {"action": action})


def whisper(npc: Any, target: Any, text: str, *, hops: int = 0) -> None:
    """Say `text` to `target` alone."""
    name = SafeName(npc).get_display_name(target)
    line = WHISPER.format_map({"npc": name, "speech": safe_text(text, max_lines=1)})
    with uttered(npc, text, kind="whisper", hops=hops):
        target.msg(text=(line, {"type": "whisper"}), from_obj=npc)


def gave(npc: Any, target: Any, item: Any) -> None:
    """Tell `target` that `npc` gave it `item`."""
    given = escaped(plain_name(str(item.get_numbered_name(1, target, return_string=True))))
    line = GIVE.format_map({"npc": SafeName(npc).get_display_name(target), "item": given})
    target.msg(text=(line, {"type": "give"}), from_obj=npc)


def talk(speaker: Any, npc: Any, text: str) -> bool:
    """Have `speaker` say `text` aloud to `npc`; false where the speaker's own hook forbids it."""
    text = speaker.at_pre_say(text)
    if not text:
        return False
    with uttered(speaker, text, kind="talk", to_ref=str(npc.id)):
        speaker.at_say(
            safe_text(text, max_lines=1),
            msg_self=TALK_SELF,
            msg_location=TALK,
            mapping={"object": SafeName(speaker), "npc": SafeName(npc)},
        )
    return True


def _to_room(npc: Any, template: str, kind: str, values: Mapping[str, str]) -> None:
    if npc.location is None:
        return
    npc.location.msg_contents(
        (template, {"type": kind}),
        from_obj=npc,
        exclude=[npc],
        mapping={"npc": SafeName(npc), **values},
    )
