"""Find out how many tokens a server's context window has.

The server is asked; no long prompt is sent to find out. Ollama, llama.cpp, LM Studio and KoboldCpp
have addresses of their own for this. vLLM, OpenRouter and others report it in their list of models.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeGuard

from evennia_ai.services.llm.probes import Answer, Fetch, Probe, entries_of, is_called, name_of
from evennia_ai.services.llm.profiles import ModelProfile


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The size of a server's context window, in tokens."""

    tokens: int
    setting: str
    """The server's setting that enlarges the window."""


_WINDOW_FIELDS: Final = {
    "max_model_len": "--max-model-len of vLLM",
    "context_length": "another model",
    "context_window": "another model",
    "max_context_length": "another model",
    "max_input_tokens": "another model",
}
"""Fields that contain the window in a list of models, each with the setting that enlarges it."""
_OLLAMA: Final = "OLLAMA_CONTEXT_LENGTH of Ollama, or num_ctx of the model"


def list_address(profile: ModelProfile) -> str:
    """Return the address at which the server lists its models."""
    base = profile.base_url.rstrip("/")
    if profile.client == "anthropic":
        return f"{base.removesuffix('/v1')}/v1/models"
    return f"{base}/models"


async def window_of(
    profile: ModelProfile, listed: Answer, fetch: Fetch, seconds: float
) -> Window | None:
    """Return the server's context window, or None if the server does not report it.

    Args:
        profile: The profile of the model.
        listed: The server's list of models.
        fetch: Sends requests to the server, with the key.
        seconds: The time limit. With 0, only the list is read.
    """
    entries = entries_of(listed.json)
    mine = next((one for one in entries if is_called(name_of(one), profile.model)), None)
    if mine is None and len(entries) == 1:
        mine = entries[0]
    told = _of_entry(mine) if mine is not None else None
    if told is not None or profile.client == "anthropic" or not seconds:
        return told
    root = profile.base_url.rstrip("/").removesuffix("/v1")
    running, shown, lm_studio, props, slots, kobold = await fetch(
        [
            Probe(address=f"{root}/api/ps"),
            Probe(address=f"{root}/api/show", body={"model": profile.model}),
            Probe(address=f"{root}/api/v0/models"),
            Probe(address=f"{root}/props"),
            Probe(address=f"{root}/slots"),
            Probe(address=f"{root}/api/extra/true_max_context_length"),
        ],
        seconds,
    )
    found = _of_ollama(profile.model, running, shown) or _of_lm_studio(profile.model, lm_studio)
    if found is not None:
        return found
    settings = _object(_object(props.json).get("default_generation_settings"))
    first = slots.json[0] if isinstance(slots.json, list) and slots.json else None
    for tokens in (_object(first).get("n_ctx"), settings.get("n_ctx")):
        if _is_count(tokens):
            count = _object(props.json).get("total_slots")
            share = f" (one of {count} slots)" if _is_count(count) and count > 1 else ""
            return Window(
                tokens=tokens, setting=f"-c of llama.cpp, which --parallel divides{share}"
            )
    tokens = _object(kobold.json).get("value")
    return (
        Window(tokens=tokens, setting="--contextsize of KoboldCpp") if _is_count(tokens) else None
    )


def _of_entry(entry: Mapping[str, Any]) -> Window | None:
    for name, setting in _WINDOW_FIELDS.items():
        tokens = [entry.get(name), _object(entry.get("top_provider")).get(name)]
        if known := [one for one in tokens if _is_count(one)]:
            return Window(tokens=min(known), setting=setting)
    return None


def _of_ollama(model: str, running: Answer, shown: Answer) -> Window | None:
    """Return the window of the model that Ollama has loaded, or the one that it will have."""
    for entry in entries_of(running.json):
        tokens = entry.get("context_length")
        if is_called(name_of(entry), model) and _is_count(tokens):
            return Window(tokens=tokens, setting=_OLLAMA)
    parameters = _object(shown.json).get("parameters")
    for line in parameters.splitlines() if isinstance(parameters, str) else []:
        name, _, value = line.partition(" ")
        if name == "num_ctx" and value.strip().isdecimal():
            return Window(tokens=int(value), setting=_OLLAMA)
    return None


def _of_lm_studio(model: str, listed: Answer) -> Window | None:
    for entry in entries_of(listed.json):
        tokens = entry.get("loaded_context_length")
        if is_called(name_of(entry), model) and _is_count(tokens):
            return Window(tokens=tokens, setting="the context length of the model in LM Studio")
    return None


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
