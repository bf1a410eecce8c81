"""Write errors of web pages to the game's Server log.

With DEBUG = False, Django only mails errors to the addresses in ADMINS, which most games leave
empty, so owners would never see them.
"""

import traceback
from typing import Any, Final

from django.http import HttpRequest
from evennia.utils import logger

from evennia_ai.engine.text.columns import clip_text, escape_controls

_LONGEST_PATH: Final = 200


def log_page_error(*, request: HttpRequest | None = None, **_: Any) -> None:
    """Write the current exception to the Server log, with its traceback.

    This is a receiver of Django's signal `got_request_exception`, so it is called for errors of
    every page of the site. It omits the query of the address, which may hold what a person typed.
    """
    where = (
        escape_controls(f"{request.method} {request.path}")
        if request is not None
        else "of the site"
    )
    lines = traceback.format_exc().splitlines()
    told = "\n".join(escape_controls(line) for line in lines)
    logger.log_err(f"evennia_ai: the page {clip_text(where, _LONGEST_PATH)} failed\n{told}")
