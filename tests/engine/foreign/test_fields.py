"""Checks of foreign values against the types and bounds of a dataclass's fields."""

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.fields import (
    Must,
    describe_in_data,
    find_wrong_field,
    read_fields,
    strict_model,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sails:
    colour: Literal["brown", "white"] = "brown"
    area: Annotated[int, Field(ge=1, le=200)] = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Ferry:
    name: Annotated[str, Must("the name of a boat", str.istitle)] = "Slack"
    oars: Annotated[int, Field(ge=0)] = 2
    seats: Annotated[int, Field(ge=4)] = 8
    runs: bool = True
    sails: Sails = field(default_factory=Sails)


def read(given: Any) -> Ferry:
    return read_fields(Ferry, given, where="FERRY")


def test_read_fields_keeps_defaults_of_missing_keys() -> None:
    assert read({}) == Ferry()


def test_read_fields_reads_inner_dataclass_from_the_same_mapping() -> None:
    assert read({"oars": 4, "colour": "white"}) == Ferry(oars=4, sails=Sails(colour="white"))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([], "FERRY: must be a dictionary"),
        ({"oarz": 2}, "FERRY: there is no rule 'oarz'; did you mean oars?"),
        ({"keel": 2}, "FERRY: there is no rule 'keel'"),
        ({1: 2}, "FERRY: there is no rule 1"),
        ({"sails": {}}, "FERRY: there is no rule 'sails'; did you mean seats?"),
        ({"oars": True}, "FERRY.oars: must be a whole number, 0 or more, not True"),
        ({"oars": 2.0}, "FERRY.oars: must be a whole number, 0 or more, not 2.0"),
        ({"seats": 3}, "FERRY.seats: must be a whole number from 4 on, not 3"),
        ({"area": 201}, "FERRY.area: must be a whole number from 1 to 200, not 201"),
        ({"runs": 1}, "FERRY.runs: must be True or False, not 1"),
        ({"colour": "red"}, 'FERRY.colour: must be "brown" or "white", not \'red\''),
        ({"name": "slack"}, "FERRY.name: must be the name of a boat, not 'slack'"),
        ({"name": None}, "FERRY.name: must be the name of a boat, not None"),
    ],
)
def test_read_fields_error_names_the_field_and_its_requirement(given: Any, told: str) -> None:
    with pytest.raises(FormatError) as raised:
        read(given)
    assert raised.value.message == told


def test_read_fields_error_names_the_first_field_with_a_wrong_value() -> None:
    with pytest.raises(FormatError, match=r"FERRY\.seats"):
        read({"seats": 0, "oars": -1, "keel": 1})


def test_dataclass_values_made_in_code_are_not_checked() -> None:
    assert replace(Ferry(), oars=-1).oars == -1


def test_find_wrong_field_returns_the_first_field_with_a_wrong_value() -> None:
    assert find_wrong_field(Sails(area=7)) is None
    assert find_wrong_field(Sails(area=0)) == ("area", "a whole number from 1 to 200")


@pytest.mark.parametrize(
    ("kind", "value", "wanted"),
    [
        (bool, 1, "true or false"),
        (str, 1, "text"),
        (str | None, 1, "text"),
        (str, "half \ud800", "text without null characters or lone surrogates"),
        (Annotated[str, Field(max_length=3)], "boat", "text of at most 3 characters"),
        (Literal["brown", "white"] | None, "red", "one of brown, white"),
        (Annotated[int, Field(ge=-(10**9), le=10**9)], "x", "a whole number"),
        (Annotated[int, Field(ge=0, le=10**9)], -1, "a whole number, 0 or more"),
        (Annotated[int, Field(ge=0, le=10**9)], 10**10, "a whole number, 0 or more, at most 10"),
    ],
)
def test_field_requirement_is_described_in_the_notation_of_data_files(
    kind: Any, value: Any, wanted: str
) -> None:
    @dataclass(frozen=True)
    class Form:
        member: kind  # type: ignore[valid-type]

    assert describe_in_data(strict_model(Form).model_fields["member"], value).startswith(wanted)
