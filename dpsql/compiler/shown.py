"""Expressions of the algebra as the analyst would write them, for EXPLAIN. Never compiled or compared."""

from __future__ import annotations

from datetime import date

from dpsql.compiler.algebra import Call, Case, Col, Exists, Expr, Lit, Scalar

_INFIX = {
    "and": "AND", "or": "OR", "eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "distinct": "IS DISTINCT FROM", "like": "LIKE", "ilike": "ILIKE", "add": "+", "sub": "-", "mul": "*", "div": "/",
    "idiv": "/", "mod": "%", "date_diff": "-", "concat": "||",
}  # fmt: skip
_CASTS = {
    "to_int": "integer", "bool_to_int": "integer", "to_float": "float", "to_numeric": "numeric", "to_date": "date",
    "to_timestamp": "timestamp", "to_text": "text",
}  # fmt: skip
_NAMES = {"row": "", "from_epoch": "to_timestamp", "position": "strpos", "trim": "btrim"}
_BELOW_A_DAY = {"hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000, "microsecond": 1}


def shown(expr: Expr) -> str:
    """A short text; columns by the name that the policy has for them."""
    match expr:
        case Col(name=name, origin=origin):
            return name if origin is None else origin[1]
        case Lit(value=value):
            return _literal(value)
        case Scalar(rows=rows):
            return f"(subquery {rows + 1})"
        case Exists():
            return "EXISTS (...)"
        case Case(branches=branches, default=default):
            arms = " ".join(f"WHEN {shown(c)} THEN {shown(v)}" for c, v in branches)
            return f"CASE {arms}{'' if default is None else f' ELSE {shown(default)}'} END"
        case Call():
            return _call(expr)


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str | date):
        return "'" + str(value).replace("'", "''") + "'"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _call(call: Call) -> str:
    args = call.args
    match call.op:
        case "not":
            return f"NOT {_operand(args[0])}"
        case "is_null" | "is_true" | "is_false":
            return f"{_operand(args[0])} {call.op.upper().replace('_', ' ')}"
        case "in":
            return f"{_operand(args[0])} IN ({', '.join(shown(a) for a in args[1:])})"
        case "neg":
            return f"-{_operand(args[0])}"
        case "extract":
            return f"EXTRACT({_word(args[0])} FROM {shown(args[1])})"
        case "add_interval":
            months, days, micros = (int(_word(p)) for p in args[1:])
            return f"{_operand(args[0])} + INTERVAL '{interval(months, days, micros)}'"
        case "date_bin":
            return f"date_bin('{interval(0, 0, int(_word(args[0])))}', {shown(args[1])}, {shown(args[2])})"
        case op if op in _CASTS:
            return f"CAST({shown(args[0])} AS {_CASTS[op]})"
        case op if op in _INFIX:
            return f" {_INFIX[op]} ".join(_operand(a) for a in args)
        case "floor" | "ceil" | "round" | "trunc" if args[1:] == (Lit(0, args[1].type),):
            return f"{call.op.upper()}({shown(args[0])})"
        case op:
            return f"{_NAMES.get(op, op)}({', '.join(shown(a) for a in args)})"


def interval(months: int, days: int, micros: int) -> str:
    """An interval's parts as a literal has them: '1 month', '-1 day', '15 minutes'."""
    if not months and not days and micros and micros % 86_400_000_000 == 0:
        days, micros = micros // 86_400_000_000, 0
    below = next((name, n) for name, n in _BELOW_A_DAY.items() if micros % n == 0)
    counts = (("month", months), ("day", days), (below[0], micros // below[1]))
    return " ".join(f"{n} {name}{'' if abs(n) == 1 else 's'}" for name, n in counts if n) or "0"


def _word(expr: Expr) -> str:
    return str(expr.value) if isinstance(expr, Lit) else ""


def _operand(expr: Expr) -> str:
    """In brackets where it is itself made of operands."""
    text = shown(expr)
    plain = not isinstance(expr, Call) or expr.op not in (*_INFIX, "not", "in", "neg", "is_null", "add_interval")
    return text if plain else f"({text})"
