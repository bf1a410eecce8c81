"""Fields of foreign values: read from a mapping by the types and bounds at their dataclass."""

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.fields import Must, door, read_fields, wanted_in_data, wrong_in


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


def test_what_is_left_out_is_as_it_is_by_default() -> None:
    assert read({}) == Ferry()


def test_a_dataclass_inside_stands_flat() -> None:
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
def test_err_the_message_names_the_field_and_what_it_must_be(given: Any, told: str) -> None:
    with pytest.raises(FormatError) as raised:
        read(given)
    assert raised.value.message == told


def test_the_first_wrong_field_in_the_order_of_the_mapping_is_told() -> None:
    with pytest.raises(FormatError, match=r"FERRY\.seats"):
        read({"seats": 0, "oars": -1, "keel": 1})


def test_what_is_made_inside_the_package_is_not_looked_at() -> None:
    assert replace(Ferry(), oars=-1).oars == -1


def test_a_dataclass_that_checks_itself_is_told_its_first_wrong_field() -> None:
    assert wrong_in(Sails(area=7)) is None
    assert wrong_in(Sails(area=0)) == ("area", "a whole number from 1 to 200")


@pytest.mark.parametrize(
    ("kind", "value", "wanted"),
    [
        (bool, 1, "true or false"),
        (str, 1, "text"),
        (str | None, 1, "text"),
        (str, "half \ud800", "text without null characters or half pairs"),
        (Annotated[str, Field(max_length=3)], "boat", "text of at most 3 characters"),
        (Literal["brown", "white"] | None, "red", "one of brown, white"),
        (Annotated[int, Field(ge=-(10**9), le=10**9)], "x", "a whole number"),
        (Annotated[int, Field(ge=0, le=10**9)], -1, "a whole number, 0 or more"),
        (Annotated[int, Field(ge=0, le=10**9)], 10**10, "a whole number, 0 or more, at most 10"),
    ],
)
def test_authors_are_told_in_the_words_of_their_files(kind: Any, value: Any, wanted: str) -> None:
    @dataclass(frozen=True)
    class Form:
        member: kind  # type: ignore[valid-type]

    assert wanted_in_data(door(Form).model_fields["member"], value).startswith(wanted)
