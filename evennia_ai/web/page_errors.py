"""Errors of web pages in the game's Server log.

Django alone writes them nowhere that an owner looks: where DEBUG is False, it mails them to the
addresses in ADMINS, and a game mostly has none.
"""

import traceback
from typing import Any, Final

from django.http import HttpRequest
from evennia.utils import logger

from evennia_ai.engine.text.columns import clip_text, escape_controls

_LONGEST_PATH: Final = 200


def log_page_error(*, request: HttpRequest | None = None, **_: Any) -> None:
    """Write the error that is being handled into the Server log, with its traceback.

    A receiver of Django's signal `got_request_exception`, so it hears of every page of the site.
    The query is left out: it may hold what somebody typed.
    """
    where = (
        escape_controls(f"{request.method} {request.path}")
        if request is not None
        else "of the site"
    )
    lines = traceback.format_exc().splitlines()
    told = "\n".join(escape_controls(line) for line in lines)
    logger.log_err(f"evennia_ai: the page {clip_text(where, _LONGEST_PATH)} failed\n{told}")
