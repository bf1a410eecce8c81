"""Test that tests are skipped or fail, with a reason, if the model server is missing."""

from pathlib import Path

import pytest

from server.preparing import NOTHING_SKIPPED
from tests.acceptance import model_server
from tests.acceptance.model_server import ModelServer

WHY = "xllamacpp cannot be imported; type: pip install 'evennia-ai\\[local\\]'"


@pytest.fixture(autouse=True)
def _missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_server, "MISSING", ["xllamacpp"])
    monkeypatch.delenv(NOTHING_SKIPPED, raising=False)


def test_model_server_test_is_skipped_with_a_reason_without_its_packages(tmp_path: Path) -> None:
    with pytest.raises(pytest.skip.Exception, match=WHY):
        ModelServer(tmp_path)


def test_model_server_test_fails_without_its_packages_when_skips_are_forbidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NOTHING_SKIPPED, "1")
    with pytest.raises(pytest.fail.Exception, match=WHY):
        ModelServer(tmp_path)
