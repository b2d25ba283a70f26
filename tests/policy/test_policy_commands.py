"""`dpsql check` and `dpsql password`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner, Result

from dpsql.cli import main
from dpsql.commands.check import check
from dpsql.commands.password import password
from dpsql.errors import Rejected
from dpsql.pgwire.auth import make_verifier, parse_verifier
from dpsql.policy.problems import PolicyError

CLUB = """
dpsql: 1
dataset: club
backend: duckdb:club.duckdb
privacy: {unit: person, units: 1000, max_groups: 1, max_rows_per_group: 1, budget: {epsilon: 1, delta: 1e-9}}
tables:
  people:
    unit: id
    columns:
      tier: {type: text, values: [gold]}
      note: {type: text}
      age: {type: integer, lower: 0, upper: 100}
      vip: {type: boolean}
"""
POLICY = Path(__file__).parents[2] / "policies" / "nyc-flights.yaml"


def _check(*arguments: str) -> Result:
    return CliRunner().invoke(check, arguments)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory, flights_file: Path) -> Path:
    folder = tmp_path_factory.mktemp("check")
    (folder / "flights.duckdb").symlink_to(flights_file)
    return Path(shutil.copy(POLICY, folder))


def test_check_says_in_words_what_is_promised(demo: Path) -> None:
    result = _check(str(demo))
    assert result.exit_code == 0, result.output
    for words in (
        "The privacy unit is one aircraft; there are about 4,000.",
        "Neighbouring databases differ in all rows of one aircraft, over all private tables.",
        "(epsilon 20, delta 1e-6)",
        "e^20 = 485,165,195 times",
        "3 groups of 375 rows",
        "each user: epsilon 15, delta 1e-7, once for all; e^15 = 3,269,017",
        "tables answered exactly and free: airlines, airports, weather",
        "dep_delay double precision, from -30.0 to 180.0, or NULL",
        "planes: 8 columns, key tailnum verified, one row a unit verified",
        "airports: public, 1,458 rows",
    ):
        assert words in result.stdout
    assert "warning: the dataset's budget has epsilon 20, above 10" in result.stderr
    assert "SCRAM" not in result.output


def test_check_warns_of_rows_with_null_that_no_group_has(tmp_path: Path) -> None:
    path, policy = tmp_path / "club.duckdb", tmp_path / "club.yaml"
    with duckdb.connect(str(path)) as connection:
        columns = "id integer PRIMARY KEY, tier varchar, note varchar, age integer NOT NULL, vip boolean"
        connection.execute(f"CREATE TABLE people ({columns})")
    policy.write_text(CLUB)
    result = _check(str(policy))
    assert result.exit_code == 0, result.output
    assert "warning: people: tier, vip: the backend allows NULL, and rows with NULL are in no group" in result.stderr
    policy.write_text(
        CLUB.replace("[gold]}", "[gold], nullable: true}").replace("boolean}", "boolean, nullable: true}")
    )
    assert "NULL" not in _check(str(policy)).stderr


def test_check_offline_needs_no_backend() -> None:
    result = _check("--offline", str(POLICY))
    assert result.exit_code == 0
    assert "was not compared with the backend" in result.stdout


def test_check_refuses_what_does_not_fit_the_backend(demo: Path) -> None:
    wrong = demo.with_name("wrong.yaml")
    wrong.write_text(demo.read_text().replace("dest: {type: text}", "dst: {type: text}"))
    result = _check(str(wrong))
    assert isinstance(result.exception, PolicyError)
    assert "no column of flights in the backend; did you mean `dest`?" in str(result.exception)


def test_check_prints_the_schema() -> None:
    assert json.loads(_check("--schema").stdout)["title"] == "dpsql policy"


def test_check_without_a_policy_is_wrong_usage() -> None:
    assert _check().exit_code == 2


def test_the_demo_password_fits_the_demo_policy() -> None:
    text = POLICY.read_text()
    verifier = parse_verifier(text.split('password: "')[1].split('"')[0])
    assert make_verifier("alice-demo", verifier.salt) == str(verifier)


@pytest.mark.parametrize("ending", ["\n", "\r\n", ""])
def test_password_prints_a_verifier_of_the_line(ending: str) -> None:
    result = CliRunner().invoke(password, ["--stdin"], input=f"pass word{ending}")
    verifier = parse_verifier(result.stdout.strip())
    assert make_verifier("pass word", verifier.salt) == str(verifier)


def test_password_asks_twice_and_never_echoes() -> None:
    result = CliRunner().invoke(password, [], input="secret\nsecret\n")
    assert parse_verifier(result.stdout.strip()).iterations == 4096
    assert "secret" not in result.output
    assert CliRunner().invoke(password, [], input="secret\nother\n").exit_code == 1


@pytest.mark.parametrize("text", ["\n", "", "a\0b\n", "x" * 2000])
def test_password_refuses_what_no_client_could_send(text: str) -> None:
    result = CliRunner().invoke(password, ["--stdin"], input=text)
    assert isinstance(result.exception, Rejected)
    assert result.stdout == ""


def test_a_file_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whichever command it is: its name and the reason, and no traceback."""
    (tmp_path / "file").touch()
    monkeypatch.setattr("sys.argv", ["dpsql", "demo", "--prepare", "--folder", str(tmp_path / "file" / "folder")])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 1
    told = capsys.readouterr().err
    assert "Not a directory\nHINT: Check the path" in told
