"""Downloads of a card as a file in any format, and of its picture."""

import time
from io import BytesIO
from typing import Any

from django.http import FileResponse, HttpRequest, HttpResponse, HttpResponseBase

from evennia_ai.engine.errors import NotStoredError
from evennia_ai.formats.cards.exporting import dump_card
from evennia_ai.formats.cards.loading import load_card
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.authored import cards
from evennia_ai.web.site.page import Page


class CardFileView(Page):
    """`/ai/cards/<name>/<number>/export/<form>/`: the card as a file in this format."""

    template = ""

    def get(self, request: HttpRequest, **named: Any) -> HttpResponseBase:
        """Return the file.

        Raises:
            FormatError: The card cannot be written in this format.
        """
        name, form = named["name"], named["form"]
        file = cards.CARDS.revision_file(name, named["number"])
        limits = conf().card_limits
        content = dump_card(
            load_card(file.content, limits=limits),
            form,
            modified_at=int(time.time()),
            limits=limits,
        )
        return FileResponse(BytesIO(content), as_attachment=True, filename=f"{name}.{form}")


class PictureView(Page):
    """`/ai/cards/<name>/<number>/picture/`: the PNG file that held the card, or the card's icon."""

    template = ""

    def get(self, request: HttpRequest, **named: Any) -> HttpResponseBase:
        """Return the picture.

        Raises:
            NotStoredError: The card has none.
        """
        file = cards.CARDS.revision_file(named["name"], named["number"])
        picture = load_card(file.content, limits=conf().card_limits).picture
        if picture is None:
            raise NotStoredError("picture of card", named["name"])
        return HttpResponse(picture, content_type="image/png")
