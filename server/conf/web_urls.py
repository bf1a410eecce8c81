"""The addresses of the demo game's web site: our pages, the admin, and Evennia's pages."""

from django.urls import include, path
from evennia.web.urls import urlpatterns as evennia_urls

urlpatterns = [
    path("ai/", include("evennia_ai.web.site.urls")),
    path("admin/", include("evennia.web.admin.urls")),
    *evennia_urls,
]
