"""`dpsql init` on real sources: DuckDB, Parquet, Postgres; and the whole way to a first answer."""

from __future__ import annotations

from pathlib import Path

import duckdb
import psycopg
import pytest
from click.testing import CliRunner, Result

from dpsql.cli import dpsql
from dpsql.commands.init import init
from dpsql.errors import Rejected
from dpsql.policy.load import load
from dpsql.policy.problems import PolicyError

CLINIC = """
CREATE TABLE patients (patient_id integer PRIMARY KEY, full_name varchar, born date, sex varchar, insured boolean);
CREATE TABLE wards (ward varchar PRIMARY KEY, beds integer);
CREATE TABLE visits (visit_id bigint PRIMARY KEY, patient_id integer NOT NULL REFERENCES patients (patient_id),
    ward varchar REFERENCES wards (ward), admitted timestamp, cost decimal(8, 2));
CREATE TABLE diagnoses (visit_id bigint REFERENCES visits (visit_id), code varchar, severity integer);
CREATE VIEW expensive AS SELECT * FROM visits WHERE cost > 1000;
"""
ROWS = """
INSERT INTO wards VALUES ('A', 10), ('B', 20);
INSERT INTO patients SELECT i, 'Name-of-' || i, date '1980-01-01' + (i % 900)::integer, 'f', true
    FROM generate_series(1, 500) AS t (i);
INSERT INTO visits SELECT i, 1 + i % 500, 'A', timestamp '2024-02-03 04:05:06', 777.77
    FROM generate_series(1, 2000) AS t (i);
INSERT INTO diagnoses SELECT 1 + i % 2000, 'secret-code', 3 FROM generate_series(1, 4000) AS t (i);
"""
SECRETS = ("Name-of-", "secret-code", "777", "1980", "2024-02")


def _init(*arguments: str | Path) -> Result:
    return CliRunner().invoke(init, [str(argument) for argument in arguments])


def finish(policy: Path) -> None:
    """Decides all that a draft of the clinic leaves open."""
    text = policy.read_text()
    for key, answer in (("units", "500"), ("max_groups", "4"), ("max_rows_per_group", "4"), ("epsilon", "3")):
        text = text.replace(f"{key}: DECIDE", f"{key}: {answer}")
    text = text.replace("date, lower: DECIDE, upper: DECIDE", "date, lower: 1920-01-01, upper: 2025-01-01")
    text = text.replace("timestamp, lower: DECIDE, upper: DECIDE", "timestamp, lower: 2024-01-01, upper: 2025-01-01")
    text = text.replace("lower: DECIDE, upper: DECIDE", "lower: 0, upper: 1000")
    text = text.replace("values: DECIDE", "values: [f, m]").replace(", password: DECIDE", "")
    policy.write_text(text.replace("  # wards: {public", "  wards: {public"))


@pytest.fixture
def clinic(tmp_path: Path) -> Path:
    path = tmp_path / "clinic.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(CLINIC + ROWS)
    return path


def test_from_a_duckdb_file_to_the_first_answer(clinic: Path, tmp_path: Path) -> None:
    policy = tmp_path / "clinic.yaml"
    drafted = _init(clinic, "-o", policy)
    assert drafted.exit_code == 0, drafted.output
    assert "protects one patient (patients.patient_id)" in drafted.stderr
    assert f"Next: dpsql check {policy}" in drafted.stderr
    assert not any(secret in policy.read_text() for secret in SECRETS)

    runner = CliRunner()
    asked = runner.invoke(dpsql, ["check", str(policy)])
    assert isinstance(asked.exception, PolicyError)
    assert f"then run: dpsql check {policy}" in str(asked.exception.hint)
    finish(policy)
    checked = runner.invoke(dpsql, ["check", str(policy)])
    assert checked.exit_code == 0, checked.exception
    assert f"Next: dpsql ledger init {policy}" in checked.stderr
    made = runner.invoke(dpsql, ["ledger", "init", str(policy)])
    assert f"Next: dpsql serve {policy}" in made.stderr
    assert f"Next: dpsql serve {policy}" in runner.invoke(dpsql, ["check", str(policy)]).stderr
    sql = "SELECT w.beds, count(*) FROM visits v JOIN wards w ON w.ward = v.ward GROUP BY 1"
    answered = runner.invoke(dpsql, ["query", str(policy), "--user", "alice", "--format", "csv", sql])
    assert answered.exit_code == 0, answered.exception
    assert answered.stdout.startswith("beds,count\n10,")


def test_a_view_is_left_out_with_the_reason(clinic: Path) -> None:
    assert "# expensive is left out: it is a view." in _init(clinic).stdout


def test_it_never_overwrites(clinic: Path, tmp_path: Path) -> None:
    policy = tmp_path / "mine.yaml"
    policy.write_text("mine")
    refused = _init(clinic, "-o", policy)
    assert isinstance(refused.exception, Rejected)
    assert policy.read_text() == "mine"
    assert _init(clinic, "-o", policy, "--force").exit_code == 0


def test_a_unit_may_be_named(clinic: Path) -> None:
    assert "  unit: visit\n" in _init(clinic, "--unit", "visits.visit_id").stdout
    unknown = _init(clinic, "--unit", "visits.nobody")
    assert isinstance(unknown.exception, Rejected)
    assert "patients.patient_id" in str(unknown.exception.hint)


@pytest.mark.parametrize("source", ["nothing.duckdb", "nothing.parquet", "mysql://nothing"])
def test_a_source_that_does_not_exist_is_refused(source: str, tmp_path: Path) -> None:
    assert isinstance(_init(source if "://" in source else tmp_path / source).exception, Rejected)


def test_parquet_is_copied_into_a_duckdb_file(tmp_path: Path) -> None:
    folder = tmp_path / "sales"
    (folder / "events").mkdir(parents=True)
    with duckdb.connect() as connection:
        users = "SELECT i AS id, i::utinyint AS small, 'secret' AS note FROM range(100) AS t (i)"
        connection.execute(f"COPY ({users}) TO '{folder}/users.parquet'")
        for part in (1, 2):
            events = "SELECT i AS user_id, i::ubigint AS big FROM range(100) AS t (i)"
            connection.execute(f"COPY ({events}) TO '{folder}/events/{part}.parquet'")
    told = _init(folder)
    assert isinstance(told.exception, Rejected)
    assert f"dpsql init {folder} --into sales.duckdb" in str(told.exception.hint)
    into, policy = tmp_path / "sales.duckdb", tmp_path / "sales.yaml"
    done = _init(folder, "--into", into, "-o", policy)
    assert done.exit_code == 0, done.exception
    text = policy.read_text()
    assert "backend: duckdb:sales.duckdb" in text.replace('"', "")
    assert "small: {type: integer, lower: DECIDE" in text
    assert "unit: user_id" in text
    with duckdb.connect(str(into), read_only=True) as connection:
        assert connection.execute("SELECT count(*), typeof(any_value(big)) FROM events").fetchone() == (
            200,
            "DECIMAL(20,0)",
        )
    assert isinstance(_init(folder, "--into", into).exception, Rejected)


def test_from_postgres_without_the_password(postgres_uri: str, tmp_path: Path) -> None:
    name = "dpsql_init_clinic"
    with psycopg.connect(postgres_uri, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name}")
        connection.execute(f"CREATE DATABASE {name}")
    url = postgres_uri.replace(f"/{psycopg.conninfo.conninfo_to_dict(postgres_uri)['dbname']}?", f"/{name}?")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute((CLINIC + ROWS).encode())
    login, at, rest = url.removeprefix("postgresql://").rpartition("@")
    with_password = f"postgresql://{login.split(':')[0]}:hunter2{at}{rest}"
    policy = tmp_path / "clinic.yaml"
    drafted = _init(with_password, "-o", policy)
    assert drafted.exit_code == 0, drafted.exception
    text = policy.read_text()
    assert "hunter2" not in text + drafted.output
    assert "PGPASSWORD" in text
    assert "unit: {through: visits, on: {visit_id: visit_id}}" in text
    assert not any(secret in text for secret in SECRETS)
    finish(policy)
    assert load(policy).dataset == "clinic"
    runner = CliRunner()
    assert runner.invoke(dpsql, ["check", str(policy)]).exit_code == 0
