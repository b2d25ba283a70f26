"""What names suggest: which tables hold people, which columns name keys, categories, or a person.

Decides guesses for drafts only. Nothing that is enforced hangs on them, and a draft says of each that it is a guess.
"""

from __future__ import annotations

import re

from dpsql.policy.undecided import DECIDE


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


PEOPLE = _set(
    "account applicant beneficiary borrower buyer cardholder child citizen client contact cust customer donor driver"
    " guest holder household individual insured member owner participant passenger patient person player"
    " policyholder pupil resident respondent rider student subject subscriber tenant traveler traveller"
    " user usr visitor voter"
)
STAFF = _set("agent clerk courier doctor employee nurse operator physician seller staff teacher vendor worker")
"""People whom data tell of at work: protected too, but seldom the ones that the data are about."""

DEVICES = _set("aircraft car device handset machine meter phone plane sensor session vehicle")
_IDENTIFYING = _set(
    "address email firstname forename fullname iban ip lastname latitude login longitude mail mobile name nickname"
    " passport password phone postcode secret ssn street surname telephone token url username zip zipcode"
)
_FREE_TEXT = _set("body comment description json memo message note notes payload remark text title")
_CATEGORIES = _set(
    "band category channel class color colour country currency department education engine ethnicity gender grade"
    " group kind language level marital married method mode occupation origin outcome payment plan platform priority"
    " race reason region result role season segment severity sex shift site size source specialty stage state status"
    " tier type unit ward"
)
_KEY_ENDS = ("id", "key", "uuid", "guid", "code", "number", "num", "no", "nr")
_BOUNDS: dict[str, tuple[str, str]] = {
    "age": ("0", "110"),
    "month": ("1", "12"),
    "day": ("1", "31"),
    "hour": ("0", "23"),
    "minute": ("0", "59"),
    "weekday": ("0", "6"),
    "week": ("1", "53"),
    "quarter": ("1", "4"),
    "percent": ("0", "100"),
    "percentage": ("0", "100"),
    "rating": ("1", "5"),
    "stars": ("1", "5"),
    "discount": ("0", "1"),
    "height": ("0", "250"),
    "weight": ("0", "300"),
    "temperature": ("-30", "50"),
    "latitude": ("-90", "90"),
    "longitude": ("-180", "180"),
}
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_RESERVED = frozenset({"yes", "no", "true", "false", "null", "on", "off", "y", "n", DECIDE.lower()})
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def quoted(name: str) -> str:
    """The name as YAML takes it, on one line: plain where it can be."""
    if _PLAIN.fullmatch(name) and name.lower() not in _RESERVED:
        return name
    return '"' + "".join(map(_escaped, name)) + '"'


def _escaped(character: str) -> str:
    """As YAML takes it in double quotes; whatever might end a line, or cannot be seen, by its number."""
    if character in '"\\':
        return f"\\{character}"
    return character if character.isprintable() else f"\\U{ord(character):08x}"


def words(name: str) -> tuple[str, ...]:
    """`OrderItems` and `order_items` -> (order, items)."""
    return tuple(word for part in re.split(r"[^A-Za-z0-9]+", name) for word in _CAMEL.sub(" ", part).lower().split())


def singular(word: str) -> str:
    irregular = {
        "people": "person",
        "children": "child",
        "staff": "staff",
        "addresses": "address",
        "aircraft": "aircraft",
    }
    if word in irregular:
        return irregular[word]
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def thing(table: str) -> str:
    """What one row of a table is, by its name: `order_items` -> `order_item`; without prefixes like `dim_`."""
    parts = [part for part in words(table) if part not in ("dim", "fact", "tbl", "stg", "raw", "t")] or [table.lower()]
    return "_".join((*parts[:-1], singular(parts[-1])))


def holds_people(name: str) -> bool:
    return any(singular(word) in PEOPLE | STAFF for word in words(name)) or _ends_with(name, PEOPLE | STAFF)


def holds_staff(name: str) -> bool:
    return any(singular(word) in STAFF for word in words(name)) or _ends_with(name, STAFF)


def holds_devices(name: str) -> bool:
    return any(singular(word) in DEVICES for word in words(name))


def _ends_with(name: str, known: frozenset[str]) -> bool:
    """`custkey`, `userid`: a word and an ending for keys, run together."""
    last = (words(name) or ("",))[-1]
    return any(last == word + end for word in known for end in _KEY_ENDS)


def names_a_key(column: str) -> bool:
    """`id`, `customer_id`, `orderkey`, `tailnum`; not `paid`."""
    last = (words(column) or ("",))[-1]
    return (
        last in _KEY_ENDS
        or (len(last) > 5 and last.endswith(("key", "uuid", "num", "code", "number")))
        or (_ends_with(column, PEOPLE))
    )


def identifies(column: str) -> bool:
    """Whether a column of text looks as if it told who somebody is, or held free text."""
    return any(word in _IDENTIFYING or word in _FREE_TEXT for word in words(column))


def is_category(column: str) -> bool:
    return any(singular(word) in _CATEGORIES for word in words(column))


def likely_bounds(column: str) -> tuple[str, str] | None:
    """Bounds that the word itself has: the hours of a day, the months of a year."""
    found = words(column)
    return _BOUNDS.get(found[-1]) if found else None
