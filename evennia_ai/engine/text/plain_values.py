"""Values as JSON: what pages and the command line write of the values that commands render."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any


def plain_value(value: Any) -> Any:
    """Return a value in the types that JSON has.

    A dataclass becomes an object of its public fields and properties, a tuple or set a list.
    """
    if is_dataclass(value) and not isinstance(value, type):
        names = [one.name for one in fields(value)]
        for kind in type(value).__mro__:
            names += [name for name, one in vars(kind).items() if isinstance(one, property)]
        public = [name for name in names if not name.startswith("_")]
        return {name: plain_value(getattr(value, name)) for name in public}
    if isinstance(value, Mapping):
        return {str(key): plain_value(one) for key, one in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(plain_value, value))
    if isinstance(value, list | tuple):
        return [plain_value(one) for one in value]
    return value
