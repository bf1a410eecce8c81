"""Test the first build of the demo in a game that already has players."""

from typing import Any

import pytest
from django.conf import settings
from evennia.accounts.models import AccountDB
from evennia.objects.models import ObjectDB

from evennia_ai.store.authored import cards, components

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("settled")]


def test_first_demo_build_keeps_existing_components_cards_and_accounts() -> None:
    assert components.registry().get("system_prompt").content == "Speak in verse."
    assert cards.get_card("oren").source == '{"name": "Orin"}'
    assert AccountDB.objects.get_account_from_name("anna").check_password("her own password")


def test_existing_account_with_a_demo_name_keeps_its_password() -> None:
    name, _ = settings.DEMO_PASSWORDS.builder
    assert AccountDB.objects.get_account_from_name(name).check_password("of-theirs-own")


def test_only_oren_is_at_the_landing_before_a_login(settled: Any) -> None:
    (superuser,) = ObjectDB.objects.filter(db_key="admin")
    assert [one.key for one in settled.contents_get(content_type="character")] == ["Oren"]
    assert (superuser.location, superuser.db.prelogout_location) == (None, settled)
