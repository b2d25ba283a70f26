"""Golden cases: Markdown files whose headings are cases and whose fenced blocks are input and expectation.

A file starts with a policy (`yaml`); each `##` case has a statement (`sql`, perhaps after `SET dpsql...;` lines) and
what the compiler makes of it: `plan`, `duckdb`, `postgres` and `remainder`, or `refused`. `rendered` writes the whole
case anew, so that a test is a comparison of texts and rewriting is writing what was rendered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import psycopg

from dpsql.backends import Backend, open_backend
from dpsql.backends.inspect import inspect
from dpsql.compiler import Compiled, Terms, compile_statement
from dpsql.compiler.emit import DIALECTS, emit
from dpsql.compiler.explain import as_text
from dpsql.errors import Rejected
from dpsql.policy.load import parse
from dpsql.policy.schema import Schema

HERE = Path(__file__).parent
NOW = datetime(2020, 2, 14, 10)
"""What the clock shows."""
FOLDER = TemporaryDirectory()
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
_SET = re.compile(r"SET dpsql\.(\w+) = (\S+);\s*")


@dataclass(frozen=True, slots=True)
class Case:
    """`text` is the case as it stands in the file, heading and prose included."""

    file: str
    title: str
    policy: str
    text: str

    @property
    def sql(self) -> str:
        return _blocks(self.text)["sql"].rstrip("\n")


@dataclass(frozen=True, slots=True)
class File:
    """A file: what stands before the first case, and the cases."""

    path: Path
    head: str
    cases: tuple[Case, ...]


def files() -> list[File]:
    return [_read(path) for path in sorted(HERE.glob("*.md"))]


def _read(path: Path) -> File:
    head, *parts = re.split(r"^(?=## )", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    policy = _blocks(head)["yaml"]
    return File(path, head, tuple(Case(path.stem, p.splitlines()[0][3:], policy, p) for p in parts))


def _blocks(text: str) -> dict[str, str]:
    """Fenced blocks by their language."""
    return {found[1]: found[2] for found in _BLOCK.finditer(text)}


def rendered(case: Case, schema: Schema) -> str:
    """The case with its expectations as the compiler has them now."""
    before = case.text[: case.text.index("```sql")].rstrip("\n")
    blocks = {"sql": case.sql, **_outcome(case, schema)}
    return "\n".join((before, "", *(f"```{name}\n{text}\n```\n" for name, text in blocks.items()), ""))


def _outcome(case: Case, schema: Schema) -> dict[str, str]:
    try:
        compiled = compiled_case(case, schema)
        accounting = schema.policy.privacy.accounting
        return {
            "plan": "\n".join(as_text(compiled, str(terms(case)[0].epsilon), accounting)),
            **{name: "\n".join(backend_sql(compiled, name)) for name in DIALECTS if list(backend_sql(compiled, name))},
            "remainder": compiled.remainder.sql,
        }
    except Rejected as error:
        return {"refused": "\n".join(_refusal(error, terms(case)[1]))}


def _refusal(error: Rejected, statement: str) -> Iterator[str]:
    yield f"{error.sqlstate}: {error.message}"
    if error.position is not None:
        at = error.position - 1
        yield f"at {error.position}: {statement[at : at + 20].splitlines()[0]}"
    if error.detail is not None:
        yield f"detail: {error.detail}"
    if error.hint is not None:
        yield f"hint: {error.hint}"


def backend_sql(compiled: Compiled, dialect: str) -> Iterator[str]:
    for release in compiled.releases:
        if release.has_cells:
            yield f"-- {release.id}\n{emit(release, DIALECTS[dialect], {})}"


def terms(case: Case) -> tuple[Terms, str]:
    """The session's terms from the SET lines, and the statement after them."""
    made, text = Terms(Decimal(1), Decimal("1e-7")), case.sql
    while found := _SET.match(text):
        name, value = found[1], found[2]
        made = replace(
            made, **{name: {"epsilon": Decimal, "max_groups": int, "max_rows_per_group": int}.get(name, str)(value)}
        )
        text = text[found.end() :]
    return made, text


def compiled_case(case: Case, schema: Schema) -> Compiled:
    asked, text = terms(case)
    return compile_statement(text, schema, asked, now=NOW, texts=True)


@cache
def duckdb_backend() -> Backend:
    """The golden data in DuckDB, open until the run ends."""
    path = Path(FOLDER.name) / "golden.duckdb"
    with closing(duckdb.connect(str(path))) as connection:
        connection.execute(HERE.joinpath("data.sql").read_text(encoding="utf-8"))
    return open_backend(f"duckdb:{path}", "UTC")


@contextmanager
def postgres_backend(uri: str) -> Iterator[Backend]:
    """The same data in an empty database of Postgres."""
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS public CASCADE; CREATE SCHEMA public")
        connection.execute(HERE.joinpath("data.sql").read_text(encoding="utf-8").encode())
    with closing(open_backend(uri, "UTC")) as backend:
        yield backend


_SCHEMAS: dict[tuple[str, str], Schema] = {}


def schema_of(policy: str, backend: Backend) -> Schema:
    """The policy compared with the backend, once a run."""
    key = (policy, backend.dialect)
    if key not in _SCHEMAS:
        _SCHEMAS[key] = inspect(backend, parse(policy, Path("golden.yaml")))
    return _SCHEMAS[key]


def rewrite() -> list[str]:
    """Writes every file anew; the names of those that changed."""
    changed = []
    for file in files():
        text = file.head + "".join(rendered(case, schema_of(case.policy, duckdb_backend())) for case in file.cases)
        text = text.rstrip("\n") + "\n"
        if text != file.path.read_text(encoding="utf-8"):
            file.path.write_text(text, encoding="utf-8")
            changed.append(file.path.name)
    return changed
