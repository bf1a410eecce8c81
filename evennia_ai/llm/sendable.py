"""Text as it can be sent at all."""


def sendable(text: str) -> str:
    """`text` with a question mark for half a surrogate pair: a player's client can send one."""
    return text.encode("utf-8", "replace").decode("utf-8")
