"""What a model server taught us about itself; it is forgotten when the process ends.

A refusal may name a field that the server does not take, the window of its model, or what it wants
of earlier calls of tools. One `Learned` belongs to one model at one address, and all profiles of
that model share it. The client learns in the bridge's thread and the game reads in its own, so
each value is replaced as a whole and never changed in place.
"""

from collections.abc import Mapping
from typing import Any, Final

from evennia_ai.engine.errors import RoleWish

CUT_PERCENT: Final = 75
"""What remains of a prompt that is too long for a server which names no window."""

LEAST_TOKENS: Final = 256
"""A window below this is not believed: it is a count of something else."""

# Fields that may be taken out of messages and tools, at any depth.
INNER_FIELDS: Final = frozenset(
    [
        *("reasoning_content", "reasoning_details", "reasoning", "extra_content"),
        *("cache_control", "strict", "additionalProperties"),
    ]
)
# Fields of the body without which a request is not the same request.
NEEDED_FIELDS: Final = frozenset(
    ["model", "messages", "system", "stream", "max_tokens", "tools", "tool_choice"]
)
ROLES_TAKEN: Final[Mapping[RoleWish, tuple[str, str]]] = {
    "no_system": ("gets no role system", "system_role to False"),
    "in_turn": ("gets one system message, then user and assistant", "strict_roles to True"),
}
"""What a server is sent that refused other roles, and the setting of a profile that does so."""


def setting_for(refused: Mapping[str, str]) -> str:
    """Return the setting of a profile that leaves refused fields out for good."""
    settings = [f'reply_limit to "{instead}"' for instead in refused.values() if instead]
    extra = {field: None for field, instead in refused.items() if not instead}
    return " and ".join([*settings, *([f"extra to {extra}"] if extra else [])])


class Learned:
    """What one model at one address said about itself."""

    def __init__(self) -> None:
        self.window_tokens: int | None = None
        """Tokens of prompt and reply together, as the server counts them; None: not known."""
        self.limit_tokens: int | None = None
        """Tokens of a prompt, as we count them; None: not known."""
        self.refused: Mapping[str, str] = {}
        """The fields that it refused, each with the field to send instead, "" for none."""
        self.tells_past_calls = False
        """True if it wants fields in earlier calls of tools that only their own turn had."""
        self.roles: frozenset[RoleWish] = frozenset()
        """What it wants of the roles of messages."""

    def describe_lines(self) -> list[str]:
        """Return what the server taught us, a line each, with the setting that lasts."""
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
        """Return how requests to the server changed after its refusals, "" if they did not."""
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
        """Return the settings of a profile that make these changes last."""
        return " and ".join(
            [
                *([setting_for(self.refused)] if self.refused else []),
                *(ROLES_TAKEN[wish][1] for wish in sorted(self.roles)),
                *(['past_calls to "told"'] * self.tells_past_calls),
            ]
        )

    def left_out(self, extra: Mapping[str, Any]) -> dict[str, str]:
        """Return the fields that a body goes without, each with the field sent instead, or "".

        They are those that the server refused, and those that a profile sets to None in `extra`.
        """
        return {name: "" for name, value in extra.items() if value is None} | {**self.refused}

    def learn_refusal(self, field: str, *, instead: str = "") -> bool:
        """Remember that the server refuses a field; True if that is news."""
        if field in self.refused:
            return False
        self.refused = {**self.refused, field: instead}
        return True

    def learn_roles(self, wish: RoleWish) -> bool:
        """Remember what the server wants of roles; True if that is news."""
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
        """Remember how long a prompt may be, after one was too long.

        A server may count more tokens than we do, so the window is taken in our own tokens.

        Args:
            window_tokens: What the server named, None for nothing.
            counted_tokens: What the server counted for the prompt, None for nothing.
            sent_tokens: What we counted for the prompt.
            reply_tokens: What the reply may have.
        """
        shorter = sent_tokens * CUT_PERCENT // 100
        if window_tokens is None or window_tokens < LEAST_TOKENS:
            self.limit_tokens = shorter
            return
        self.window_tokens = window_tokens
        room = window_tokens - reply_tokens
        if counted_tokens is not None and counted_tokens > sent_tokens:
            room = room * sent_tokens // counted_tokens
        # The server refused this very prompt, whatever the counts say.
        self.limit_tokens = max(1, min(room, sent_tokens - 1))

    def prompt_limit(self, limit_tokens: int) -> int:
        """Return how many of our tokens a prompt may have, at most `limit_tokens`."""
        return limit_tokens if self.limit_tokens is None else min(limit_tokens, self.limit_tokens)


def without_fields(body: Mapping[str, Any], refused: Mapping[str, str]) -> dict[str, Any]:
    """Return a request's body without refused fields, or with those that are sent instead.

    Fields without which a request is not the same stay, whoever refuses them.
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
    """A JSON value without members of these names; arguments of a tool that are called so stay."""
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
