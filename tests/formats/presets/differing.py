"""Find the differences between two JSON values."""

from typing import Any


def differences(before: Any, after: Any, path: str = "") -> list[str]:
    """Return the paths of the values that differ between two JSON values."""
    if type(before) is not type(after):
        return [path]
    if isinstance(before, dict):
        names = [*before, *(name for name in after if name not in before)]
        return [
            one
            for name in names
            for one in (
                differences(before[name], after[name], f"{path}.{name}")
                if name in before and name in after
                else [f"{path}.{name}"]
            )
        ]
    if isinstance(before, list) and len(before) == len(after):
        pairs = enumerate(zip(before, after, strict=True))
        return [one for n, (a, b) in pairs for one in differences(a, b, f"{path}[{n}]")]
    return [] if before == after else [path]
