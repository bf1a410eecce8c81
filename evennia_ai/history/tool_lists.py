"""Tool lists: what a model is told it can do is recorded like every other text it is given.

The list is no message: it goes beside the messages. So its record is a snapshot, stored once in a
segment for as long as it stays the same, and the manifest names it.
"""

from collections.abc import Iterable

from evennia_ai.history.records import NewRecord, RecordKind, canonical_json, content_sha256
from evennia_ai.history.sending import Text, TextKey
from evennia_ai.prompt.tool_specs import ToolSpec

TOOLS = "tools"
"""What a snapshot of tools says that it is of."""


def tool_list(tools: Iterable[ToolSpec]) -> Text:
    """The record that a list of tools becomes."""
    body = canonical_json([[one.name, one.description, dict(one.parameters)] for one in tools])
    new = NewRecord(kind=RecordKind.SNAPSHOT, role="system", body=body, meta={"of": TOOLS})
    return Text(new, TextKey(new.kind, new.role, content_sha256(new)))
