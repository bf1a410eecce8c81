"""Chat templates as servers apply them, for common model families.

Each raises an error where the real template does: for a wrong order of roles, for an unknown role,
for two calls at once. Their output is shortened, so that the templates stay readable.
"""

from collections.abc import Sequence
from functools import cache
from typing import Final

import jinja2

from evennia_ai.services.llm.chat import ChatMessage

CHATML: Final = """\
{%- for message in messages -%}
{%- if message.role not in ["system", "user", "assistant", "tool"] -%}
{{ raise("unknown role " ~ message.role) }}
{%- endif -%}
<|im_start|>{{ message.role }}
{{ message.content }}
{%- for call in message.tool_calls %}<tool_call>{{ call.name }} {{ call.arguments }}</tool_call>
{%- endfor %}<|im_end|>
{% endfor -%}"""

LLAMA_3: Final = """\
{%- for message in messages -%}
{%- if message.role == "system" and not loop.first -%}
{{ raise("a system message comes first") }}
{%- endif -%}
{%- if message.tool_calls and message.tool_calls | length != 1 -%}
{{ raise("this model makes one call at a time") }}
{%- endif -%}
{%- if message.role == "tool" and not loop.previtem.tool_calls -%}
{{ raise("a result without its call") }}
{%- endif -%}
<|start_header_id|>{{ "ipython" if message.role == "tool" else message.role }}<|end_header_id|>

{{ message.content }}
{%- for call in message.tool_calls %}{{ call.name }} {{ call.arguments }}{% endfor -%}
<|eot_id|>
{%- endfor -%}"""

MISTRAL: Final = """\
{%- set spoken = namespace(count=0) -%}
{%- if messages and messages[0].role == "system" -%}
{%- set messages = messages[1:] -%}
{%- endif -%}
{%- for message in messages -%}
{%- if message.role == "user" or (message.role == "assistant" and not message.tool_calls) -%}
{%- if (message.role == "user") != (spoken.count % 2 == 0) -%}
{{ raise("user and assistant must alternate") }}
{%- endif -%}
{%- set spoken.count = spoken.count + 1 -%}
{%- endif -%}
{%- if message.role == "system" -%}
{{ raise("only user, assistant and tool after the system message") }}
{%- elif message.role == "tool" -%}
{%- if loop.first or not (loop.previtem.tool_calls or loop.previtem.role == "tool") -%}
{{ raise("a result without its call") }}
{%- endif -%}
[TOOL_RESULTS]{{ message.content }}[/TOOL_RESULTS]
{%- elif message.role == "user" -%}
[INST]{{ message.content }}[/INST]
{%- else -%}
{{ message.content }}
{%- for call in message.tool_calls %}[TOOL_CALLS]{{ call.name }} {{ call.arguments }}{% endfor -%}
</s>
{%- endif -%}
{%- endfor -%}"""

GEMMA: Final = """\
{%- if messages and messages[0].role == "system" -%}
{{ messages[0].content }}
{%- set messages = messages[1:] -%}
{%- endif -%}
{%- for message in messages -%}
{%- if (message.role == "user") != (loop.index0 % 2 == 0) -%}
{{ raise("user and assistant must alternate") }}
{%- endif -%}
{%- if message.role not in ["user", "assistant"] or message.tool_calls -%}
{{ raise("no tools") }}
{%- endif -%}
<start_of_turn>{{ "model" if message.role == "assistant" else "user" }}
{{ message.content }}<end_of_turn>
{% endfor -%}"""


class TemplateError(Exception):
    """A chat template does not accept these messages."""


def applied(template: str, messages: Sequence[ChatMessage]) -> str:
    """Return the text that the model reads."""
    return _compiled(template).render(messages=messages, **{"raise": _raise})


@cache
def _compiled(template: str) -> jinja2.Template:
    return jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(template)


def _raise(problem: str) -> None:
    raise TemplateError(problem)
