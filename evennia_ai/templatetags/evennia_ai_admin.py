"""A template tag for the index page of Evennia's admin, which lists our tables."""

from collections.abc import Mapping
from typing import Any

from django import template
from django.contrib.admin.sites import site

register = template.Library()


@register.simple_tag(takes_context=True)  # type: ignore[untyped-decorator]
def evennia_ai_tables(context: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return our tables that this user may see, each with its `name` and `admin_url`."""
    listed = site.get_app_list(context["request"], app_label="evennia_ai")
    return [table for app in listed for table in app["models"]]
