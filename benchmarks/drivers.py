"""The drivers: one class for each way of making the prompts of workload W1.

`turn(workload, t)` returns the messages of turn t as dicts. Every driver gets the same counter and
keeps between turns what a sensible user of that library would keep. Before it is timed, its answer
is compared with `workload.expected`. `exact` is False for a library that cannot give exactly this
answer; `note` says why. A driver whose package is missing is left out.
"""

import logging
import tempfile
from pathlib import Path

import workload

from evennia_ai.engine.compose import compose
from evennia_ai.engine.inputs import ComposeRules, Inputs
from evennia_ai.engine.prompt.budget import BudgetRules
from evennia_ai.engine.prompt.components import PromptComponent
from evennia_ai.engine.prompt.expansion import ComponentSet
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import said
from evennia_ai.engine.prompt.tokens import TokenCounter


class Ours:
    """The driver of evennia_ai: the whole `compose`, with its checks and its trace."""

    exact, note = True, "with verdicts for every component and the history"

    def __init__(self, count, encode, *, beside=None):
        """Make a driver.

        `beside` is the driver of another NPC in the same game, with the same texts.
        """
        self.counter = (
            beside.counter
            if beside
            else TokenCounter(
                "bench",
                "1",
                count,
                per_message=workload.PER_MESSAGE,
                per_prompt=workload.PER_PROMPT,
            )
        )
        self.authored = beside.authored if beside else None
        self.rules = ComposeRules(
            budget=BudgetRules(limit_tokens=workload.BUDGET, keep_percent=100),
            layout="classic",
            counter=self.counter,
        )
        self.components = None
        self.history = History()

    def prompt(self, w, t):
        if self.components is None:
            self.authored = self.authored or tuple(_components(w))
            self.components = ComponentSet(self.authored)
        new = w.history[len(self.history) : w.length(t)]
        self.history = self.history.appended(*(said(role, content) for role, content in new))
        return compose(
            Inputs(
                components=self.components,
                rules=self.rules,
                history=self.history,
                values=w.states[t],
            )
        )

    def turn(self, w, t):
        return self.prompt(w, t).messages


def _components(w):
    yield PromptComponent(id=0, key="system_prompt", content=w.system, required=True)
    for key, order, template in w.components:
        yield PromptComponent(id=order, key=key, content=template)
    for depth, order, role, template in w.injections:
        yield PromptComponent(
            id=100 + depth,
            key=f"note{depth}",
            content=template,
            role=role,
            injection_depth=depth,
            injection_order=order,
            placement="history",
        )


class Naive:
    """A driver without a library and without a cache: the simplest possible loop."""

    exact, note = True, ""

    def __init__(self, count, encode):
        self.count = count

    def turn(self, w, t):
        return workload.expected(w, t, self.count)


class LangChain:
    """The driver of langchain-core: PromptTemplate for the texts, trim_messages for the history."""

    exact, note = True, "no trace"

    def __init__(self, count, encode):
        from langchain_core.messages import AIMessage, HumanMessage, trim_messages
        from langchain_core.prompts import PromptTemplate

        self.count, self.trim, self.Template = count, trim_messages, PromptTemplate
        self.kinds = {"user": HumanMessage, "assistant": AIMessage}
        self.templates, self.history = None, []

    def cost(self, messages):
        return sum(self.count(m.content) + workload.PER_MESSAGE for m in messages)

    def make(self, text):
        return self.Template.from_template(text.replace("{{", "{").replace("}}", "}"))

    def turn(self, w, t):
        if self.templates is None:
            texts = [w.system] + [text for _, _, text in sorted(w.components, key=lambda c: c[1])]
            self.templates = [self.make(text) for text in texts]
            self.notes = [(depth, self.make(text)) for depth, _, _, text in w.injections]
        for role, content in w.history[len(self.history) : w.length(t)]:
            self.history.append(self.kinds[role](content=content))
        state = w.states[t]
        head = [_system(template.format(**state)) for template in self.templates]
        notes = [(d, _system(template.format(**state))) for d, template in self.notes]
        fixed = _fixed(self.count, head, notes)
        kept = self.trim(
            self.history,
            max_tokens=workload.BUDGET - fixed,
            token_counter=self.cost,
            strategy="last",
        )
        roles = {"human": "user", "ai": "assistant"}
        return head + _interleave(
            [{"role": roles[m.type], "content": m.content} for m in kept], notes
        )


class PromptBudget:
    """The driver of promptbudget: pack_chat with pinned components and injections.

    Like ours, it reports its decisions.
    """

    exact, note = False, "pads each text to pay the cost of a message, has its own separator rules"

    def __init__(self, count, encode):
        from promptbudget import Message, pack_chat

        self.count, self.Message, self.pack = count, Message, pack_chat
        self.history = []

    def turn(self, w, t):
        state = w.states[t]
        for role, content in w.history[len(self.history) : w.length(t)]:
            self.history.append(self.Message(role, content))
        messages, end = list(self.history), len(self.history)
        for depth, _, role, text in sorted(w.injections):
            note = self.Message(role, workload.fill(text, state), pinned=True)
            messages.insert(end - depth, note)
        context = [
            self.Message("system", workload.fill(text, state), pinned=True)
            for _, _, text in w.components
        ]
        return self.pack(
            history=messages,
            budget=workload.BUDGET - workload.PER_PROMPT,
            system=workload.fill(w.system, state),
            context=context,
            tokenizer=self.count,
            tokens_per_message=workload.PER_MESSAGE,
            pin_last_user=False,
        ).to_openai()


class PromptPoet:
    """The driver of prompt-poet: a YAML and Jinja template with priorities of its parts."""

    exact, note = True, "no trace"

    TEMPLATE = """
- name: system
  role: system
  content: '{{ system }}'
{% for text in components %}
- name: component
  role: system
  content: '{{ text }}'
{% endfor %}
{% for message in history %}
{% for text in notes_before[loop.revindex] %}
- name: note
  role: system
  content: '{{ text }}'
{% endfor %}
- name: message
  role: {{ message[0] }}
  content: '{{ escape_special_characters(message[1]) }}'
  truncation_priority: 1
{% endfor %}
{% for text in notes_before[0] %}
- name: note
  role: system
  content: '{{ text }}'
{% endfor %}
"""

    def __init__(self, count, encode):
        import prompt_poet
        from template_loaders import LocalFSTemplateLoader

        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name) / "w1.yml.j2"
        path.write_text(self.TEMPLATE, encoding="utf-8")
        self.Prompt, self.loader = prompt_poet.Prompt, LocalFSTemplateLoader(str(path))
        extra = [0] * workload.PER_MESSAGE
        self.encode = lambda text: encode(text) + extra
        self.quiet = logging.getLogger("benchmarks.quiet")
        self.quiet.disabled = True

    def turn(self, w, t):
        state = w.states[t]
        notes = {age: [] for age in range(w.length(t) + 1)}
        for depth, _, _, text in w.injections:
            notes[depth].append(workload.fill(text, state))
        prompt = self.Prompt(
            template_data={
                "system": workload.fill(w.system, state),
                "components": [workload.fill(text, state) for _, _, text in w.components],
                "history": w.history[: w.length(t)],
                "notes_before": notes,
            },
            template_loader=self.loader,
            from_cache=True,
            encode_func=self.encode,
            token_limit=workload.BUDGET - workload.PER_PROMPT,
            truncation_step=1,
            logger=self.quiet,
        )
        prompt.tokenize()
        prompt.truncate()
        return prompt.messages


def _system(text):
    return {"role": "system", "content": text}


def _fixed(count, head, notes):
    """Return the tokens of the texts that are never dropped."""
    messages = head + [message for _, message in notes]
    return workload.PER_PROMPT + sum(count(m["content"]) + workload.PER_MESSAGE for m in messages)


def _interleave(body, notes):
    """Return `body` with each note inserted before its newest `depth` messages."""
    out, at = [], 0
    for depth, message in sorted(notes, key=lambda note: -note[0]):
        stop = max(0, len(body) - depth)
        out += body[at:stop]
        out.append(message)
        at = stop
    return out + body[at:]


DRIVERS = {
    "evennia_ai": Ours,
    "naive loop": Naive,
    "langchain trim_messages": LangChain,
    "promptbudget pack_chat": PromptBudget,
    "prompt-poet": PromptPoet,
}
