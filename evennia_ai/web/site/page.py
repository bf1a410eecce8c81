"""The base class of pages: access, HTML or JSON of the same values, headers, and errors.

Anyone who is not logged in gets the game's login page first. A player who opens a page gets the
answer for a missing page (404), so players do not learn that it exists.
"""

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, ClassVar, Final, TypeVar

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import BadRequest, PermissionDenied, SuspiciousOperation
from django.core.signals import got_request_exception
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.http.multipartparser import MultiPartParserError
from django.shortcuts import render
from django.views import View

from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import (
    EditConflictError,
    EvenniaAIError,
    FormatError,
    NotPermittedError,
    NotStoredError,
    StoreError,
)
from evennia_ai.engine.prompt.components import Scope
from evennia_ai.engine.text.plain_values import plain_value
from evennia_ai.npc.mind import npc_list
from evennia_ai.web.site import running_game

Act = TypeVar("Act")

# Inline styles and scripts are forbidden. Only pages of the same origin may show a page in a frame.
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'self'"
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-store",
    "X-Frame-Options": "SAMEORIGIN",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
_DJANGOS: Final = (
    Http404,
    BadRequest,
    MultiPartParserError,
    PermissionDenied,
    SuspiciousOperation,
)
"""Errors of the request that Django answers with 400, 403 or 404."""
_CONFLICTS: Final = (EditConflictError, StoreError)
BUILDER: Final = "Builder"
ADMIN: Final = "Admin"
FAILED: Final = (
    "This page failed. The error is in the game's Server log; tell the owner of the game."
)
_FAILED_PAGE: Final = f"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>500</title></head>
<body><h1>500</h1><p role="alert">{FAILED}</p><p><a href="/">The game's site</a></p></body>
</html>
"""
"""It uses no template, because a template may be what failed."""


class Page(View):
    """A page, by default for builders.

    `page_values` returns its values, which are shown as HTML or JSON.
    """

    template: ClassVar[str]
    section: ClassVar[str] = "home"
    """The item of the menu that the page belongs to."""
    request: HttpRequest

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not self.may_open(request):
            is_for_people = request.method == "GET" and request.GET.get("format") != "json"
            if request.user.is_authenticated or not is_for_people:
                raise Http404
            return redirect_to_login(request.get_full_path())
        try:
            response = super().dispatch(request, *args, **kwargs)
        except NotStoredError as error:
            response = self._problem(error, status=404)
        except NotPermittedError as error:
            response = self._problem(error, status=403)
        except EvenniaAIError as error:
            response = self._problem(error, status=409 if isinstance(error, _CONFLICTS) else 400)
        except _DJANGOS:
            raise
        except Exception:
            response = self._failed()
        for name, value in HEADERS.items():
            response[name] = value
        return response

    def may_open(self, request: HttpRequest) -> bool:
        """True if the account of the request may open the page."""
        return has_rank(request, BUILDER)

    def get(self, request: HttpRequest, **named: Any) -> HttpResponseBase:
        """Return the page, as JSON for `?format=json`."""
        return self.render_values(self.page_values(**named))

    def page_values(self, *args: Any, **named: Any) -> dict[str, Any]:
        """Return the values of the page: dataclasses, and what JSON has."""
        raise NotImplementedError

    def html_values(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """Return values that only the HTML needs, such as forms and links."""
        return {}

    def render_values(self, told: dict[str, Any], *, status: int = 200) -> HttpResponse:
        """Return these values as HTML or JSON, as the request asks."""
        if self.request.GET.get("format") == "json":
            values = plain_value(told)
            return JsonResponse(values, status=status, json_dumps_params={"ensure_ascii": False})
        context = {
            "section": self.section,
            "is_admin": has_rank(self.request, ADMIN),
            **told,
            **self.html_values(told),
        }
        return render(self.request, self.template, context, status=status)

    def act_in_form(self, acts: Mapping[str, Act]) -> Act:
        """Return the act that the field `do` of the form names.

        Raises:
            FormatError: The field names none of them.
        """
        act = acts.get(self.request.POST.get("do", ""))
        if act is None:
            raise FormatError(
                "form", f"the field 'do' must be one of {', '.join(acts)}; nothing was changed"
            )
        return act

    def requested_page(self, count: int, size: int) -> tuple[int, int]:
        """Return the requested page of a list, from 1, and the number of pages of this size."""
        pages = max(1, -(-count // size))
        return min(pages, self.requested_number()), pages

    def requested_number(self) -> int:
        """Return the number of the requested page of a list, from 1."""
        text = self.request.GET.get("page", "")
        return max(1, int(text) if text.isdecimal() and len(text) < 7 else 1)

    @property
    def actor(self) -> Actor:
        """Return the account of the request as an actor, whose permissions each change checks."""
        return actor_of(self.request, BUILDER)

    def _failed(self) -> HttpResponse:
        """Report the current exception, and return a page without any details of the exception.

        `log_page_error` receives the signal, as does any other receiver that a game has.
        """
        got_request_exception.send(sender=type(self), request=self.request)
        if self.request.GET.get("format") == "json":
            return JsonResponse({"problem": FAILED, "status": 500}, status=500)
        return HttpResponse(_FAILED_PAGE, status=500)

    def _problem(self, error: EvenniaAIError, *, status: int) -> HttpResponse:
        told = {"problem": str(error), "status": status}
        if self.request.GET.get("format") == "json":
            return JsonResponse(told, status=status)
        return render(self.request, "evennia_ai/problem.html", told, status=status)


class LivePage(Page):
    """A page whose script asks again every few seconds. The answer is 304 if nothing changed."""

    def get(self, request: HttpRequest, **named: Any) -> HttpResponseBase:
        told = self.page_values(**named)
        values = json.dumps(plain_value(told), sort_keys=True)
        tag = f'"{int(sha256(values.encode()).hexdigest()[:16], 16)}"'
        if request.headers.get("If-None-Match") == tag:
            return HttpResponse(status=304)
        return self.render_values({**told, "tag": tag})


def has_rank(request: HttpRequest, rank: str) -> bool:
    """True if the account is logged in, not banned, and has this permission or a higher one."""
    account: Any = request.user
    return bool(account.is_authenticated) and not actor_of(request, rank).why_not()


def actor_of(request: HttpRequest, rank: str) -> Actor:
    """Return the account of the request as an actor who must have this permission."""
    address = str(request.META.get("REMOTE_ADDR", ""))
    return running_game.page_actor(request.user, rank, address=address)


def read_seen_revision(text: str) -> int:
    """Return the revision that a form was made from.

    Raises:
        FormatError: The form does not name one.
    """
    if not text.isdecimal() or len(text) > 9:
        raise FormatError(
            "form", "the form does not say which revision it showed; open the page again"
        )
    return int(text)


def name_of(ref: str) -> str:
    """Return the name of an NPC, or "#" and its number if it was deleted."""
    return npc_list.npc_names([ref]).get(ref, f"#{ref}")


def scopes_in_words(scopes: Sequence[Scope], names: Mapping[str, str]) -> list[str]:
    """Return scopes in words, such as "npc Wil". `names` has the names of objects by reference."""
    numbered = ("npc", "room", "player")
    return [
        f"{one.kind} {names.get(one.ref, f'#{one.ref}') if one.kind in numbered else one.ref}"
        if one.ref
        else one.kind
        for one in scopes
    ]


def find_npc_ref(text: str) -> str:
    """Return the reference of the only NPC with this name.

    Raises:
        FormatError: No NPC or several have this name.
    """
    found = npc_list.npcs_called(text)
    if len(found) != 1:
        several = ", ".join(f"#{ref}" for ref in found[:12])
        raise FormatError(
            "npc", f"several NPCs have this name: {several}" if found else "no NPC has this name"
        )
    return found[0]
