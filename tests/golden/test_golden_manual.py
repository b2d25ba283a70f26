"""The manual shows the golden cases as they are."""

from __future__ import annotations

from manual import MANUAL, PLACE, filled


def test_the_manual_is_up_to_date() -> None:
    """Rewrite with: python tests/golden/manual.py --rewrite"""
    text = MANUAL.read_text(encoding="utf-8")
    assert filled(text) == text


def test_all_examples_are_golden_cases() -> None:
    text = MANUAL.read_text(encoding="utf-8")
    assert text.count("```sql\n") == len(PLACE.findall(text)) == text.count("<!-- end -->") > 10
