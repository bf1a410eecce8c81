"""Asks the model of a game again for kept cases, without the game's server."""

from collections.abc import Sequence
from typing import Any

from evennia_ai.engine.errors import FormatError
from evennia_ai.formats.kept import KIND
from evennia_ai.npc.views.kept import CheckedCase
from evennia_ai.services.endpoints import access_in_loop
from evennia_ai.services.llm.chat import as_chat_message
from evennia_ai.services.llm.speech import spoken_text
from evennia_ai.services.settings.game import Conf


async def ask_again(differing: Sequence[CheckedCase], conf: Conf) -> dict[str, str]:
    """Ask the model again for each case. Return the replies by the names of the cases.

    Raises:
        FormatError: The profile has no server.
        ModelError: The server gave no reply.
    """
    profile = conf.profiles[conf.model_roles["speaker"][0]]
    if profile.client not in ("openai", "anthropic"):
        raise FormatError(
            KIND,
            f"--ask needs a model, and the profile '{profile.name}' of this game has no server",
        )
    access = access_in_loop(profile, conf)
    client: Any = access.client
    replies: dict[str, str] = {}
    try:
        for one in differing:
            assert one.prompt is not None and one.case is not None  # it was composed
            request = access.request(
                [as_chat_message(message) for message in one.prompt.messages],
                max_tokens=profile.reply_tokens,
            )
            reply = await client.answer(request, None)
            replies[one.name] = spoken_text(reply.text, own_names=[one.case.npc.name])
    finally:
        await client.aclose()
    return replies
