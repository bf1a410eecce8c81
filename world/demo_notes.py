"""What NPCs of the demo note without a model: the longest thing that each person said, quoted.

`make play WORKERS=2` has workers ask this instead of a model, so that they have something to do
where there is none. It reads the transcript of the question as a model would.
"""

import json
import re
from typing import Any, Final

LINE: Final = re.compile(r"^ *\[\d+\] ([^:\n]+): (.+)$", re.MULTILINE)
CHARACTER: Final = re.compile(r"^The character is (.+?)\. Note", re.MULTILINE)
NOBODY: Final = "Somebody"
"""In a transcript, who does what nobody said."""
IMPORTANCE: Final = 5


def notes(request: Any) -> str:
    """The answer to a `ChatRequest`: observations as JSON, or a summary, as it asks."""
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
