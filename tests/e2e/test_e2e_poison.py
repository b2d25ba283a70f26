"""Every accepted statement runs on rows that hold what breaks queries, without a fault and without telling of them."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from e2e.proxy import Client, Proxy, Rows, ask, client, told

AGGREGATES = (
    "SELECT COUNT(*), COUNT(age), SUM(age), AVG(age), SUM(salary), AVG(salary), SUM(score), AVG(score) FROM people",
    "SELECT SUM(score * score), SUM(score * age), SUM(age + salary), AVG(score - age) FROM people",
    "SELECT SUM(-score), SUM(abs(score)) FROM people",
    "SELECT SUM(salary * (1 - score / 100)), SUM(score / 3), SUM(age / 7), SUM(age % 7), AVG(round(score)) FROM people",
    "SELECT SUM(floor(score)), SUM(ceil(score)), SUM(coalesce(score, 5)), SUM(least(score, 7)) FROM people",
    "SELECT SUM(greatest(score, age)) FROM people",
    "SELECT SUM(CASE WHEN score > 50 THEN age END), AVG(CASE WHEN note = '(' THEN 1 ELSE 0 END) FROM people",
    "SELECT COUNT(*) FILTER (WHERE score > 50), SUM(age) FILTER (WHERE joined > '2010-01-01') FROM people",
    "SELECT COUNT(*) FROM people WHERE 1 / (age - 30) > 0",
    "SELECT COUNT(*) FROM people WHERE 1 / score > 0 OR score / 0.0 > 1",
    "SELECT COUNT(*) FROM people WHERE age % (age - 30) = 1",
    "SELECT COUNT(*) FROM people WHERE age * age * age * age > 7",
    "SELECT COUNT(*) FROM people WHERE uid + 1 > uid - 1",
    "SELECT COUNT(*) FROM people WHERE -age > 0 AND abs(age) > 3",
    "SELECT COUNT(*) FROM people WHERE joined + INTERVAL '400 years' > '2020-01-01'",
    "SELECT COUNT(*) FROM people WHERE joined - INTERVAL '400 years' < DATE '2020-01-01'",
    "SELECT COUNT(*) FROM people WHERE extract(year FROM joined) = 2020 OR date_trunc('month', joined) > '2020-01-01'",
    "SELECT COUNT(*) FROM people WHERE score BETWEEN -1e300 AND 1e300",
    "SELECT COUNT(*) FROM people WHERE score = score",
    "SELECT COUNT(*) FROM people WHERE age = 99999999999999999999",
    "SELECT COUNT(*) FROM people WHERE age = 1.5 OR salary = 0.001",
    "SELECT COUNT(*) FROM people WHERE age IN (1, 2, 9223372036854775807)",
    "SELECT COUNT(*) FROM people WHERE lower(note) = 'x'",
    "SELECT COUNT(*) FROM people WHERE note LIKE '%x%x%x%x%x%x%x%x%x%y'",
    "SELECT COUNT(*) FROM people WHERE note LIKE '%x_%x_%x_%x_%x_%x_%x_%y'",
    "SELECT COUNT(*) FROM people WHERE note ILIKE '%x_%x_%x_%x_%x_%x_%x_%y'",
    "SELECT COUNT(*) FROM people WHERE note LIKE '\\%' OR note LIKE '('",
    "SELECT COUNT(*) FROM people WHERE note || note = 'aa'",
    "SELECT COUNT(*) FROM people WHERE length(note) > 100",
    "SELECT COUNT(*) FROM people WHERE substr(note, 2, 3) = 'abc'",
    "SELECT COUNT(*) FROM people WHERE note = E'a\nb'",
    "SELECT COUNT(*) FROM people WHERE note = '''; DROP TABLE people; --' AND city IS DISTINCT FROM 'Rome'",
    "SELECT COUNT(*) FROM people WHERE CAST(age AS text) = '30'",
    "SELECT COUNT(*) FROM people WHERE CAST(score AS integer) = 30",
    "SELECT SUM(CAST(score AS integer)) FROM people",
    "SELECT SUM(CAST(salary AS double precision)) FROM people",
    "SELECT COUNT(*) FROM people WHERE CAST(salary AS bigint) > 5",
    "SELECT SUM(age) FROM people AS p(uid, salary, age)",
    "SELECT SUM(age) FROM (SELECT salary AS age FROM people) q",
    "SELECT AVG(x) FROM (SELECT score / 2 AS x FROM people WHERE age > 3) q",
    "SELECT COUNT(*) FROM people p WHERE age > (SELECT AVG(age) FROM people)",
    "SELECT COUNT(DISTINCT uid), COUNT(*) FROM visits",
    "SELECT city, COUNT(*), AVG(score) FROM people GROUP BY city",
    "SELECT note, COUNT(*) FROM people GROUP BY note",
    "SELECT score, COUNT(*) FROM people GROUP BY score",
    "SELECT salary, COUNT(*) FROM people GROUP BY salary",
    "SELECT joined, COUNT(*) FROM people GROUP BY joined",
    "SELECT uid, COUNT(*) FROM visits GROUP BY uid",
    "SELECT age, COUNT(*) FROM people GROUP BY age",
    "SELECT age / 10, SUM(score) FROM people GROUP BY 1",
    "SELECT extract(year FROM joined), COUNT(*) FROM people GROUP BY 1",
    "SELECT date_trunc('week', joined), COUNT(*) FROM people GROUP BY 1",
    "SELECT score > 50, age IS NULL, COUNT(*) FROM people GROUP BY 1, 2",
    "SELECT shop, COUNT(*), SUM(amount), AVG(amount) FROM visits GROUP BY shop",
    "SELECT region, COUNT(*), COUNT(DISTINCT uid), AVG(amount) FROM visits JOIN shops USING (shop) GROUP BY region",
    "SELECT city, AVG(amount) FROM people p JOIN visits v ON p.uid = v.uid GROUP BY city",
    "SELECT city, COUNT(v.shop) FROM people p LEFT JOIN visits v ON p.uid = v.uid GROUP BY city",
    "SELECT COUNT(*) FROM visits v JOIN shops s ON v.shop < s.shop",
    "SELECT COUNT(*) FROM people, shops a, shops b",
    "SELECT COUNT(*) FROM visits v LEFT JOIN shops s ON v.shop = s.shop AND s.region = 'north' WHERE s.shop IS NULL",
    "SELECT SUM(amount), COUNT(*) FROM visits WHERE uid = 9223372036854775807",
    "SELECT COUNT(*) FROM adults",
    "SELECT city, COUNT(*) AS n FROM people GROUP BY city HAVING COUNT(*) > 10 ORDER BY n DESC LIMIT 1 OFFSET 1",
    "SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM visits",
    "SELECT DISTINCT city FROM people",
    "SELECT a.n, b.n FROM (SELECT COUNT(*) AS n FROM people) a, (SELECT COUNT(*) AS n FROM people) b",
    "SELECT (SELECT COUNT(*) FROM people), (SELECT COUNT(*) FROM people)",
    'SELECT COUNT(*) AS "a:b""c\'; DROP" FROM people',
)


@pytest.fixture(scope="module")
def alice(poison: Proxy) -> Iterator[Client]:
    with client(poison) as opened:
        yield opened


@pytest.mark.parametrize("statement", AGGREGATES)
def test_answered_or_refused_by_its_text(poison: Proxy, alice: Client, statement: str) -> None:
    """What both backends would do alike: an answer, or a refusal that is no fault; asked twice, the same for free."""
    first = attempt(poison, alice, statement)
    before = ask(alice, "SHOW dpsql.budget")
    assert attempt(poison, alice, statement) == first
    assert ask(alice, "SHOW dpsql.budget") == before
    assert not isinstance(first, str) or first in ("0A000", "42883", "22003"), poison.log.read_text()[-300:]


def attempt(proxy: Proxy, client: Client, statement: str) -> Rows | str:
    """The rows, or the SQLSTATE of a refusal."""
    try:
        return ask(client, statement)
    except psycopg.Error as error:
        proxy.said += told(error)
        return error.sqlstate or repr(error)


def test_rare_private_keys_stay_hidden(alice: Client) -> None:
    """One person's 300 shops and every note, score or salary of one person: never a key of the answer."""
    alice.execute("SET dpsql.epsilon = 5")
    notes = {key for key, _ in ask(alice, "SELECT note, COUNT(*) FROM people GROUP BY note")}
    assert {f"note {i}" for i in range(7)} <= notes
    assert not any("SENTINEL" in str(key) for key in notes)
    assert ask(alice, "SELECT salary, COUNT(*) FROM people WHERE salary > 191919 GROUP BY salary") == []
    alice.execute("RESET dpsql.epsilon")


def test_undeclared_values_of_a_public_domain_never_appear(alice: Client) -> None:
    assert [key for key, _ in ask(alice, "SELECT city, COUNT(*) FROM people GROUP BY city")] == ["Lima", "Oslo", "Rome"]
    shops = [key for key, _ in ask(alice, "SELECT shop, COUNT(*) FROM visits GROUP BY shop")]
    assert shops == ["books", "cafe", "cinema", "garden", "zoo"]
    assert len(ask(alice, "SELECT shop, COUNT(*) FROM visits WHERE shop = 'SENTINEL-shop' GROUP BY shop")) <= 1


def test_one_person_moves_an_answer_by_no_more_than_the_bound(alice: Client) -> None:
    """Person 9223372036854775807 has 300 rows, each in a group of its own; person 900 has 3,000 in two shops."""
    alice.execute("SET dpsql.epsilon = 50")
    ((low,),) = ask(alice, "SELECT COUNT(*) FROM visits WHERE uid = 9223372036854775807")
    ((heavy, bar),) = ask(alice, "SELECT COUNT(*), dp_stddev(COUNT(*)) FROM visits WHERE uid = 900")
    assert low <= 10 + 6 * bar
    assert heavy <= 10 + 6 * bar
    alice.execute("RESET dpsql.epsilon")
