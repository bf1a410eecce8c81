"""Imitations of eight model servers on loopback: what each accepts, refuses and reports.

They answer as the real servers did in autumn 2026 in everything that matters to a client: paths,
keys, names of models, refused fields, the window and what happens to longer prompts, usage, tools,
schemas, and the format of errors. All say the same sentence. They follow the documentation and the
source of each server:

    ollama      github.com/ollama/ollama, docs/api.md, openai/openai.go: 4,096 tokens by default
    llama.cpp   github.com/ggml-org/llama.cpp, tools/server/README.md: slots share the window
    lmstudio    lmstudio.ai/docs/developer/rest: /api/v0/models; a text under "error"
    koboldcpp   github.com/LostRuins/koboldcpp, its API documentation: /api/extra; cuts the start
    vllm        docs.vllm.ai: max_model_len in /v1/models; tools only if they were switched on
    openrouter  openrouter.ai/docs/api-reference: comments in streams, context_length in /v1/models
    openai      platform.openai.com/docs/api-reference: fields that reasoning models refuse
    anthropic   docs.anthropic.com/en/api: /v1/messages, x-api-key, too long prompts refused
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, ClassVar, Final
from zlib import crc32

KEY: Final = "sk-of-the-tests-4711"
SENTENCE: Final = "She leaves at the slack, if the wind lets her."
CHARACTERS_PER_TOKEN: Final = 4


class RefusedError(Exception):
    """The server answers with this status and body."""

    def __init__(self, status: int, body: Any) -> None:
        super().__init__(status)
        self.status, self.body = status, body


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or [])


class ModelServer:
    """The common base: OpenAI's protocol, one model, no key, a window of 4,096 tokens."""

    root = "/v1"
    """The path at which the API begins, which ends a profile's address."""
    model = "served-model"
    needs_key = False
    window = 4096
    takes_any_model = False
    embeds = 384
    """The length of its text vectors; 0 if it makes none."""
    takes: ClassVar[frozenset[str]] = frozenset()
    """The fields that it accepts; empty if it accepts all."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, Any]]] = []
        """Path and body of what arrived."""
        self.base_url = ""

    # What the server refuses, in its own words

    def no_key(self) -> RefusedError:
        return self.error(401, "Invalid API key", "authentication_error")

    def no_model(self, name: str) -> RefusedError:
        return self.error(404, f"model '{name}' not found", "not_found_error")

    def no_field(self, name: str) -> RefusedError:
        return self.error(400, f"Unknown parameter: '{name}'.", "invalid_request_error")

    def no_path(self, path: str) -> RefusedError:
        return RefusedError(404, b"404 page not found")

    def error(self, status: int, message: str, kind: str) -> RefusedError:
        return RefusedError(status, {"error": {"message": message, "type": kind, "code": status}})

    # What the server reports about itself

    def told(self, path: str, body: dict[str, Any]) -> Any:
        """Return the answer to a path that is not the chat."""
        if path == f"{self.root}/models":
            return {"object": "list", "data": [self.model_row()]}
        if path == f"{self.root}/embeddings" and self.embeds:
            texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
            rows = [
                {"object": "embedding", "index": number, "embedding": _vector(text, self.embeds)}
                for number, text in enumerate(texts)
            ]
            return {"object": "list", "data": rows[::-1], "model": body["model"]}
        raise self.no_path(path)

    def model_row(self) -> dict[str, Any]:
        return {"id": self.model, "object": "model", "created": 1, "owned_by": "library"}

    # What the server does with a chat

    def checked(self, body: dict[str, Any]) -> None:
        """Refuse requests that the real server would refuse."""
        if not self.takes_any_model and body.get("model") != self.model:
            raise self.no_model(str(body.get("model")))
        for name in sorted(body.keys() - self.takes if self.takes else ()):
            raise self.no_field(name)

    def fitted(self, tokens: int, body: dict[str, Any]) -> int:
        """Return how many tokens of the prompt the model reads."""
        return min(tokens, self.window)

    def reply(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the message: a required tool call, an answer with a schema, or a sentence."""
        name = self.asked_for(body, [one["function"]["name"] for one in body.get("tools") or ()])
        if name:
            call = {"id": "call_1", "type": "function"}
            return {"content": None, "tool_calls": [{**call, "function": _call_of(name)}]}
        form = body.get("response_format") or {}
        if form.get("type") == "json_schema":
            return {"content": json.dumps(_example(form["json_schema"]["schema"]))}
        return {"content": SENTENCE}

    def asked_for(self, body: dict[str, Any], names: list[str]) -> str:
        """Return the tool that must be called, by tool_choice or the last words, or ""."""
        choice = body.get("tool_choice")
        kind = choice.get("type") if isinstance(choice, dict) else choice
        if names and kind in ("any", "required", "tool", "function"):
            return names[0]
        last = _text_of(body["messages"][-1].get("content"))
        return next((name for name in names if f'tool "{name}"' in last), "")

    def stream(self, message: dict[str, Any], usage: dict[str, Any], body: Any) -> Iterator[bytes]:
        """Yield the events of a streamed reply."""
        yield self.event({"role": "assistant", "content": ""})
        for piece in _pieces(message):
            yield self.event(piece)
        reason = "tool_calls" if message.get("tool_calls") else "stop"
        yield self.event({}, reason)
        if (body.get("stream_options") or {}).get("include_usage"):
            yield _data({"choices": [], "usage": usage, "model": self.model})
        yield b"data: [DONE]\n\n"

    def event(self, delta: dict[str, Any], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        kind = "chat.completion.chunk"
        return _data({"id": "c1", "object": kind, "model": self.model, "choices": [choice]})

    def whole(self, message: dict[str, Any], usage: dict[str, Any]) -> dict[str, Any]:
        reason = "tool_calls" if message.get("tool_calls") else "stop"
        choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason}
        kind = "chat.completion"
        return {
            "id": "c1",
            "object": kind,
            "model": self.model,
            "choices": [choice],
            "usage": usage,
        }

    def usage(self, read: int, message: dict[str, Any]) -> dict[str, Any]:
        written = max(1, len(str(message)) // CHARACTERS_PER_TOKEN)
        sums = {"prompt_tokens": read, "completion_tokens": written}
        return {**sums, "total_tokens": read + written}

    def is_chat(self, path: str) -> bool:
        return path == f"{self.root}/chat/completions"

    def is_keyed(self, headers: Any) -> bool:
        return bool(headers.get("Authorization") == f"Bearer {KEY}")


class Ollama(ModelServer):
    model = "llama3.2:3b"

    def told(self, path: str, body: dict[str, Any]) -> Any:
        about = {"name": self.model, "model": self.model, "size": 2_019_393_189}
        match path:
            case "/":
                return b"Ollama is running"
            case "/api/version":
                return {"version": "0.12.6"}
            case "/api/tags":
                return {"models": [about]}
            case "/api/ps":
                return {"models": [{**about, "context_length": self.window}]}
            case "/api/show" if body.get("model") == self.model:
                return {
                    "capabilities": ["completion", "tools"],
                    "model_info": {
                        "general.architecture": "llama",
                        "llama.context_length": 131_072,
                    },
                }
            case "/api/show":
                raise RefusedError(404, {"error": f"model '{body.get('model')}' not found"})
        return super().told(path, body)


class LlamaCpp(ModelServer):
    model = "model.gguf"
    takes_any_model = True
    slots = 2

    def told(self, path: str, body: dict[str, Any]) -> Any:
        match path:
            case "/health" | "/v1/health":
                return {"status": "ok"}
            case "/props":
                settings = {"n_ctx": self.window, "params": {"n_predict": -1}}
                return {
                    "default_generation_settings": settings,
                    "total_slots": self.slots,
                    "model_path": self.model,
                    "chat_template": "{% for message in messages %}...{% endfor %}",
                }
            case "/slots":
                busy = {"is_processing": False}
                return [
                    {"id": number, "n_ctx": self.window, **busy} for number in range(self.slots)
                ]
        return super().told(path, body)

    def model_row(self) -> dict[str, Any]:
        return {**super().model_row(), "owned_by": "llamacpp", "meta": {"n_ctx_train": 131_072}}

    def no_path(self, path: str) -> RefusedError:
        return self.error(404, "File Not Found", "not_found_error")

    def fitted(self, tokens: int, body: dict[str, Any]) -> int:
        if tokens < self.window:
            return tokens
        message = (
            f"request ({tokens} tokens) exceeds the available context size ({self.window} tokens),"
            " try increasing it"
        )
        error = {"code": 400, "message": message, "type": "exceed_context_size_error"}
        raise RefusedError(
            400, {"error": {**error, "n_prompt_tokens": tokens, "n_ctx": self.window}}
        )


class LMStudio(ModelServer):
    model = "qwen/qwen3-4b"

    def told(self, path: str, body: dict[str, Any]) -> Any:
        if path == "/api/v0/models":
            about = {"id": self.model, "type": "llm", "state": "loaded", "arch": "qwen3"}
            size = {"max_context_length": 32_768, "loaded_context_length": self.window}
            return {"object": "list", "data": [{**about, **size}]}
        return super().told(path, body)

    def no_path(self, path: str) -> RefusedError:
        return RefusedError(200, {"error": f"Unexpected endpoint or method. (POST {path})"})

    def no_model(self, name: str) -> RefusedError:
        return RefusedError(404, {"error": f'Model "{name}" not found. Load it first.'})

    def fitted(self, tokens: int, body: dict[str, Any]) -> int:
        if tokens < self.window:
            return tokens
        raise RefusedError(
            400,
            {
                "error": "The number of tokens to keep from the initial prompt is greater than the"
                f" context length (n_keep: {tokens} >= n_ctx: {self.window}). Try to load the model"
                " with a larger context length, or provide a shorter input"
            },
        )


class KoboldCpp(ModelServer):
    model = "koboldcpp/Model-Q4_K_M"
    takes_any_model = True

    def told(self, path: str, body: dict[str, Any]) -> Any:
        match path:
            case "/api/extra/version":
                return {"result": "KoboldCpp", "version": "1.101", "protected": False}
            case "/api/extra/true_max_context_length":
                return {"value": self.window}
            case "/api/v1/model":
                return {"result": self.model}
        return super().told(path, body)

    def fitted(self, tokens: int, body: dict[str, Any]) -> int:
        room = self.window - int(body.get("max_tokens") or 512)
        return min(tokens, room)


class VLLM(ModelServer):
    has_tools = False
    """True if the server was started with `--enable-auto-tool-choice`."""
    model = "Qwen/Qwen3-4B-Instruct-2507"

    def model_row(self) -> dict[str, Any]:
        return {**super().model_row(), "owned_by": "vllm", "max_model_len": self.window}

    def told(self, path: str, body: dict[str, Any]) -> Any:
        if path == "/version":
            return {"version": "0.11.0"}
        return super().told(path, body)

    def no_path(self, path: str) -> RefusedError:
        return RefusedError(404, {"detail": "Not Found"})

    def no_model(self, name: str) -> RefusedError:
        return self.error(404, f"The model `{name}` does not exist.", "NotFoundError")

    def checked(self, body: dict[str, Any]) -> None:
        super().checked(body)
        if body.get("tools") and body.get("tool_choice", "auto") == "auto" and not self.has_tools:
            raise self.error(
                400,
                '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be'
                " set",
                "BadRequestError",
            )

    def fitted(self, tokens: int, body: dict[str, Any]) -> int:
        wanted = int(body.get("max_tokens") or body.get("max_completion_tokens") or 16)
        if tokens + wanted <= self.window:
            return tokens
        raise self.error(
            400,
            f"This model's maximum context length is {self.window} tokens. However, you requested"
            f" {tokens + wanted} tokens ({tokens} in the messages, {wanted} in the completion)."
            " Please reduce the length of the messages or completion.",
            "BadRequestError",
        )


class OpenRouter(ModelServer):
    root = "/api/v1"
    model = "meta-llama/llama-3.3-70b-instruct"
    needs_key = True
    window = 131_072

    def told(self, path: str, body: dict[str, Any]) -> Any:
        if path == "/api/v1/key":
            return {"data": {"label": "tests", "limit": None, "usage": 0.1}}
        return super().told(path, body)

    def model_row(self) -> dict[str, Any]:
        most = {"context_length": self.window, "max_completion_tokens": 16_384}
        supported = ["tools", "tool_choice", "max_tokens", "temperature", "structured_outputs"]
        about = {"id": self.model, "context_length": self.window, "top_provider": most}
        return {**about, "supported_parameters": supported}

    def no_key(self) -> RefusedError:
        return RefusedError(401, {"error": {"message": "No auth credentials found", "code": 401}})

    def no_model(self, name: str) -> RefusedError:
        return RefusedError(
            400, {"error": {"message": f"{name} is not a valid model ID", "code": 400}}
        )

    def stream(self, message: dict[str, Any], usage: dict[str, Any], body: Any) -> Iterator[bytes]:
        for _ in range(3):
            yield b": OPENROUTER PROCESSING\n\n"
        yield from super().stream(message, usage, {"stream_options": {"include_usage": True}})


class OpenAI(ModelServer):
    model = "gpt-5-mini"
    needs_key = True
    window = 400_000
    takes = frozenset(
        {
            *("model", "messages", "stream", "stream_options", "max_completion_tokens", "stop"),
            *("tools", "tool_choice", "parallel_tool_calls", "response_format", "seed", "user"),
            *("prompt_cache_key", "reasoning_effort"),
        }
    )

    def no_key(self) -> RefusedError:
        message = "Incorrect API key provided: sk-of***4711. You can find your API key at ..."
        error = {"message": message, "type": "invalid_request_error", "param": None}
        return RefusedError(401, {"error": {**error, "code": "invalid_api_key"}})

    def no_model(self, name: str) -> RefusedError:
        message = f"The model `{name}` does not exist or you do not have access to it."
        error = {"message": message, "type": "invalid_request_error", "param": None}
        return RefusedError(404, {"error": {**error, "code": "model_not_found"}})

    def no_field(self, name: str) -> RefusedError:
        why = f"Unsupported parameter: '{name}' is not supported with this model."
        if name == "max_tokens":
            why += " Use 'max_completion_tokens' instead."
        if name == "temperature":
            why = (
                "Unsupported value: 'temperature' does not support 0.7 with this model. Only the"
                " default (1) value is supported."
            )
        error = {"message": why, "type": "invalid_request_error", "param": name}
        return RefusedError(400, {"error": {**error, "code": "unsupported_parameter"}})


class Anthropic(ModelServer):
    root = ""
    embeds = 0
    model = "claude-sonnet-4-5"
    needs_key = True
    window = 200_000

    def is_chat(self, path: str) -> bool:
        return path == "/v1/messages"

    def is_keyed(self, headers: Any) -> bool:
        return bool(headers.get("x-api-key") == KEY and headers.get("anthropic-version"))

    def error(self, status: int, message: str, kind: str) -> RefusedError:
        return RefusedError(status, {"type": "error", "error": {"type": kind, "message": message}})

    def no_key(self) -> RefusedError:
        return self.error(401, "invalid x-api-key", "authentication_error")

    def no_model(self, name: str) -> RefusedError:
        return self.error(404, f"model: {name}", "not_found_error")

    def no_path(self, path: str) -> RefusedError:
        return self.error(404, "Not found", "not_found_error")

    def told(self, path: str, body: dict[str, Any]) -> Any:
        if path == "/v1/models":
            about = {"type": "model", "id": self.model, "display_name": "Claude Sonnet 4.5"}
            return {"data": [about], "has_more": False}
        raise self.no_path(path)

    def checked(self, body: dict[str, Any]) -> None:
        super().checked(body)
        if "max_tokens" not in body:
            raise self.error(400, "max_tokens: Field required", "invalid_request_error")

    def fitted(self, tokens: int, body: dict[str, Any]) -> int:
        if tokens <= self.window:
            return tokens
        message = f"prompt is too long: {tokens} tokens > {self.window} maximum"
        raise self.error(400, message, "invalid_request_error")

    def reply(self, body: dict[str, Any]) -> dict[str, Any]:
        tools = {tool["name"]: tool for tool in body.get("tools") or ()}
        if name := self.asked_for(body, list(tools)):
            tool = tools[name]
            wanted = _example(tool.get("input_schema", {}))
            return {"type": "tool_use", "id": "t1", "name": tool["name"], "input": wanted}
        return {"type": "text", "text": SENTENCE}

    def usage(self, read: int, message: dict[str, Any]) -> dict[str, Any]:
        written = max(1, len(str(message)) // CHARACTERS_PER_TOKEN)
        return {"input_tokens": read, "output_tokens": written}

    def whole(self, message: dict[str, Any], usage: dict[str, Any]) -> dict[str, Any]:
        reason = "tool_use" if message["type"] == "tool_use" else "end_turn"
        about = {"id": "m1", "type": "message", "role": "assistant", "model": self.model}
        return {**about, "content": [message], "stop_reason": reason, "usage": usage}

    def stream(self, message: dict[str, Any], usage: dict[str, Any], body: Any) -> Iterator[bytes]:
        whole = self.whole(message, {**usage, "output_tokens": 1})
        yield _named("message_start", {"message": {**whole, "content": [], "stop_reason": None}})
        yield _named("ping", {})
        if message["type"] == "text":
            yield _named(
                "content_block_start", {"index": 0, "content_block": {**message, "text": ""}}
            )
            pieces = [{"type": "text_delta", "text": text} for text in _words(message["text"])]
        else:
            block = {**message, "input": {}}
            yield _named("content_block_start", {"index": 0, "content_block": block})
            pieces = [{"type": "input_json_delta", "partial_json": json.dumps(message["input"])}]
        for piece in pieces:
            yield _named("content_block_delta", {"index": 0, "delta": piece})
        yield _named("content_block_stop", {"index": 0})
        delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        yield _named("message_delta", {"delta": delta, "usage": usage})
        yield _named("message_stop", {})


KINDS: Final[dict[str, type[ModelServer]]] = {
    "ollama": Ollama,
    "llama.cpp": LlamaCpp,
    "lmstudio": LMStudio,
    "koboldcpp": KoboldCpp,
    "vllm": VLLM,
    "openrouter": OpenRouter,
    "openai": OpenAI,
    "anthropic": Anthropic,
}


@contextmanager
def serve(kind: str) -> Iterator[ModelServer]:
    """Run a server of this kind on a free port. `base_url` is the address for a profile."""
    played = KINDS[kind]()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"of": played}))
    server.daemon_threads = True
    played.base_url = f"http://127.0.0.1:{server.server_port}{played.root}"
    thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield played
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    of: ModelServer

    def do_GET(self) -> None:
        self._answer({})

    def do_POST(self) -> None:
        given = self.rfile.read(int(self.headers["Content-Length"] or 0))
        self._answer(json.loads(given or b"{}"))

    def _answer(self, body: dict[str, Any]) -> None:
        server = self.of
        path = self.path.partition("?")[0]
        server.requests.append((path, body))
        try:
            if server.needs_key and not server.is_keyed(self.headers):
                raise server.no_key()
            if not server.is_chat(path):
                self._send(200, server.told(path, body))
                return
            server.checked(body)
            read = server.fitted(_tokens(body), body)
            message = server.reply(body)
            usage = server.usage(read, message)
            if not body.get("stream"):
                self._send(200, server.whole(message, usage))
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            for event in server.stream(message, usage, body):
                self.wfile.write(event)
                self.wfile.flush()
        except RefusedError as refused:
            self._send(refused.status, refused.body)

    def _send(self, status: int, body: Any) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        kind = "text/plain" if isinstance(body, bytes) else "application/json"
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: Any) -> None:
        """Log nothing."""


def _tokens(body: dict[str, Any]) -> int:
    """Return about as many tokens as the prompt has."""
    texts = [_text_of(body.get("system")), json.dumps(body["tools"]) if "tools" in body else ""]
    texts += [_text_of(message.get("content")) for message in body["messages"]]
    return sum(map(len, texts)) // CHARACTERS_PER_TOKEN + 4 * len(body["messages"])


def _vector(text: str, size: int) -> list[float]:
    """Return a vector that is similar for texts with the same words. Its length is not 1."""
    numbers = [0.0] * size
    for word in re.findall(r"\w+", text.casefold()):
        numbers[crc32(word.encode()) % size] += 2.0
    return numbers if any(numbers) else [1.0] * size


def _call_of(name: str) -> dict[str, str]:
    return {"name": name, "arguments": "{}"}


def _example(schema: dict[str, Any]) -> Any:
    """Return the smallest value that fits a schema."""
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return _example(schema["anyOf"][0])
    match schema.get("type"):
        case "object":
            members = schema.get("properties", {})
            return {name: _example(members[name]) for name in schema.get("required", members)}
        case "array":
            return []
        case "boolean":
            return True
        case "integer" | "number":
            return 1
    return "yes"


def _words(text: str) -> list[str]:
    return re.findall(r"\S+\s*", text)


def _pieces(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for number, call in enumerate(message.get("tool_calls") or ()):
        yield {"tool_calls": [{"index": number, **call}]}
    for word in _words(message.get("content") or ""):
        yield {"content": word}


def _data(value: Any) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()


def _named(kind: str, value: dict[str, Any]) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **value})}\n\n".encode()
