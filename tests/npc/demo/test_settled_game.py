"""The first build of the demo in a game in which people were before: what it leaves alone."""

from typing import Any

import pytest
from django.conf import settings
from evennia.accounts.models import AccountDB
from evennia.objects.models import ObjectDB

from evennia_ai.store.authored import cards, components

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("settled")]


def test_what_was_there_before_the_first_build_is_left_alone() -> None:
    assert components.registry().get("system_prompt").content == "Speak in verse."
    assert cards.get_card("oren").source == '{"name": "Orin"}'
    assert AccountDB.objects.get_account_from_name("anna").check_password("her own password")


def test_an_account_that_only_has_the_name_keeps_its_password() -> None:
    name, _ = settings.DEMO_PASSWORDS.builder
    assert AccountDB.objects.get_account_from_name(name).check_password("of-theirs-own")


def test_nobody_but_oren_stands_at_the_landing_before_somebody_logs_in(settled: Any) -> None:
    (superuser,) = ObjectDB.objects.filter(db_key="admin")
    assert [one.key for one in settled.contents_get(content_type="character")] == ["Oren"]
    assert (superuser.location, superuser.db.prelogout_location) == (None, settled)
