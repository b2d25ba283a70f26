"""A release's key says the same in every process: else a restart would sell stored answers again, with new noise."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from e2e.conftest import MakePolicy
from e2e.test_e2e_poison import AGGREGATES
from e2e.world import Terms

_KEYS = """
import sys
from e2e.inside import QUIET, Measured
from e2e.test_e2e_poison import AGGREGATES
from dpsql.errors import Rejected
from pathlib import Path
with Measured(Path(sys.argv[1])) as measured:
    for statement in AGGREGATES:
        try:
            print(sorted(measured.keys(statement).items()))
        except Rejected as error:
            print(error.message)
"""


def keys(policy: Path, seed: str) -> list[str]:
    path = os.pathsep.join((str(Path(__file__).parent.parent), os.environ.get("PYTHONPATH", "")))
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", _KEYS, str(policy)], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_keys_do_not_depend_on_the_process(make_policy: MakePolicy) -> None:
    policy = make_policy("duckdb", "clean", Terms())
    first = keys(policy, "1")
    assert len(first) == len(AGGREGATES)
    assert keys(policy, "2") == first
