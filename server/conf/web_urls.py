"""Addresses of the demo game's site: the minds of its NPCs, the admin, then Evennia's."""

from django.urls import include, path
from evennia.web.urls import urlpatterns as evennia_urls

urlpatterns = [
    path("ai/", include("evennia_ai.web.site.urls")),
    path("admin/", include("evennia.web.admin.urls")),
    *evennia_urls,
]
