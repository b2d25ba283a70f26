"""What the demo asks: statements as an analyst types them, each with the statement that gives the true values.

Decides the text only. The true values leave out the flights whose aircraft is unknown: they belong to no privacy unit.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """One statement with the settings before it. Its columns: `keys` keys, the answer, then perhaps `low` and `high`.

    `exact`: DuckDB's SQL over the file itself for the same keys and the true value; None where it is not compared.
    """

    title: str
    sql: str
    exact: str | None = None
    keys: int = 0
    settings: tuple[str, ...] = ()


STEPS = (
    Step(
        "A count, with the 95 % interval of its noise.",
        """SELECT count(*) AS flights,
       dp_interval_low(count(*)) AS low, dp_interval_high(count(*)) AS high
FROM flights""",
        "SELECT count(*) FROM flights",
    ),
    Step(
        "By airport. A statement costs the epsilon it names, not one for each group.",
        """SELECT origin, count(*) AS flights,
       dp_interval_low(count(*)) AS low, dp_interval_high(count(*)) AS high
FROM flights GROUP BY origin ORDER BY origin""",
        "SELECT origin, count(*) FROM flights GROUP BY ALL",
        keys=1,
    ),
    Step(
        "By carrier, with names from a public table. An aircraft seldom changes its carrier, so bounding it to one"
        " group loses little and takes less noise.",
        """SELECT a.name, count(*) AS flights,
       dp_interval_low(count(*)) AS low, dp_interval_high(count(*)) AS high
FROM flights f JOIN airlines a ON a.carrier = f.carrier
GROUP BY a.name HAVING count(*) > 10000 ORDER BY flights DESC LIMIT 5""",
        "SELECT a.name, count(*) FROM flights JOIN airlines a USING (carrier) GROUP BY ALL",
        keys=1,
        settings=("SET dpsql.max_groups = 1",),
    ),
    Step(
        "The same counts as shares of the whole, in another order: what was released once is free ever after.",
        """SELECT a.name, round(100.0 * count(*) / sum(count(*)) OVER (), 1) AS percent
FROM flights f JOIN airlines a ON a.carrier = f.carrier
GROUP BY a.name ORDER BY percent DESC LIMIT 3""",
        """SELECT a.name, round(100.0 * count(*) / sum(count(*)) OVER (), 1)
FROM flights JOIN airlines a USING (carrier) GROUP BY ALL""",
        keys=1,
    ),
    Step(
        "A sum of miles. Each distance is clamped to the policy's bounds first.",
        """SELECT origin, sum(distance) AS miles,
       dp_interval_low(sum(distance)) AS low,
       dp_interval_high(sum(distance)) AS high
FROM flights GROUP BY origin ORDER BY miles DESC""",
        "SELECT origin, sum(distance) FROM flights GROUP BY ALL",
        keys=1,
    ),
    Step(
        "An average, at a higher price for less noise.",
        """SELECT origin, avg(dep_delay) AS minutes,
       dp_interval_low(avg(dep_delay)) AS low,
       dp_interval_high(avg(dep_delay)) AS high
FROM flights GROUP BY origin ORDER BY origin""",
        "SELECT origin, avg(dep_delay) FROM flights GROUP BY ALL",
        keys=1,
        settings=("SET dpsql.epsilon = 2",),
    ),
    Step(
        "By month, with delays above an hour counted as an hour: a narrower range of values takes less noise.",
        """SELECT month, avg(LEAST(dep_delay, 60)) AS minutes,
       dp_interval_low(avg(LEAST(dep_delay, 60))) AS low,
       dp_interval_high(avg(LEAST(dep_delay, 60))) AS high
FROM flights WHERE dep_delay IS NOT NULL
GROUP BY month ORDER BY month""",
        "SELECT month, avg(LEAST(dep_delay, 60)) FROM flights WHERE dep_delay IS NOT NULL GROUP BY ALL",
        keys=1,
        settings=("SET dpsql.epsilon = 3",),
    ),
    Step(
        "A ratio of two counts: how many percent left over half an hour late. Both counts' noise is in its interval.",
        """WITH late AS (
  SELECT origin,
    100.0 * count(*) FILTER (WHERE dep_delay > 30) / count(*) AS percent,
    dp_stddev(100.0 * count(*) FILTER (WHERE dep_delay > 30) / count(*)) AS s
  FROM flights GROUP BY origin)
SELECT origin, round(percent, 1) AS percent,
       percent - 1.96 * s AS low, percent + 1.96 * s AS high
FROM late ORDER BY percent DESC""",
        """SELECT origin, round(100.0 * count(*) FILTER (WHERE dep_delay > 30) / count(*), 1)
FROM flights GROUP BY ALL""",
        keys=1,
    ),
    Step(
        "Private tables join along the privacy unit: how far do aircraft with each type of engine fly?",
        """SELECT p.engine, avg(f.distance) AS miles,
       dp_interval_low(avg(f.distance)) AS low,
       dp_interval_high(avg(f.distance)) AS high
FROM flights f JOIN planes p ON p.tailnum = f.tailnum
WHERE p.engine IN ('Turbo-fan', 'Turbo-jet')
GROUP BY p.engine ORDER BY miles""",
        "SELECT p.engine, avg(distance) FROM flights JOIN planes p USING (tailnum) GROUP BY ALL",
        keys=1,
        settings=("SET dpsql.epsilon = 1",),
    ),
    Step(
        "Group keys that nobody declared are shown only where enough aircraft stand behind them.",
        """SELECT manufacturer, count(*) AS planes,
       dp_interval_low(count(*)) AS low, dp_interval_high(count(*)) AS high
FROM planes GROUP BY manufacturer ORDER BY planes DESC LIMIT 6""",
        "SELECT manufacturer, count(*) FROM planes GROUP BY ALL",
        keys=1,
    ),
    Step(
        "Public tables are answered exactly and free.",
        """SELECT origin, round(avg(temp)::numeric, 1) AS fahrenheit
FROM weather GROUP BY origin ORDER BY origin""",
    ),
    Step(
        "Rows of a private table are never returned; the refusal says what to ask instead.",
        "SELECT tailnum, dep_delay FROM flights",
    ),
    Step(
        "EXPLAIN tells the noise and the price beforehand, and spends nothing.",
        "EXPLAIN SELECT month, avg(arr_delay) FROM flights GROUP BY month",
    ),
)

EXHAUST = Step(
    "When the budget is used up, the answer is no. At epsilon 5 a statement that takes only a few.",
    "SELECT count(*) FROM flights WHERE month = 1",
    settings=("SET dpsql.epsilon = 5",),
)

AFTER = Step(
    "Even then, what was seen once can be seen again.",
    """SELECT origin, count(*) AS flights,
       dp_interval_low(count(*)) AS low, dp_interval_high(count(*)) AS high
FROM flights GROUP BY origin ORDER BY flights""",
    "SELECT origin, count(*) FROM flights GROUP BY ALL",
    keys=1,
    settings=("RESET dpsql.epsilon", "RESET dpsql.max_groups"),
)
