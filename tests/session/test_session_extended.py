"""Extended queries: statements, portals, formats, row limits, skipping to Sync; cursors; COPY."""

from __future__ import annotations

import struct

import pytest
from session_fakes import Client, words

from dpsql.pgwire import messages as m


def bind_and_run(client: Client, text: str, max_rows: int = 0) -> list[str]:
    return words(client.send(m.Parse("", text), m.Bind("", ""), m.Describe("P", ""), m.Execute("", max_rows), m.Sync()))


def test_whole_cycle() -> None:
    assert bind_and_run(Client(), "SELECT 1 FROM t") == [
        "ParseComplete",
        "BindComplete",
        "fields 2",
        *["row"] * 7,
        "notice",
        "'SELECT 7'",
        "ready I",
    ]


def test_describe_and_bind_run_nothing() -> None:
    client = Client()
    client.send(m.Parse("s", "SELECT $1"), m.Describe("S", "s"), m.Bind("", "s", (), (b"x",)), m.Describe("P", ""))
    assert not client.engine.calls


def test_parameters_are_described_and_decoded() -> None:
    client = Client()
    replies = client.send(m.Parse("s", "SELECT $1, $2 FROM t", (23, 0)), m.Describe("S", "s"), m.Sync())
    assert m.ParameterDescription((23, 25)) in replies
    client.send(m.Bind("", "s", (1, 0), (struct.pack("!i", 42), b"x")), m.Execute(""), m.Sync())
    client.send(m.Bind("", "s", (), (None, None)), m.Execute(""), m.Sync())
    values = [tuple(value for _, value in parameters) for _, _, parameters in client.engine.calls]
    assert values == [(42, "x"), (None, None)]


def test_binary_results() -> None:
    client = Client()
    replies = client.send(
        m.Parse("", "SELECT 1 FROM t"), m.Bind("", "", (), (), (0, 1)), m.Describe("P", ""), m.Execute("")
    )
    row = next(reply for reply in replies if isinstance(reply, m.DataRow))
    assert row.values == (b"city1", struct.pack("!q", 1))
    fields = next(reply.fields for reply in replies if isinstance(reply, m.RowDescription))
    assert [field.format for field in fields] == [0, 1]


@pytest.mark.parametrize(
    ("bind", "sqlstate"),
    [
        (m.Bind("", "s", (), ()), "08P01"),
        (m.Bind("", "s", (), (b"1", b"2")), "08P01"),
        (m.Bind("", "s", (0, 0), (b"1",)), "08P01"),
        (m.Bind("", "s", (), (b"1",), (0, 0, 0)), "08P01"),
        (m.Bind("", "s", (), (b"x",)), "22P02"),
        (m.Bind("", "s", (1,), (b"123",)), "22P03"),
        (m.Bind("", "t"), "26000"),
    ],
)
def test_bad_binds(bind: m.Bind, sqlstate: str) -> None:
    client = Client()
    client.send(m.Parse("s", "SELECT $1 FROM t", (23,)), m.Sync())
    assert words(client.send(bind, m.Execute(""), m.Sync())) == [f"error {sqlstate}", "ready I"]


def test_row_limits_give_all_rows_once_for_one_call() -> None:
    client = Client()
    client.send(m.Query("BEGIN"), m.Parse("", "SELECT 1 FROM t"), m.Bind("p", ""))
    replies = []
    for _ in range(5):
        replies.append(words(client.send(m.Execute("p", 3), m.Sync())))
    assert replies == [
        ["row", "row", "row", "notice", "PortalSuspended", "ready T"],
        ["row", "row", "row", "PortalSuspended", "ready T"],
        ["row", "'SELECT 1'", "ready T"],
        ["'SELECT 0'", "ready T"],
        ["'SELECT 0'", "ready T"],
    ]
    assert len(client.engine.calls) == 1


def test_a_limit_of_exactly_all_rows_suspends_as_postgres_does() -> None:
    client = Client()
    client.send(m.Parse("", "SELECT 1 FROM t"), m.Bind("", ""))
    assert words(client.send(m.Execute("", 7), m.Flush()))[-1] == "PortalSuspended"
    assert words(client.send(m.Execute("", 7), m.Flush())) == ["'SELECT 0'"]


def test_portals_end_with_the_transaction() -> None:
    client = Client()
    client.send(m.Parse("s", "SELECT 1 FROM t"), m.Bind("p", "s"), m.Sync())
    assert words(client.send(m.Execute("p"), m.Sync())) == ["error 34000", "ready I"]
    client.send(m.Query("BEGIN"), m.Bind("p", "s"), m.Sync())
    assert words(client.send(m.Describe("P", "p"), m.Flush())) == ["fields 2"]
    client.send(m.Query("COMMIT"))
    assert words(client.send(m.Describe("P", "p"), m.Sync())) == ["error 34000", "ready I"]


def test_after_an_error_all_is_skipped_until_sync() -> None:
    client = Client()
    events: list[m.SessionMessage] = [
        m.Parse("", "SELECT missing FROM t"),
        m.Bind("", ""),
        m.Execute(""),
        m.Flush(),
        m.Parse("", "SELECT 1 FROM t"),
        m.Sync(),
    ]
    assert words(client.send(*events)) == ["error 42P01", "ready I"]
    assert bind_and_run(client, "SELECT 1 FROM t")[-1] == "ready I"


def test_a_thousand_executes_with_an_error_in_the_middle() -> None:
    client = Client()
    client.send(m.Query("SET dpsql.notices = off"), m.Parse("s", "SHOW dpsql.mechanism"))
    good: list[m.SessionMessage] = [m.Bind("", "s"), m.Execute("")]
    events: list[m.SessionMessage] = [*good * 500, m.Bind("", "nosuch"), *good * 500, m.Sync()]
    replies = words(client.send(*events))
    assert replies.count("'SHOW'") == 500
    assert replies[-2:] == ["error 26000", "ready I"]


def test_failed_transaction_in_the_extended_protocol() -> None:
    client = Client()
    client.send(m.Query("BEGIN"), m.Parse("s", "SELECT 1 FROM t"), m.Parse("c", "COMMIT"), m.Sync())
    client.send(m.Query("SELECT missing FROM t"))
    assert words(client.send(m.Parse("", "SELECT 1 FROM t"), m.Sync())) == ["error 25P02", "ready E"]
    assert words(client.send(m.Bind("", "s"), m.Sync())) == ["error 25P02", "ready E"]
    assert words(client.send(m.Bind("", "c"), m.Execute(""), m.Sync())) == ["BindComplete", "'ROLLBACK'", "ready I"]


def test_statement_names() -> None:
    client = Client()
    assert (
        words(client.send(m.Parse("s", "SELECT 1 FROM t"), m.Parse("s", "SELECT 1 FROM t"), m.Sync()))[1]
        == "error 42P05"
    )
    client.send(m.Close("S", "s"), m.Close("S", "nosuch"), m.Close("P", "nosuch"), m.Flush())
    assert words(client.send(m.Parse("s", "SELECT 1 FROM t"))) == ["ParseComplete"]
    assert words(client.send(m.Parse("", "SELECT 1 FROM t; SELECT 2 FROM t"), m.Sync())) == ["error 42601", "ready I"]
    assert words(client.send(m.Parse("", ""), m.Bind("", ""), m.Describe("P", ""), m.Execute(""), m.Flush())) == [
        "ParseComplete",
        "BindComplete",
        "NoData",
        "EmptyQueryResponse",
    ]


def test_commands_without_rows() -> None:
    client = Client()
    assert bind_and_run(client, "BEGIN") == ["ParseComplete", "BindComplete", "NoData", "'BEGIN'", "ready T"]
    assert bind_and_run(client, "SAVEPOINT s")[-2:] == ["'SAVEPOINT'", "ready T"]
    assert bind_and_run(client, "SHOW timezone")[2:] == ["fields 1", "row", "'SHOW'", "ready T"]
    assert bind_and_run(client, "SHOW dpsql.budget")[2:] == ["fields 2", "row", "'SHOW'", "ready T"]
    assert bind_and_run(client, "EXPLAIN SELECT 1 FROM t")[2:] == ["fields 1", "row", "'EXPLAIN'", "ready T"]
    assert bind_and_run(client, "COMMIT")[-1] == "ready I"
    assert bind_and_run(client, "DROP TABLE t") == ["error 42501", "ready I"]


def test_too_many_statements() -> None:
    replies = words(Client().send(*[m.Parse(f"s{n}", "SELECT 1 FROM t") for n in range(510)], m.Sync()))
    assert replies[-2:] == ["error 54000", "ready I"]


def test_what_fails_around_an_answer_fails_before_the_debit() -> None:
    client = Client()
    for text in (
        "COPY (SELECT 1 FROM t) TO STDOUT (DELIMITER 'ab')",
        "COPY (SELECT 1 FROM t) TO STDOUT (FORMAT csv, QUOTE 'ab')",
        "DECLARE c CURSOR FOR SELECT 1 FROM t",
        "BEGIN; DECLARE c CURSOR FOR SELECT 1; DECLARE c CURSOR FOR SELECT 1 FROM t",
    ):
        assert any(reply.startswith("error") for reply in client.query(text)), text
        client.query("ROLLBACK")
    assert client.engine.calls == []


def test_nothing_is_asked_behind_a_statement_that_failed() -> None:
    client = Client()
    events: list[m.SessionMessage] = [m.Parse("", "SELECT 1/0"), m.Bind("", ""), m.Execute("")]
    events += [m.Parse("", "SELECT 1 FROM t"), m.Bind("", ""), m.Execute(""), m.Sync()]
    assert words(client.send(*events))[-2:] == ["error 22012", "ready I"]
    assert client.query("SELECT 1/0; SELECT 1 FROM t")[-2:] == ["error 22012", "ready I"]
    assert client.query("BEGIN; SELECT 1/0")[-1] == "ready E"
    assert client.query("SELECT 1 FROM t") == ["error 25P02", "ready E"]
    assert client.engine.calls == []


def test_a_value_that_set_config_gave_is_looked_at_before_anything_is_asked() -> None:
    client = Client()
    client.query("SELECT set_config('dpsql.epsilon', 'NaN', false)")
    assert client.query("SELECT 1 FROM t") == ["error 22023", "ready I"]
    assert client.engine.calls == []
    client.query("SELECT set_config('dpsql.epsilon', '0.5', false)")
    client.query("SELECT 1 FROM t")
    assert str(client.engine.calls[0][1].epsilon) == "0.5"


def test_a_stand_in_is_never_run() -> None:
    """A statement of ours that is executed behind our back fails, rather than give a row of nothing."""
    client = Client()
    client.query("PREPARE p AS SELECT 1 FROM t")
    assert client.query("DO $$ BEGIN EXECUTE 'EXECUTE p'; END $$")[0] == "error 42501"
    client.session._statements.clear()
    assert client.query("EXECUTE p")[-2:] == ["error 0A000", "ready I"]


def test_function_call_is_refused_in_step() -> None:
    assert words(Client().send(m.FunctionCall(1))) == ["error 0A000", "ready I"]


def test_unreadable_messages_fail_like_what_they_stand_for() -> None:
    client = Client()
    assert words(client.send(m.Unreadable(True, "54001", "too long"))) == ["error 54001", "ready I"]
    unreadable = m.Unreadable(False, "22021", "not UTF-8")
    assert words(client.send(unreadable, m.Parse("", "SELECT 1 FROM t"), m.Sync())) == ["error 22021", "ready I"]


# --- SQL statements and cursors ------------------------------------------------------------------------------------


def test_prepare_and_execute() -> None:
    client = Client()
    assert client.query("PREPARE p (int, text) AS SELECT $1, $2 FROM t") == ["'PREPARE'", "ready I"]
    assert client.query("EXECUTE p (-7, 'x')")[-2:] == ["'SELECT 7'", "ready I"]
    assert [value for _, value in client.engine.calls[0][2]] == [-7, "x"]
    assert client.query("EXECUTE p (1)") == ["error 42601", "ready I"]
    assert client.query("EXECUTE p ('x', 'y')") == ["error 22P02", "ready I"]
    assert client.query("DEALLOCATE p; EXECUTE p") == ["'DEALLOCATE'", "error 26000", "ready I"]
    assert client.query("PREPARE d AS DELETE FROM t; EXECUTE d")[-2:] == ["error 42501", "ready I"]
    assert client.query("PREPARE q AS SELECT * FROM missing, t") == ["error 42P01", "ready I"]


def test_execute_cannot_call_itself() -> None:
    client = Client()
    client.send(m.Parse("b", "SELECT 1 FROM t"), m.Parse("a", "EXECUTE b"), m.Close("S", "b"), m.Sync())
    assert words(client.send(m.Parse("b", "EXECUTE a"), m.Sync())) == ["error 0A000", "ready I"]


def test_cursor_rows_come_from_one_answer() -> None:
    client = Client()
    client.query("SET dpsql.notices = off; BEGIN")
    assert client.query("DECLARE c NO SCROLL CURSOR FOR SELECT 1 FROM t") == ["'DECLARE CURSOR'", "ready T"]
    assert client.query("FETCH FORWARD 3 FROM c") == ["fields 2", "row", "row", "row", "'FETCH 3'", "ready T"]
    assert client.query("MOVE 2 IN c") == ["'MOVE 2'", "ready T"]
    assert client.rows("FETCH c") == [(b"city6", b"6")]
    assert client.query("FETCH ALL FROM c") == ["fields 2", "row", "'FETCH 1'", "ready T"]
    assert client.query("FETCH NEXT FROM c") == ["fields 2", "'FETCH 0'", "ready T"]
    assert client.query("FETCH PRIOR FROM c") == ["error 55000", "ready E"]
    client.query("ROLLBACK")
    assert client.query("FETCH c") == ["error 34000", "ready I"]
    assert len(client.engine.calls) == 1


def test_scrolling() -> None:
    client = Client()
    client.query("BEGIN; DECLARE c SCROLL CURSOR FOR SELECT 1 FROM t")
    fetched = [
        [row[1] for row in client.rows(f"FETCH {direction} FROM c")]
        for direction in ("LAST", "PRIOR", "ABSOLUTE 2", "RELATIVE 2", "BACKWARD ALL", "FIRST", "0", "ABSOLUTE -7")
    ]
    assert fetched == [[b"7"], [b"6"], [b"2"], [b"4"], [b"3", b"2", b"1"], [b"1"], [b"1"], [b"1"]]


def test_cursor_lifetimes() -> None:
    client = Client()
    assert client.query("DECLARE c CURSOR FOR SELECT 1 FROM t") == ["error 25P01", "ready I"]
    client.query("DECLARE c CURSOR WITH HOLD FOR SELECT 1 FROM t")
    assert client.query("BEGIN; FETCH 2 FROM c; ROLLBACK; FETCH 1 FROM c")[-2:] == ["'FETCH 1'", "ready I"]
    assert client.query("CLOSE c; FETCH c") == ["'CLOSE CURSOR'", "error 34000", "ready I"]
    client.query("BEGIN; DECLARE d CURSOR WITH HOLD FOR SELECT 1 FROM t; ROLLBACK")
    assert client.query("FETCH d") == ["error 34000", "ready I"]
    replies = client.query('BEGIN;declare "C" cursor with hold for select 1 from t;fetch 10 in "C"')
    assert replies[-2:] == ["'FETCH 7'", "ready T"]
    assert client.query('close "C";commit') == ["'CLOSE CURSOR'", "'COMMIT'", "ready I"]


def test_a_cursor_is_a_portal() -> None:
    client = Client()
    client.query("BEGIN; DECLARE srv CURSOR FOR SELECT 1 FROM t")
    assert words(client.send(m.Describe("P", "srv"), m.Sync())) == ["fields 2", "ready T"]
    assert bind_and_run(client, "FETCH FORWARD 2 FROM srv")[2:] == ["fields 2", "row", "row", "'FETCH 2'", "ready T"]
    assert client.query("DECLARE srv CURSOR FOR SELECT 1 FROM t") == ["error 42P03", "ready E"]


def test_a_refused_cursor_does_not_exist() -> None:
    client = Client()
    client.query("BEGIN; SAVEPOINT s")
    assert client.query("DECLARE c CURSOR FOR SELECT broken FROM t") == ["error 58000", "ready E"]
    assert client.query("ROLLBACK TO s; FETCH c")[-2:] == ["error 34000", "ready E"]


# --- COPY ----------------------------------------------------------------------------------------------------------


def copied(client: Client, text: str) -> bytes:
    return b"".join(reply.data for reply in client.send(m.Query(text)) if isinstance(reply, m.CopyData))


def test_copy_forms() -> None:
    client = Client()
    client.engine.rows = (("a\tb", 1), (None, 2), ('say "x", y', None), ("", 3))
    assert copied(client, "COPY (SELECT 1 FROM t) TO STDOUT") == b'a\\tb\t1\n\\N\t2\nsay "x", y\t\\N\n\t3\n'
    csv = copied(client, "COPY (SELECT 1 FROM t) TO STDOUT WITH (FORMAT csv, HEADER)")
    assert csv == b'city,n\na\tb,1\n,2\n"say ""x"", y",\n"",3\n'
    assert (
        copied(client, "COPY (SELECT 1 FROM t) TO STDOUT CSV DELIMITER ';' NULL AS 'nil'").splitlines()[1] == b"nil;2"
    )
    binary = copied(client, "COPY (SELECT 1 FROM t) TO STDOUT WITH BINARY")
    assert binary.startswith(b"PGCOPY\n\xff\r\n\0" + bytes(8) + struct.pack("!hi3sIq", 2, 3, b"a\tb", 8, 1)[:9])
    assert binary.endswith(b"\xff\xff")


def test_copy_messages() -> None:
    client = Client()
    assert client.query("COPY (SELECT 1 FROM t) TO STDOUT") == [
        "CopyOutResponse",
        *["CopyData"] * 7,
        "CopyDone",
        "notice",
        "'COPY 7'",
        "ready I",
    ]
    assert bind_and_run(client, "COPY (SELECT 1 FROM t) TO STDOUT (FORMAT binary)")[:4] == [
        "ParseComplete",
        "BindComplete",
        "NoData",
        "CopyOutResponse",
    ]


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("COPY t FROM STDIN", "42501"),
        ("COPY people TO '/tmp/x'", "42501"),
        ("COPY people TO PROGRAM 'x'", "42501"),
        ("COPY (DELETE FROM t) TO STDOUT", "0A000"),
        ("COPY (SELECT 1 FROM t) TO STDOUT (FORMAT parquet)", "22023"),
        ("COPY (SELECT 1 FROM t) TO STDOUT (DELIMITER 'ab')", "0A000"),
        ("COPY (SELECT 1 FROM t) TO STDOUT (FREEZE)", "22023"),
    ],
)
def test_copies_that_are_refused(text: str, sqlstate: str) -> None:
    assert Client().query(text) == [f"error {sqlstate}", "ready I"]


def test_cancel_reaches_the_running_statement() -> None:
    client = Client()
    client.query("SELECT 1 FROM t")
    client.session.cancel()
    assert client.engine.tokens[0].cancelled
    client.query("SELECT 2 FROM t")
    assert not client.engine.tokens[1].cancelled


def test_a_binary_cursor_is_fetched_in_binary() -> None:
    client = Client()
    client.query("BEGIN")
    client.query("DECLARE c BINARY CURSOR FOR SELECT 1 FROM t")
    found = client.send(m.Query("FETCH 1 FROM c"))
    described = next(reply for reply in found if isinstance(reply, m.RowDescription))
    assert {field.format for field in described.fields} == {1}
    assert next(reply for reply in found if isinstance(reply, m.DataRow)).values[1] == bytes(7) + b"\x01"


def test_rollback_to_a_savepoint_drops_later_cursors() -> None:
    client = Client()
    for text in (
        "BEGIN",
        "DECLARE early CURSOR FOR SELECT 1 FROM t",
        "SAVEPOINT s",
        "DECLARE late CURSOR FOR SELECT 1 FROM t",
    ):
        client.query(text)
    client.query("ROLLBACK TO s")
    assert client.query("FETCH 1 FROM early")[-2:] == ["'FETCH 1'", "ready T"]
    assert client.query("FETCH 1 FROM late") == ["error 34000", "ready E"]
    client.query("ROLLBACK TO s")
    assert client.query("FETCH 1 FROM early")[-1] == "ready T"
