"""Form memories for NPCs of the demo without a model: quote each person's longest line.

`make play WORKERS=2` makes workers call this instead of a model, so that they have something to do
if there is none. It reads the transcript in the request, as a model would.
"""

import json
import re
from typing import Any, Final

LINE: Final = re.compile(r"^ *\[\d+\] ([^:\n]+): (.+)$", re.MULTILINE)
CHARACTER: Final = re.compile(r"^The character is (.+?)\. Note", re.MULTILINE)
NOBODY: Final = "Somebody"
"""The name that a transcript gives to events that nobody said."""
IMPORTANCE: Final = 5


def notes(request: Any) -> str:
    """Answer a `ChatRequest` with memories as JSON or with a summary, as it asks."""
    asked = "\n".join(message.content for message in request.messages)
    lines = LINE.findall(asked)
    found = CHARACTER.search(asked)
    if found is None:
        return "\n".join(f"{name}: {line}" for name, line in lines)
    longest: dict[str, str] = {}
    for name, line in lines:
        if name not in (NOBODY, found[1]):
            longest[name] = max(longest.get(name, ""), line, key=len)
    return json.dumps(
        {
            "observations": [
                {"text": f'{name} said: "{line}"', "about": name, "importance": IMPORTANCE}
                for name, line in longest.items()
            ]
        }
    )
