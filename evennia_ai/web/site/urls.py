"""The addresses of the pages. `path("ai/", include("evennia_ai.web.site.urls"))` installs them."""

from django.urls import path, register_converter
from django.urls.converters import SlugConverter

from evennia_ai.formats.cards.exporting import FORMS
from evennia_ai.web.site.book_editing import BookRevisionPage, LintsPage
from evennia_ai.web.site.books import BookPage, BooksPage
from evennia_ai.web.site.card_files import CardFileView, PictureView
from evennia_ai.web.site.card_preview import PreviewPage
from evennia_ai.web.site.cards import CardPage, CardsPage
from evennia_ai.web.site.character import CharacterPage, CharacterPanel, NewCardPage
from evennia_ai.web.site.diff import DiffPage
from evennia_ai.web.site.drafts import DraftPage
from evennia_ai.web.site.entry import EntryPage
from evennia_ai.web.site.kept import KeepView, KeptCasePage, KeptPage
from evennia_ai.web.site.knowledge import BasePage, BasesPage, PageOfBase
from evennia_ai.web.site.last import LastPage
from evennia_ai.web.site.lore_turns import LoreTurnsPage
from evennia_ai.web.site.memory import MemoryPage
from evennia_ai.web.site.mind import MindPage, PauseView, TurnsPanel
from evennia_ai.web.site.next import NextPage
from evennia_ai.web.site.notes import NotesPanel
from evennia_ai.web.site.npc_settings import SettingsPanel
from evennia_ai.web.site.players import OwnDataPage, ReportsPage
from evennia_ai.web.site.regex_scripts import ScriptsPage
from evennia_ai.web.site.turn import AgainstPage, TurnPage
from evennia_ai.web.site.vault import VaultPage
from evennia_ai.web.site.village import VillagePage
from evennia_ai.web.site.watch import StopView, WatchPage


class MindConverter(SlugConverter):
    """Matches the reference of an NPC (`12`), or of a builder's branch of it (`12~7`)."""

    regex = "[-a-zA-Z0-9_]+(?:~[-a-zA-Z0-9_]+)?"


register_converter(MindConverter, "mind")

app_name = "evennia_ai"
# A branch has only turns of its own. All other pages belong to its NPC.
_MIND = "npc/<mind:ref>/"
_NPC = "npc/<slug:ref>/"

urlpatterns = [
    path("", VillagePage.as_view(), name="village"),
    path(_MIND, MindPage.as_view(), name="mind"),
    path(f"{_NPC}character/", CharacterPanel.as_view(), name="mind_character"),
    path(f"{_NPC}notes/", NotesPanel.as_view(), name="mind_notes"),
    path(f"{_MIND}turns/", TurnsPanel.as_view(), name="mind_turns"),
    path(f"{_NPC}next/", NextPage.as_view(), name="next"),
    path(f"{_NPC}memory/", MemoryPage.as_view(), name="memory"),
    path(f"{_NPC}settings/", SettingsPanel.as_view(), name="settings"),
    path(f"{_NPC}pause/", PauseView.as_view(), name="pause"),
    path(f"{_MIND}turn/<int:number>/", TurnPage.as_view(), name="turn"),
    path(f"{_NPC}turn/<int:number>/keep/", KeepView.as_view(), name="keep"),
    path(f"{_MIND}diff/<int:older>/<int:newer>/", DiffPage.as_view(), name="diff"),
    path(f"{_MIND}against/", AgainstPage.as_view(), name="against"),
    path("kept/", KeptPage.as_view(), name="kept"),
    path("kept/<path:name>/", KeptCasePage.as_view(), name="kept_case"),
    path("lore/", BooksPage.as_view(), name="books"),
    path("lore/<path:name>/new/", EntryPage.as_view(), name="new_entry"),
    path("lore/<path:name>/lints/", LintsPage.as_view(), name="lints"),
    path("lore/<path:name>/turns/", LoreTurnsPage.as_view(), name="lore_turns"),
    path(
        "lore/<path:name>/revision/<int:number>/",
        BookRevisionPage.as_view(),
        name="book_revision",
    ),
    path("lore/<path:name>/entry/<path:uid>/", EntryPage.as_view(), name="entry"),
    path("lore/<path:name>/", BookPage.as_view(), name="book"),
    path("cards/", CardsPage.as_view(), name="cards"),
    path("cards/new/", NewCardPage.as_view(), name="new_card"),
    path("cards/<path:name>/edit/", CharacterPage.as_view(), name="character"),
    path("cards/<path:name>/<int:number>/picture/", PictureView.as_view(), name="picture"),
    path("cards/<path:name>/<int:number>/preview/", PreviewPage.as_view(), name="preview"),
    *(
        path(
            f"cards/<path:name>/<int:number>/export/{form}/",
            CardFileView.as_view(),
            {"form": form},
            name=f"export_{form}",
        )
        for form in FORMS
    ),
    path("cards/<path:name>/<int:number>/", CardPage.as_view(), name="card"),
    path("scripts/", ScriptsPage.as_view(), name="scripts"),
    path("kb/", BasesPage.as_view(), name="bases"),
    path("kb/<slug:key>/", BasePage.as_view(), name="base"),
    path("kb/<slug:key>/vault/", VaultPage.as_view(), name="vault"),
    path("kb/<slug:key>/page/<path:title>/", PageOfBase.as_view(), name="page_of_base"),
    path("drafts/<int:number>/", DraftPage.as_view(), name="draft"),
    path("last/", LastPage.as_view(), name="last"),
    path("me/", OwnDataPage.as_view(), name="own_data"),
    path("reports/", ReportsPage.as_view(), name="reports"),
    path("live/", WatchPage.as_view(), name="watch"),
    path("live/stop/", StopView.as_view(), name="stop"),
]
