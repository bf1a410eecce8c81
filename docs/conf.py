"""The documentation site: `make docs` builds it into `build/site`.

Pages are Markdown (MyST), the theme is furo, and the search runs in the reader's browser. The
reference is generated (`docs/generated.py`), so Evennia is started with the settings of the tests.
"""

import os
import sys
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "server.conf.test_settings")
# Without these Evennia asks for a superuser at its start.
os.environ.setdefault("EVENNIA_SUPERUSER_USERNAME", "admin")
os.environ.setdefault("EVENNIA_SUPERUSER_EMAIL", "admin@localhost")
os.environ.setdefault("EVENNIA_SUPERUSER_PASSWORD", "only-for-docs")

import django  # noqa: E402
import evennia  # noqa: E402

django.setup()
evennia._init()

from docs.generated import with_generated  # noqa: E402
from docs.llms import write_llms_txt  # noqa: E402

project = "evennia_ai"
author = "evennia_ai contributors"
copyright = "2026, evennia_ai contributors"  # noqa: A001 - Sphinx asks for this name
version = release = installed_version("evennia-ai")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
highlight_language = "none"
default_role = "code"

autodoc_member_order = "bysource"
autodoc_typehints = "description"

html_theme = "furo"
html_title = "evennia_ai"
html_show_copyright = False
html_static_path = ["_static"]
html_css_files = ["site.css"]

# Links to other sites are checked by `make docs LINKS=1`, where there is a network.
linkcheck_ignore = [r"http://(localhost|127\.0\.0\.1)"]
linkcheck_timeout = 20
linkcheck_retries = 2


def setup(app: Any) -> None:
    """Generate the reference while pages are read, and write `llms.txt` after the pages."""
    app.connect("source-read", _generate)
    app.connect("build-finished", write_llms_txt)


def _generate(app: Any, docname: str, source: list[str]) -> None:
    source[0] = with_generated(source[0])
