"""Test docs/upstream: each patch applies to the installed Evennia and fixes its fault."""

import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

UPSTREAM = Path(__file__).resolve().parents[2] / "docs" / "upstream"
PATCHES = sorted(UPSTREAM.glob("*.patch"))
EFFECTS = """
import os, re, django
from unittest.mock import Mock
os.environ["DJANGO_SETTINGS_MODULE"] = "evennia.settings_default"
django.setup()
import evennia
evennia._init()
from evennia.commands.default.general import CmdPose
from evennia.server.portal import amp, mxp
from evennia.typeclasses.attributes import initialize_nick_templates, parse_nick_template
from evennia.utils.ansi import strip_mxp
from evennia.utils.text2html import TextToHTMLparser
from twisted.internet.interfaces import ITCPTransport
from zope.interface import directlyProvides

def replaced(pattern, replacement, line):
    regex, template = initialize_nick_templates(pattern, replacement)
    return parse_nick_template(line, re.compile(regex, re.I | re.S), template)

print("FORMAT", replaced("x $1", "say {arg1:>9}$1", "x y")[1])
print("NICK", replaced("tell $1 in $2", "whisper $1 = $2", "tell Bob in the inn")[1])
print("AGAIN", replaced("$1a$2a$3a$4b", "say $1$2$3$4", "xa" * 3000)[0])
marks = "|lc|lt" * 3000
print("LINKS", strip_mxp(marks) == marks, mxp.LINKS_SUB.search(marks))
print("HTML", TextToHTMLparser.re_mxplink.search(marks))
print("LINK", strip_mxp("see |lclook|ltthe tree|le"), mxp.mxp_parse("|lca|ltb|le").count("SEND"))
pose, told = CmdPose(), Mock()
pose.caller, pose.args = Mock(location=told), " $space(99999999) {x}"
pose.caller.name = "Tom"
pose.func()
call = told.msg_contents.call_args.kwargs
print("POSE", call["text"][0], "|", *call["mapping"].values())
end, transport = amp.AMPMultiConnectionProtocol(), Mock()
directlyProvides(transport, ITCPTransport)
end.transport, end.factory = transport, Mock(broadcasts=[])
end.connectionMade()
print("AMP", transport.setTcpNoDelay.call_args.args[0])
"""


@pytest.fixture(scope="module")
def patched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the installed Evennia to which all patches were applied."""
    spec = find_spec("evennia")
    assert spec is not None and spec.origin is not None
    folder = tmp_path_factory.mktemp("patched")
    unneeded = shutil.ignore_patterns("__pycache__", "locale", "static", "contrib", "*.pyc")
    shutil.copytree(Path(spec.origin).parent, folder / "evennia", ignore=unneeded)
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    for patch in PATCHES:
        done = subprocess.run(
            ["git", "apply", "--verbose", str(patch)],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{patch.name}: {done.stderr}"
    return folder


@pytest.mark.long
def test_patches_apply_and_fix_their_faults(patched: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", EFFECTS],
        cwd=patched,
        env={**os.environ, "PYTHONPATH": str(patched)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = dict(line.split(" ", 1) for line in done.stdout.splitlines() if line[:3].isupper())
    assert told == {
        "FORMAT": "say {arg1:>9}y",
        "NICK": "whisper Bob = the inn",
        "AGAIN": "False",
        "LINKS": "True None",
        "HTML": "None",
        "LINK": "see the tree 2",
        "POSE": "{pose} | Tom $space(99999999) {x}",
        "AMP": "True",
    }


def test_upstream_page_names_each_patch_and_the_version_it_is_for() -> None:
    page = (UPSTREAM / "index.md").read_text(encoding="utf-8")
    assert {f"{one.stem}.patch" for one in PATCHES} == set(
        re.findall(r"\]\(([\w-]+\.patch)\)", page)
    )
    assert version("evennia") in page
