"""`ai/request`: write the inputs of a turn into a file that composes to the same prompt.

`evennia-ai compose --request` reads the file. The file holds more than the prompt shows: every
entry of each lorebook, and also the memories that were not recalled.
"""

from typing import Any, Final

from evennia_ai.commands.ai.history import exportable
from evennia_ai.commands.base import CommandError
from evennia_ai.commands.folder import new_file, shown_path
from evennia_ai.engine.errors import EvenniaAIError
from evennia_ai.engine.execution_request import execution_request
from evennia_ai.engine.history.turn.sending import storable_messages
from evennia_ai.engine.prompt.messages import messages_sha256
from evennia_ai.npc.mind.viewers import seer_for
from evennia_ai.npc.senses.presence import NPC
from evennia_ai.npc.views.looking import past_inputs_for
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.history.past_turns import replay_stored_turn
from evennia_ai.store.history.turns import StoredTurn

SUFFIX: Final = ".request"


def write_request(caller: Any, npc: NPC, turn: StoredTurn) -> str:
    """Write the request of a turn into a new file of the card folder. Return a line about it.

    Raises:
        CommandError: Something in it is hidden from `caller`, or it can no longer be read back.
    """
    exportable(caller, npc, turn.conversation.id)
    sent = replay_stored_turn(turn)
    if sent.problem:
        raise CommandError(f"Turn {turn.number} cannot be replayed: {sent.problem}. {_NOTHING}")
    try:
        past = past_inputs_for(seer_for(caller, npc.ai.ref), turn)
        if past.hidden:
            raise CommandError(
                f"Turn {turn.number} of {npc.key} was made from lore, memories or facts that locks"
                f" hide from you. {_NOTHING} A builder who may see them can write the file."
            )
        request = execution_request(
            past.inputs,
            npc_ref=past.npc_ref,
            conversation=turn.conversation.id,
            event=turn.event_record or "",
            tools=sent.tools,
        )
        content = request.to_json().encode()
        composed = messages_sha256(storable_messages(request.composed().prompt.messages))
    except EvenniaAIError as error:
        problem = f"Turn {turn.number} cannot be composed again: {error}."
        raise CommandError(f"{problem} {_NOTHING}") from error
    path = new_file(conf().card_folder, f"{npc.key}-{turn.number}", content, suffix=SUFFIX)
    same = (
        f"It composes to the bytes that were sent, sha256 {composed}."
        if composed == turn.manifest.sha256
        else f"It composes to another prompt than was sent, sha256 {composed}: the game was"
        " upgraded or its settings changed since."
    )
    return (
        f"Wrote the request of turn {turn.number} of {npc.key}, {len(content)} bytes, to"
        f" {path.name} in {shown_path(conf().card_folder)}. {same} 'evennia-ai compose --request"
        f" {shown_path(path)}' composes it again. Anyone who has the file can read all of it."
    )


_NOTHING: Final = "Nothing was written."
