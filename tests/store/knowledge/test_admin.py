"""Test that the admin shows who changed a page, and nothing of its text."""

import pytest
from django.contrib.admin.sites import site
from django.contrib.auth import get_user_model
from django.test import RequestFactory

from evennia_ai import admin, models  # noqa: F401  (the first registers the second)
from tests.store.knowledge.knowledge_builders import a_base, a_saved_page


@pytest.fixture
def request_of_staff():
    request = RequestFactory().get("/admin/")
    request.user = get_user_model()(is_superuser=True, is_staff=True, is_active=True)
    return request


def test_admin_shows_a_page_revision_without_its_text(request_of_staff):
    a_base()
    a_saved_page("Ferry", "The salt is below the floor.", summary="salt")
    shown = site.get_model_admin(models.KnowledgePageRevision)
    (row,) = models.KnowledgePageRevision.objects.all()

    fields = shown.get_fields(request_of_staff, row)
    assert {"title", "changed_by", "number"} <= set(fields)
    assert not {"body", "meta"} & set(fields)


def test_admin_shows_no_pages_and_no_drafts():
    assert not site.is_registered(models.KnowledgePage)
    assert not site.is_registered(models.KnowledgeDraft)
