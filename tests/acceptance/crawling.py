"""Crawl the pages for builders over HTTP by following every link."""

import html
import re
import urllib.error
import urllib.request
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.cookiejar import CookieJar
from urllib.parse import urldefrag, urlencode, urljoin, urlsplit

PAGES = "/ai/"
MOST_ALIKE = 4
"""The number of pages of one kind that are visited."""
_LINK = re.compile(r'\s(?:href|src|hx-get|data-newest)="([^"]+)"')
_NAME = re.compile(
    r"(?<=/)[^/?~]*\d[^/?~]*(?=/)|(?<=entry/)[^/]+|(?<=with=)\w+(?=:|%3A)[^.&]*|(?<=say=)[^&]*"
)
"""Matches the parts of an address in which pages of one kind differ.

These are numbers, keys of entries, edits of a trial, and a line to try. NPC references contain "~"
and are not matched, so the pages of each NPC are kinds of their own.
"""
_TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """The response to one request."""

    address: str
    status: int
    is_html: bool
    text: str = field(repr=False)


class Crawler:
    """An HTTP client that is logged in to the website of a game."""

    def __init__(self, site: str, name: str, password: str) -> None:
        self._site = site
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        form = self.visit("/auth/login/").text
        token = _TOKEN.search(form)
        assert token, form[:500]
        sent = {"username": name, "password": password, "csrfmiddlewaretoken": token[1]}
        self._opener.open(f"{site}/auth/login/", urlencode(sent).encode(), timeout=300).close()

    def visit(self, address: str) -> Visit:
        """Return the response for the address, with any status. Redirects are followed."""
        try:
            with self._opener.open(f"{self._site}{address}", timeout=300) as response:
                return _visit(address, response)
        except urllib.error.HTTPError as error:
            with error:
                return _visit(address, error)

    def all_pages(self, *starts: str) -> Iterator[Visit]:
        """Visit the pages that links lead to, and the JSON form of each page.

        At most `MOST_ALIKE` pages of each kind are visited. A page of a trial (`?with=`)
        links to trials with one more edit, endlessly, so links from one trial to another
        are not followed.
        """
        waiting = deque(starts)
        known = set(starts)
        alike = Counter[str]()
        while waiting:
            seen = self.visit(waiting.popleft())
            yield seen
            if not seen.is_html:
                continue
            found = set(_links(seen))
            joined = "&" if "?" in seen.address else "?"
            found.add(f"{seen.address}{joined}format=json")
            for address in sorted(found - known):
                kind = _NAME.sub("*", address)
                is_endless = "with=" in address and "with=" in seen.address
                if not is_endless and alike[kind] < MOST_ALIKE:
                    alike[kind] += 1
                    known.add(address)
                    waiting.append(address)


def _visit(address: str, response: object) -> Visit:
    kind = response.headers.get("Content-Type", "")  # type: ignore[attr-defined]
    return Visit(
        address=address,
        status=response.status,  # type: ignore[attr-defined]
        is_html=kind.startswith("text/html"),
        text=response.read().decode(errors="replace"),  # type: ignore[attr-defined]
    )


def _links(seen: Visit) -> Iterator[str]:
    for link in _LINK.findall(seen.text):
        address = urldefrag(urljoin(seen.address, html.unescape(link)))[0]
        if urlsplit(address).netloc == "" and address.startswith(PAGES):
            yield address
