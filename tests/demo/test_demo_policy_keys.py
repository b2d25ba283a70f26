"""docs/policy.md has every key of the policy, as the schema declares it."""

from __future__ import annotations

from policy_keys import PAGE, PLACE, filled
from pydantic import BaseModel

from dpsql.policy import document


def test_the_reference_is_the_schema() -> None:
    text = PAGE.read_text("utf-8")
    assert text == filled(text), "run: python tests/demo/policy_keys.py --rewrite"


def test_no_section_is_missing() -> None:
    sections = {
        name
        for name, value in vars(document).items()
        if isinstance(value, type) and issubclass(value, BaseModel) and value.model_fields and name != "TlsSection"
    }
    assert {found[1] for found in PLACE.findall(PAGE.read_text("utf-8"))} == sections


def test_every_key_has_a_meaning() -> None:
    for value in vars(document).values():
        if isinstance(value, type) and issubclass(value, BaseModel):
            assert all(field.description for field in value.model_fields.values()), value
