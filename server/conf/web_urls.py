"""Addresses of the demo game's site: the admin, the inspector where there is one, Evennia's."""

from importlib.util import find_spec

from django.urls import include, path
from evennia.web.urls import urlpatterns as evennia_urls

urlpatterns = [path("admin/", include("evennia.web.admin.urls"))]
if find_spec("evennia_ai.web"):
    urlpatterns.append(path("ai/", include("evennia_ai.web.urls")))
urlpatterns += evennia_urls
