"""Statements that join along composite paths: the ordinary ones, the named tricks, and random ones.

The random ones tie the columns of a child's path to columns of whatever rows are in scope, most of the time not of one
row. Some are refused; those that are answered must keep the promise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

ORDINARY: dict[str, str] = {
    "child and parent": "SELECT COUNT(*) FROM lines l JOIN orders o ON l.l_store = o.store AND l.l_no = o.no",
    "parent and child": "SELECT COUNT(*), SUM(l_v) FROM orders o, lines l WHERE o.no = l.l_no AND o.store = l.l_store",
    "left join": "SELECT COUNT(l_v) FROM orders o LEFT JOIN lines l ON l.l_store = o.store AND l.l_no = o.no",
    "child alone": "SELECT COUNT(*) FROM notes",
    "three levels": "SELECT COUNT(*), SUM(n_v) FROM notes n JOIN lines l ON n_store = l_store AND n_no = l_no "
    "AND n_ln = l_ln JOIN orders o ON l_store = store AND l_no = no",
    "exists": "SELECT COUNT(*) FROM orders o WHERE EXISTS "
    "(SELECT 1 FROM lines l WHERE l.l_store = o.store AND l.l_no = o.no)",
    "not exists": "SELECT cat, COUNT(*) FROM orders o WHERE NOT EXISTS "
    "(SELECT 1 FROM pays p WHERE p.p_store = o.store AND p.p_no = o.no AND p.p_v > 3) GROUP BY cat",
    "in": "SELECT COUNT(*) FROM orders o WHERE o.store IN (SELECT l_store FROM lines l WHERE l.l_no = o.no)",
    "not in": "SELECT COUNT(*) FROM orders o WHERE o.no NOT IN (SELECT l_no FROM lines l WHERE l.l_store = o.store)",
    "children of one parent": "SELECT COUNT(*) FROM lines l WHERE EXISTS "
    "(SELECT 1 FROM pays p WHERE p.p_store = l.l_store AND p.p_no = l.l_no)",
    "grouped parent": "SELECT COUNT(*), SUM(l_v) FROM (SELECT uid, store, no FROM orders GROUP BY uid, store, no) g "
    "JOIN lines l ON l.l_store = g.store AND l.l_no = g.no",
    "view": "SELECT COUNT(*) FROM bought WHERE EXISTS (SELECT 1 FROM pays WHERE p_store = b_store AND p_no = b_no)",
    "median": "SELECT MEDIAN(l_v) FROM lines l JOIN orders o ON l.l_store = o.store AND l.l_no = o.no",
}
"""Forms that are answered, without equality of units."""

_SELF = "orders o1 JOIN orders o2 ON o1.uid = o2.uid AND o2.store = o1.amt AND o2.no = o1.amt"
_MIXED = "SELECT 1 FROM lines l WHERE l.l_store = o1.store AND l.l_no = o2.no"
_PAIRS = f"SELECT o1.uid, o1.store, o2.no FROM {_SELF} GROUP BY o1.uid, o1.store, o2.no"

TRICKS: dict[str, str] = {
    "exists": f"SELECT COUNT(*) FROM {_SELF} WHERE EXISTS ({_MIXED})",
    "not exists": f"SELECT COUNT(*) FROM {_SELF} WHERE NOT EXISTS ({_MIXED})",
    "in": f"SELECT COUNT(*) FROM {_SELF} WHERE o1.store IN (SELECT l_store FROM lines l WHERE l.l_no = o2.no)",
    "not in": f"SELECT COUNT(*) FROM {_SELF} WHERE o2.no NOT IN (SELECT l_no FROM lines l WHERE l_store = o1.store)",
    "join": f"SELECT COUNT(*) FROM {_SELF} JOIN lines l ON l.l_store = o1.store AND l.l_no = o2.no",
    "left join": f"SELECT COUNT(l_v) FROM {_SELF} LEFT JOIN lines l ON l.l_store = o1.store AND l.l_no = o2.no",
    "left join of a pair": f"SELECT COUNT(l_v) FROM (SELECT o1.store, o2.no FROM {_SELF}) o LEFT JOIN lines l "
    "ON l.l_store = o.store AND l.l_no = o.no",
    "left join of the parent": "SELECT COUNT(l_v) FROM orders o1 LEFT JOIN orders o2 ON o1.uid = o2.uid AND "
    "o2.store = o1.amt AND o2.no = o1.amt LEFT JOIN lines l ON l.l_store = o1.store AND l.l_no = o2.no",
    "grouped": f"SELECT COUNT(*), SUM(l_v) FROM ({_PAIRS}) g JOIN lines l ON l_store = g.store AND l_no = g.no",
    "grouped, left join": f"SELECT COUNT(l_v) FROM ({_PAIRS}) g LEFT JOIN lines l ON l_store = store AND l_no = no",
    "grouped, exists": f"SELECT COUNT(*) FROM ({_PAIRS}) g WHERE EXISTS "
    "(SELECT 1 FROM pays WHERE p_store = g.store AND p_no = g.no)",
    "using": "SELECT COUNT(*) FROM orders o1 JOIN (SELECT uid, store AS s2, no AS n2 FROM orders) o2 USING (uid) "
    "JOIN (SELECT l_store AS store, l_no AS n2, l_v FROM lines) l USING (store, n2) WHERE s2 = amt AND n2 = amt",
    "child twice": "SELECT COUNT(*) FROM lines l1 JOIN lines l2 ON l1.l_store = l2.l_no AND l1.l_no = l2.l_store "
    "AND l1.l_ln = l2.l_ln",
    "two children": "SELECT COUNT(*) FROM bought b1 JOIN bought b2 ON b1.uid = b2.uid AND b2.b_store = b1.b_store "
    "AND b2.b_no = b1.b_no AND b1.l_ln = b2.l_ln WHERE EXISTS "
    "(SELECT 1 FROM pays WHERE p_store = b1.b_no AND p_no = b2.b_store)",
    "three levels": "SELECT COUNT(*) FROM lines l1 JOIN lines l2 ON l1.l_store = l2.l_store AND l1.l_no = l2.l_no AND "
    "l1.l_ln = l2.l_ln WHERE EXISTS (SELECT 1 FROM notes WHERE n_store = l1.l_store AND n_no = l2.l_no "
    "AND n_ln = l1.l_ln)",
    "union all": f"SELECT COUNT(*) FROM (SELECT o1.uid, o1.store, o2.no FROM {_SELF} UNION ALL "
    "SELECT uid, store, no FROM orders) q WHERE EXISTS (SELECT 1 FROM lines WHERE l_store = store AND l_no = no)",
    "histogram": f"SELECT MEDIAN(o1.v) FROM {_SELF} WHERE EXISTS ({_MIXED})",
    "histogram of a join": f"SELECT MEDIAN(l_v) FROM {_SELF} LEFT JOIN lines l ON l_store = o1.store AND l_no = o2.no",
}
"""The columns of a path from two rows: refused, or answered within the unit."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """A FROM clause with its key-typed columns, those that are the key of one order first."""

    sql: str
    keys: tuple[tuple[str, str], ...]
    others: tuple[str, ...]
    value: str


_SOURCES = (
    _Rows("orders o1", (("o1.store", "o1.no"),), ("o1.amt",), "o1.v"),
    _Rows(_SELF, (("o1.store", "o1.no"), ("o2.store", "o2.no")), ("o1.amt", "o2.amt"), "o2.v"),
    _Rows(
        "orders o1 JOIN orders o2 ON o1.uid = o2.uid AND o1.amt = o2.store AND o2.no = o1.no",
        (("o1.store", "o1.no"), ("o2.store", "o2.no")),
        ("o1.amt",),
        "o1.v",
    ),
    _Rows(
        "orders o1 LEFT JOIN orders o2 ON o1.uid = o2.uid AND o2.store = o1.amt AND o2.no = o1.amt",
        (("o1.store", "o1.no"), ("o2.store", "o2.no")),
        ("o1.amt",),
        "o1.v",
    ),
    _Rows(f"({_PAIRS}) g", (("g.store", "g.no"),), (), "1"),
    _Rows("(SELECT store, no, amt, MAX(v) v FROM orders GROUP BY 1, 2, 3) g", (("g.store", "g.no"),), ("g.amt",), "v"),
    _Rows("lines c", (("c.l_store", "c.l_no"),), (), "c.l_v"),
    _Rows("bought b", (("b.b_store", "b.b_no"),), (), "1"),
    _Rows(
        "orders o1 JOIN lines c ON c.l_store = o1.store AND c.l_no = o1.no",
        (("o1.store", "o1.no"), ("c.l_store", "c.l_no")),
        ("o1.amt",),
        "c.l_v",
    ),
    _Rows(
        "(SELECT uid, store, no FROM orders UNION ALL SELECT uid, amt, no FROM orders) q", (("store", "no"),), (), "1"
    ),
)
_CHILDREN = (("lines", "l_"), ("pays", "p_"), ("notes", "n_"), ("bought", "b_"))


def random_statement(random: Random) -> str:
    """A child tied to the rows of a FROM clause by columns that may be of several of them."""
    source, (table, prefix) = random.choice(_SOURCES), random.choice(_CHILDREN)
    tie = _tie(random, source, prefix)
    shown = random.choice((f"COUNT(*), SUM({source.value})", "COUNT(*)", f"COUNT({source.value})"))
    match random.choice(("exists", "exists", "not exists", "in", "not in", "join", "left", "left", "using", "right")):
        case "exists" | "not exists" as word:
            return f"SELECT {shown} FROM {source.sql} WHERE {word.upper()} ({_inner(random, table, tie)})"
        case "join":
            return f"SELECT {shown} FROM {source.sql} JOIN {table} x ON {' AND '.join(tie)}"
        case "left":
            return f"SELECT COUNT(x.{prefix}no) FROM {source.sql} LEFT JOIN {table} x ON {' AND '.join(tie)}"
        case "right":
            return f"SELECT COUNT(x.{prefix}no) FROM {table} x RIGHT JOIN {_named(source, tie)} ON {_by_name(prefix)}"
        case "using":
            child = f"(SELECT {prefix}store AS ks, {prefix}no AS kn FROM {table}) x"
            word = random.choice(("NATURAL JOIN", "NATURAL LEFT JOIN", "JOIN", "LEFT JOIN"))
            using = "" if word.startswith("NATURAL") else " USING (ks, kn)"
            return f"SELECT COUNT(kn) FROM {_named(source, tie)} {word} {child}{using}"
        case word:
            member, subject = tie[0].split(" = ")
            inner = f"SELECT {member} FROM {table} x WHERE {' AND '.join(tie[1:])}"
            return f"SELECT {shown} FROM {source.sql} WHERE {subject} {word.upper()} ({inner})"


def _inner(random: Random, table: str, tie: Sequence[str]) -> str:
    """Rows of a child; now and then such as have rows of another child, tied to the rows outside of both."""
    rows = f"SELECT 1 FROM {table} x WHERE {' AND '.join(tie)}"
    if random.random() < 0.7:
        return rows
    outside = [part.split(" = ")[1] for part in tie[:2]]
    return f"{rows} AND EXISTS (SELECT 1 FROM pays y WHERE y.p_store = {outside[0]} AND y.p_no = {outside[1]})"


def _named(source: _Rows, tie: Sequence[str]) -> str:
    """The rows with the two columns of the tie, whatever they are, as ks and kn."""
    store, number = (part.split(" = ")[1] for part in tie[:2])
    return f"(SELECT {store} AS ks, {number} AS kn FROM {source.sql}) r"


def _by_name(prefix: str) -> str:
    return f"x.{prefix}store = r.ks AND x.{prefix}no = r.kn"


def _tie(random: Random, source: _Rows, prefix: str) -> Sequence[str]:
    stores, numbers = [a for a, _ in source.keys], [b for _, b in source.keys]
    if random.random() < 0.5:
        a, b = random.choice(source.keys)
    else:
        a = random.choice((*stores, *stores, *source.others))
        b = random.choice((*numbers, *numbers, *source.others))
    tie = [f"x.{prefix}store = {a}", f"x.{prefix}no = {b}"]
    return tie if prefix != "n_" else [*tie, f"x.n_ln = {random.choice(('1', 'x.n_v - 3'))}"]
