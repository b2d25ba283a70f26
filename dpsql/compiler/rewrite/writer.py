"""A query's text with its private aggregations replaced by relations, spliced from the client's own text.

Walks the query as it was asked and as `split` made it side by side. Where they are equal the text stays; where they
differ, the span of the asked part is replaced; where that span cannot be told, the smallest part around it is printed.
Whatever is written otherwise than the tree says (a WITH name that stays a name) is changed in the tree as well, so that
`check` compares like with like.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from dpsql.compiler.parse import name_of, parse
from dpsql.compiler.public.names import output_name
from dpsql.compiler.rewrite.printing import as_part, item_of, printed, relation_of
from dpsql.compiler.rewrite.spans import (
    UNLIKE,
    NoSpan,
    Span,
    Text,
    as_expression,
    as_item,
    as_query,
    clauses,
    listed,
    placed,
)
from dpsql.compiler.spelling import PLACE
from dpsql.errors import Rejected
from dpsql.types import TableName

Edit = tuple[Span, str]


@dataclass(slots=True)
class Common:
    """A WITH query of the text: where its head and body stand, and what became of it. `made`: None where unread."""

    asked: exp.CTE
    head: Span
    body: Span
    names: Names
    made: exp.Query | None = None


Names = Mapping[str, Common]


@dataclass(frozen=True, slots=True)
class Writer:
    """Of one text: the client's, or a view's."""

    text: Text
    views: Mapping[str, str]

    def query(self, asked: exp.Expr, made: exp.Query, span: Span, names: Names) -> str:
        """The text of `made`, which was made of the query `asked` at `span`."""
        clause = asked.args.get("with_")
        if clause is None:
            return self._body(asked, made, span, names)
        commons, start = self._commons(clause, span, names)
        known = {**names, **{name_of(each.asked.args["alias"].this): each for each in commons}}
        text = self._body(asked, made, (start, span[1]), known)
        kept: list[str] = []
        trees: list[exp.CTE] = []
        for each in reversed(commons):
            if each.made is not None:
                body = self.query(each.asked.this, each.made, each.body, each.names)
                kept.insert(0, f"{self.text.slice(each.head)} ({body})")
                cte = each.asked.copy()
                cte.set("this", each.made.copy())
                trees.insert(0, cte)
        if not kept:
            return text
        made.set("with_", exp.With(expressions=trees))
        return f"WITH {', '.join(kept)} {text}"

    def _commons(self, clause: exp.Expr, span: Span, names: Names) -> tuple[list[Common], int]:
        text, at = self.text, span[0] + 1
        found: list[Common] = []
        known = dict(names)
        for cte in clause.expressions:
            start = at
            while not (text.tokens[at].is_symbol("(") and text.tokens[at - 1].is_word("as", "materialized")):
                at = text.closing(at) + 1 if text.tokens[at].is_symbol("(") else at + 1
                if at >= span[1]:
                    raise NoSpan
            end = text.closing(at)
            found.append(Common(cte, (start, at), (at + 1, end), dict(known)))
            known[name_of(cte.args["alias"].this)] = found[-1]
            at = end + 2
        return found, at - 1

    def _body(self, asked: exp.Expr, made: exp.Query, span: Span, names: Names) -> str:
        try:
            match asked:
                case exp.Subquery() | exp.Paren():
                    return self._bracketed(asked, made, span, names)
                case exp.SetOperation() if isinstance(made, exp.SetOperation):
                    return self._set_operation(asked, made, span, names)
                case exp.Select() if isinstance(made, exp.Select):
                    grouped = relation_of(made.args["from_"].this if made.args.get("from_") else None)
                    return (
                        self._public(asked, made, span, names)
                        if grouped is None
                        else self._grouped(asked, made, span, names, grouped)
                    )
        except UNLIKE:
            pass
        return printed(made)

    def _bracketed(self, asked: exp.Expr, made: exp.Query, span: Span, names: Names) -> str:
        if not self.text.tokens[span[0]].is_symbol("("):
            return self.query(asked.this, made, span, names)
        end = self.text.closing(span[0])
        extra = any(v for k, v in asked.args.items() if k not in ("this", "alias", "with_"))
        inner = made.args["from_"].this.this if extra else made
        body = self.query(asked.this, inner, (span[0] + 1, end), names)
        rest = self.text.slice((end + 1, span[1]))
        if extra:
            alias = ' AS "q" ' if end + 1 < span[1] else ""
            return f"SELECT * FROM ({body}){alias}{rest}"
        return f"({body})"

    def _set_operation(self, asked: exp.SetOperation, made: exp.SetOperation, span: Span, names: Names) -> str:
        text = self.text
        top = list(text.top(span))
        ends = [i for i in top if text.tokens[i].is_word("order", "limit", "offset", "fetch")]
        end = ends[0] if ends else span[1]
        for at in reversed([i for i in top if text.tokens[i].is_word("union", "intersect", "except")]):
            right = at + 2 if text.tokens[at + 1].is_word("all", "distinct") else at + 1
            if self._is(asked.this, (span[0], at)) and self._is(asked.expression, (right, end)):
                left = self.query(asked.this, made.this, (span[0], at), names)
                other = self.query(asked.expression, made.expression, (right, end), names)
                tail = f" {text.slice((end, span[1]))}" if end < span[1] else ""
                return f"{left} {text.slice((at, right))} {other}{tail}"
        raise NoSpan

    def _is(self, node: exp.Expr, span: Span) -> bool:
        try:
            wanted = node
            while isinstance(wanted, exp.Subquery | exp.Paren) and not any(
                v for k, v in wanted.args.items() if k != "this"
            ):
                wanted = wanted.this
            return as_query(self.text.slice(span)) == wanted
        except Rejected:
            return False

    # --- public queries --------------------------------------------------------------------------------------------

    def _public(self, asked: exp.Select, made: exp.Select, span: Span, names: Names) -> str:
        edits: list[Edit] = []
        for one, other in _items(asked, made):
            edits += self._item(one, other, span, names)
        for key, value in list(asked.args.items()):
            if key == "joins":
                for join, became in zip(value or [], made.args.get("joins") or [], strict=True):
                    if join.args.get("on") is not None:
                        edits += self._edits(join.args["on"], became.args["on"], span, names)
            elif key not in ("from_", "with_"):
                edits += self._lists(value, made.args.get(key), span, names)
        return self._spliced(span, edits)

    def _item(self, asked: exp.Expr, made: exp.Expr, span: Span, names: Names) -> list[Edit]:
        """An item of FROM over public sources."""
        match asked:
            case exp.Table() if isinstance(asked.this, exp.Identifier):
                return self._table(asked, made, span, names)
            case exp.Subquery() if isinstance(made, exp.Subquery) and isinstance(asked.this, exp.Query):
                place = self._opened(asked, span)
                end = self.text.closing(place)
                body = self.query(asked.this, made.this, (place + 1, end), names)
                alias = asked.args.get("alias")
                made.replace(exp.Subquery(this=made.this.copy(), alias=alias.copy() if alias is not None else None))
                return [((place + 1, end), body)]
            case exp.Subquery():
                raise NoSpan
            case _:
                made.replace(asked.copy())
                return []

    def _opened(self, asked: exp.Subquery, span: Span) -> int:
        """The bracket that opens a subquery in FROM."""
        return self.text.find(asked, span, as_item)[0]

    def _table(self, asked: exp.Table, made: exp.Expr, span: Span, names: Names) -> list[Edit]:
        name, schema = name_of(asked.this), name_of(asked.args.get("db"))
        common = None if schema else names.get(name)
        if common is not None:
            if common.made is None:
                common.made = made.this
            made.replace(asked.copy())
            return []
        if isinstance(made, exp.Table):
            return self._public_table(asked, made, span)
        if name not in self.views:
            raise NoSpan
        view = self.views[name]
        inside = placed(view)
        body = Writer(inside, self.views).query(parse(view), made.this, inside.whole, {})
        bare = exp.Table(this=asked.this, db=asked.args.get("db"))
        place = self.text.find(bare, span, as_item)
        alias = "" if asked.args.get("alias") is not None else f" AS {self.text.slice((place[1] - 1, place[1]))}"
        return [(place, f"({body}){alias}")]

    def _public_table(self, asked: exp.Table, made: exp.Table, span: Span) -> list[Edit]:
        """As it is written, unless that is no name of Postgres's: then as it is declared."""
        place: TableName | None = made.meta.get(PLACE)
        if place is None or _is_at(asked, place):
            made.replace(asked.copy())
            return []
        written = asked.copy()
        written.set("this", exp.to_identifier(place.name, quoted=True))
        written.set("db", exp.to_identifier(place.schema, quoted=True))
        written.set("catalog", None)
        made.replace(written)
        bare = exp.Table(this=asked.this, db=asked.args.get("db"), catalog=asked.args.get("catalog"))
        name = exp.Table(this=written.this, db=written.args["db"])
        return [(self.text.find(bare, span, as_item), name.sql("postgres"))]

    # --- queries over a release ------------------------------------------------------------------------------------

    def _grouped(self, asked: exp.Select, made: exp.Select, span: Span, names: Names, number: int) -> str:
        if made.args.get("qualify") is not None:
            raise NoSpan
        text, found = self.text, clauses(self.text, span)
        parts = [self._columns(asked, made, found["select"], names), f"FROM {item_of(number)}"]
        if made.args.get("where") is not None:
            parts.append(f"WHERE {self._condition(asked, made.args['where'], found['having'], names)}")
        if made.args.get("group") is not None:
            parts.append(self._clause(asked.args["group"], made.args["group"], found["group"], names))
        if made.args.get("having") is not None:
            parts.append(f"HAVING {self._condition(asked, made.args['having'], found['having'], names)}")
        if made.args.get("windows"):
            edits = self._lists(asked.args["windows"], made.args["windows"], found["window"], names)
            parts.append(self._spliced(found["window"], edits))
        if made.args.get("order") is not None:
            parts.append(self._clause(asked.args["order"], made.args["order"], found["order"], names))
        parts += [text.slice(found[word]) for word in ("limit", "offset", "fetch") if word in found]
        return " ".join(parts)

    def _condition(self, asked: exp.Select, made: exp.Expr, span: Span, names: Names) -> str:
        try:
            inner = (span[0] + 1, span[1])
            return self._spliced(inner, self._edits(asked.args["having"].this, made.this, inner, names))
        except NoSpan:
            return printed(made.this)

    def _clause(self, asked: exp.Expr, made: exp.Expr, span: Span, names: Names) -> str:
        try:
            return self._spliced(span, self._edits(asked, made, span, names))
        except NoSpan:
            return printed(made).strip()

    def _columns(self, asked: exp.Select, made: exp.Select, span: Span, names: Names) -> str:
        start, head = self._head(asked, made, span, names)
        spans = listed(self.text, (start, span[1]))
        if len(spans) > len(asked.expressions):
            raise NoSpan
        items = [
            self._column(one, other, place, names)
            for one, other, place in zip(asked.expressions, made.expressions, spans, strict=False)
        ]
        items += [printed(each) for each in made.expressions[len(spans) :]]
        return f"{head} {', '.join(items)}"

    def _head(self, asked: exp.Select, made: exp.Select, span: Span, names: Names) -> tuple[int, str]:
        """SELECT, perhaps with DISTINCT [ON (...)], and where the list begins."""
        at = span[0] + 1
        if self.text.tokens[at].is_word("all"):
            at += 1
        elif self.text.tokens[at].is_word("distinct"):
            at += 1
            if self.text.tokens[at].is_word("on"):
                at = self.text.closing(at + 1) + 1
        head = (span[0], at)
        edits = self._lists(asked.args.get("distinct"), made.args.get("distinct"), head, names)
        return at, self._spliced(head, edits)

    def _column(self, asked: exp.Expr, made: exp.Expr, span: Span, names: Names) -> str:
        inner = asked.this if isinstance(asked, exp.Alias) else asked
        try:
            edits = self._edits(inner, made.this, span, names)
        except NoSpan:
            return printed(made)
        text = self._spliced(span, edits)
        if isinstance(asked, exp.Alias) or not edits:
            return text
        return f"{text} AS {exp.to_identifier(output_name(asked), quoted=True).sql('postgres')}"

    # --- differences -----------------------------------------------------------------------------------------------

    def _lists(self, asked: object, made: object, span: Span, names: Names) -> list[Edit]:
        if isinstance(asked, list) and isinstance(made, list):
            if len(asked) != len(made):
                raise NoSpan
            return [e for one, other in zip(asked, made, strict=True) for e in self._lists(one, other, span, names)]
        if isinstance(asked, exp.Expr) and isinstance(made, exp.Expr):
            return self._edits(asked, made, span, names)
        if (asked or None) != (made or None):
            raise NoSpan
        return []

    def _edits(self, asked: exp.Expr, made: exp.Expr, span: Span, names: Names) -> list[Edit]:
        """What changes in the text of an expression. Raises NoSpan."""
        if asked == made and not _has_query(asked):
            return []
        if isinstance(asked, exp.Query | exp.Subquery) and isinstance(made, exp.Query | exp.Subquery):
            return self._inner_query(asked, made, span, names)
        if type(asked) is type(made) and not isinstance(asked, exp.Column):
            try:
                return self._children(asked, made, span, names)
            except NoSpan:
                pass
        return [(self.text.find(asked, span), as_part(made))]

    def _children(self, asked: exp.Expr, made: exp.Expr, span: Span, names: Names) -> list[Edit]:
        if isinstance(asked, exp.Anonymous) and str(asked.this).lower() != str(made.this).lower():
            raise NoSpan
        edits: list[Edit] = []
        for key in dict.fromkeys((*asked.args, *made.args)):
            edits += self._lists(asked.args.get(key), made.args.get(key), span, names)
        return edits

    def _inner_query(self, asked: exp.Query, made: exp.Query, span: Span, names: Names) -> list[Edit]:
        place = self.text.find(asked, span, as_expression if isinstance(asked, exp.Subquery) else as_query)
        if isinstance(asked, exp.Subquery):
            inner: exp.Query = made.this if isinstance(made, exp.Subquery) else made
            end = self.text.closing(place[0])
            return [((place[0] + 1, end), self.query(asked.this, inner, (place[0] + 1, end), names))]
        return [(place, self.query(asked, made, place, names))]

    def _spliced(self, span: Span, edits: list[Edit]) -> str:
        """The text of a span with its edits, which must not overlap."""
        pieces: list[str] = []
        at = self.text.tokens[span[0]].start
        for (start, end), new in sorted(edits):
            begins = self.text.tokens[start].start
            if begins < at:
                raise NoSpan
            pieces += (self.text.text[at:begins], new)
            at = self.text.tokens[end - 1].end
        return "".join((*pieces, self.text.text[at : self.text.tokens[span[1] - 1].end]))


def _is_at(asked: exp.Table, place: TableName) -> bool:
    return name_of(asked.this) == place.name and name_of(asked.args.get("db")) in ("", place.schema)


def _has_query(node: exp.Expr) -> bool:
    return node.find(exp.Query) is not None


def _items(asked: exp.Select, made: exp.Select) -> list[tuple[exp.Expr, exp.Expr]]:
    if asked.args.get("from_") is None:
        return []
    if made.args.get("from_") is None:
        raise NoSpan
    joins = zip(asked.args.get("joins") or [], made.args.get("joins") or [], strict=True)
    return [(asked.args["from_"].this, made.args["from_"].this), *((a.this, b.this) for a, b in joins)]
