"""Test that tests without a wiki are skipped with a reason, or fail if nothing may be skipped."""

from pathlib import Path

import pytest

from server.preparing import NOTHING_SKIPPED
from tests.services.wiki import real_wiki
from tests.services.wiki.real_wiki import RealWiki

WHY = "MediaWiki is missing; type, as root: apt-get install mediawiki php-cli"


@pytest.fixture(autouse=True)
def _missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(real_wiki, "FOLDER", tmp_path / "nothing")
    monkeypatch.delenv(NOTHING_SKIPPED, raising=False)


def test_without_a_mediawiki_is_skipped_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(pytest.skip.Exception, match=WHY):
        RealWiki(tmp_path)


def test_without_a_mediawiki_fails_in_continuous_integration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NOTHING_SKIPPED, "1")
    with pytest.raises(pytest.fail.Exception, match=WHY):
        RealWiki(tmp_path)
