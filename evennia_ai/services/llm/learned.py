"""What a model server's refusals have shown about it.

A refusal may name a field that the server does not accept, the size of its window, or the format
that it requires for earlier tool calls. This knowledge is lost when the process ends. All profiles
of one model at one address share one `Learned`. The client writes it in the bridge's thread, and
the game reads it in its own. So values are replaced and never changed in place.
"""

from collections.abc import Mapping
from typing import Any, Final

from evennia_ai.engine.errors import RoleWish

CUT_PERCENT: Final = 75
"""The percentage of a refused prompt that is sent next time, if the server names no window."""

LEAST_TOKENS: Final = 256
"""The lowest window that is believed. A lower number in an error counts something else."""

# Fields that may be removed from messages and tools, at any depth.
INNER_FIELDS: Final = frozenset(
    [
        *("reasoning_content", "reasoning_details", "reasoning", "extra_content"),
        *("cache_control", "strict", "additionalProperties"),
    ]
)
# Fields of the body that every request needs. They are never removed.
NEEDED_FIELDS: Final = frozenset(
    ["model", "messages", "system", "stream", "max_tokens", "tools", "tool_choice"]
)
ROLES_TAKEN: Final[Mapping[RoleWish, tuple[str, str]]] = {
    "no_system": ("gets no role system", "system_role to False"),
    "in_turn": ("gets one system message, then user and assistant", "strict_roles to True"),
}
"""For each refusal of roles, what the server then gets and the setting that keeps it so."""


def setting_for(refused: Mapping[str, str]) -> str:
    """Return the profile setting that permanently leaves out these refused fields."""
    settings = [f'reply_limit to "{instead}"' for instead in refused.values() if instead]
    extra = {field: None for field, instead in refused.items() if not instead}
    return " and ".join([*settings, *([f"extra to {extra}"] if extra else [])])


class Learned:
    """What the refusals of one model at one address have shown."""

    def __init__(self) -> None:
        self.window_tokens: int | None = None
        """Tokens of prompt and reply together, by the server's count; None if unknown."""
        self.limit_tokens: int | None = None
        """Tokens of a prompt, by our count; None if unknown."""
        self.refused: Mapping[str, str] = {}
        """The fields that it refused, each with the field to send instead, or ""."""
        self.tells_past_calls = False
        """True if it requires fields in earlier tool calls that are kept for one turn only."""
        self.roles: frozenset[RoleWish] = frozenset()
        """Its requirements on the roles of messages."""

    def describe_lines(self) -> list[str]:
        """Return a line for each fact learned about the server, with the setting to keep it."""
        lines = []
        if self.limit_tokens is not None:
            window = f"reads {self.window_tokens} tokens" if self.window_tokens else "refused more"
            size = f" to {self.window_tokens}" if self.window_tokens else ""
            lines.append(
                f"{window}: a prompt gets at most {self.limit_tokens} (set context_tokens{size})"
            )
        if changes := self.describe_changes():
            lines.append(f"{changes} (set {self.lasting_settings()})")
        return lines

    def describe_changes(self) -> str:
        """Return how refusals changed later requests, as the rest of a sentence, or ""."""
        return ", ".join(
            [
                *(
                    f"gets {instead} for {field}" if instead else f"gets no {field}"
                    for field, instead in self.refused.items()
                ),
                *(ROLES_TAKEN[wish][0] for wish in sorted(self.roles)),
                *(["gets tool calls of earlier turns as text"] * self.tells_past_calls),
            ]
        )

    def lasting_settings(self) -> str:
        """Return the profile settings that make the changes after refusals permanent."""
        return " and ".join(
            [
                *([setting_for(self.refused)] if self.refused else []),
                *(ROLES_TAKEN[wish][1] for wish in sorted(self.roles)),
                *(['past_calls to "told"'] * self.tells_past_calls),
            ]
        )

    def left_out(self, extra: Mapping[str, Any]) -> dict[str, str]:
        """Return the fields that a request body must not contain, with the replacement of each.

        A replacement is the name of another field, or "" if the field is only left out. The
        result contains the fields that the server refused, and the fields that are None in
        `extra`.

        Args:
            extra: The setting `extra` of the profile.
        """
        return {name: "" for name, value in extra.items() if value is None} | {**self.refused}

    def learn_refusal(self, field: str, *, instead: str = "") -> bool:
        """Store that the server refuses a field. Return True if that is new."""
        if field in self.refused:
            return False
        self.refused = {**self.refused, field: instead}
        return True

    def learn_roles(self, wish: RoleWish) -> bool:
        """Store which roles the server requires. Return True if that is new."""
        if not wish or wish in self.roles:
            return False
        self.roles |= {wish}
        return True

    def learn_window(
        self,
        *,
        window_tokens: int | None,
        counted_tokens: int | None,
        sent_tokens: int,
        reply_tokens: int,
    ) -> None:
        """Store a limit for prompts after the server refused one as too long.

        A server may count more tokens than the game does. So its window is converted into tokens as
        the game counts them.

        Args:
            window_tokens: The window that the server named, or None.
            counted_tokens: The server's count of the prompt, or None.
            sent_tokens: The game's own count of the prompt.
            reply_tokens: The tokens reserved for the reply.
        """
        shorter = sent_tokens * CUT_PERCENT // 100
        if window_tokens is None or window_tokens < LEAST_TOKENS:
            self.limit_tokens = shorter
            return
        self.window_tokens = window_tokens
        room = window_tokens - reply_tokens
        if counted_tokens is not None and counted_tokens > sent_tokens:
            room = room * sent_tokens // counted_tokens
        # The server refused this prompt, so the limit must be lower than its size, whatever the
        # counts say.
        self.limit_tokens = max(1, min(room, sent_tokens - 1))

    def prompt_limit(self, limit_tokens: int) -> int:
        """Return the most tokens that a prompt may have, as the game counts them.

        It is `limit_tokens`, or less if the server has refused such a long prompt before.
        """
        return limit_tokens if self.limit_tokens is None else min(limit_tokens, self.limit_tokens)


def without_fields(body: Mapping[str, Any], refused: Mapping[str, str]) -> dict[str, Any]:
    """Return a request's body without refused fields, or with their replacements.

    Fields that every request needs stay even if the server refuses them.
    """
    if not refused:
        return dict(body)
    inner = INNER_FIELDS & set(refused)
    left: dict[str, Any] = {}
    for name, value in body.items():
        instead = refused.get(name)
        if instead:
            left[instead] = value
        elif instead is None or name in NEEDED_FIELDS:
            left[name] = _without(value, inner) if inner else value
    return left


def _without(value: Any, names: frozenset[str]) -> Any:
    """Return a JSON value without members of these names.

    Arguments of tool calls are not changed.
    """
    if isinstance(value, list):
        return [_without(one, names) for one in value]
    if not isinstance(value, dict):
        return value
    left = {name: one for name, one in value.items() if name not in names}
    return {
        name: {argument: _without(schema, names) for argument, schema in one.items()}
        if name == "properties" and isinstance(one, dict)
        else _without(one, names)
        for name, one in left.items()
    }
