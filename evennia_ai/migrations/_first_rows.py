"""The rows that the first migration writes: static components, and a state revision of each kind.

Writers of a kind lock its state revision. The rows exist from the start, because otherwise two
processes could both create one.
"""

import json
import time
from typing import Any, Final

from evennia_ai.engine.prompt.components import STATIC_COMPONENTS

KINDS: Final = (
    *("components", "cards", "presets", "lorebooks", "notes", "personas", "memories"),
    *("knowledge", "lore_states", "names", "halts", "history", "contexts"),
    "scripts",
)
_BY: Final = "evennia_ai"
_COLUMNS: Final = (
    *("id", "key", "name", "description", "content", "role", "enabled", "is_static"),
    *("injection_depth", "injection_order", "placement", "volatile", "trust", "priority"),
    *("required", "depth_counts", "when"),
)


def create(apps: Any, schema_editor: Any) -> None:
    """Make the static components of the game, each with its first revision, and the revisions."""
    component_rows = apps.get_model("evennia_ai", "Component").objects
    revision_rows = apps.get_model("evennia_ai", "Revision").objects
    for component in STATIC_COMPONENTS:
        value = {name: getattr(component, name) for name in _COLUMNS}
        columns = {("registry_id" if n == "id" else n): v for n, v in value.items()}
        _, is_new = component_rows.get_or_create(
            scope_kind="game", scope_ref="", key=component.key, defaults=columns
        )
        if is_new:
            revision_rows.create(
                kind="component",
                scope_kind="game",
                scope_ref="",
                key=component.key,
                number=1,
                action="created",
                changed_by=_BY,
                changed_at=time.time(),
                value=json.dumps(value, sort_keys=True, separators=(",", ":")),
            )
    for kind in KINDS:
        apps.get_model("evennia_ai", "StateRevision").objects.get_or_create(name=kind)


def keep_plain(apps: Any, schema_editor: Any) -> None:
    """Have PostgreSQL not compress postings, which are small already: to unpack them takes long."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(
            "ALTER TABLE evennia_ai_knowledgeposting ALTER COLUMN packed SET STORAGE EXTERNAL"
        )
