"""What was said last, as a value of texts.

What was said is data. Where a text speaks as a user it stands as it is; in any other role it is in
quotes, on one line and short, so that nobody's words become the system's or the character's own.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import Message
from evennia_ai.engine.prompt.templates.value_names import SAID_LAST
from evennia_ai.engine.prompt.time_line import without_time_line

MOST_QUOTED: Final = 500
"""Characters of what was said that stand in a message of another role than user."""
_LOOKED_AT: Final = 50  # messages that are gone back through for one of the character
_OTHER_QUOTES: Final = str.maketrans(dict.fromkeys('"“”„«»', "'"))


def said_last(history: History, event: Message | None) -> dict[str, str]:
    """What was said last, by whomever, by a user and by the character; "" where nothing was."""
    user = event if event is not None and event.role == "user" else history.newest_user()
    character = _newest_reply(history)
    last = event or _newest(history)
    found = {"lastmessage": last, "lastusermessage": user, "lastcharmessage": character}
    return {name: without_time_line(one.content) if one else "" for name, one in found.items()}


def _newest_reply(history: History) -> Message | None:
    return next((one for one in _newest_first(history) if one.role == "assistant"), None)


def _newest(history: History) -> Message | None:
    return next((one for one in _newest_first(history) if one.role in ("user", "assistant")), None)


def _newest_first(history: History) -> Iterable[Message]:
    """The newest messages of the conversation, from the newest on."""
    first = max(history.earlier, history.stop - _LOOKED_AT)
    for message in reversed(history.between(first, history.stop)):
        if message.counted and message.content:
            yield message


def quoted(text: str) -> str:
    """What somebody said, as another role may have it."""
    line = " ".join(text[: 2 * MOST_QUOTED].split()).translate(_OTHER_QUOTES)
    is_whole = len(line) <= MOST_QUOTED and len(text) <= 2 * MOST_QUOTED
    return f'"{line}"' if is_whole else f'"{line[:MOST_QUOTED]}..."'


def with_quotes(values: Mapping[str, str]) -> Mapping[str, str]:
    """The values with what was said in quotes, where anything was."""
    said = {name: quoted(values[name]) for name in SAID_LAST if values.get(name)}
    return {**values, **said} if said else values
