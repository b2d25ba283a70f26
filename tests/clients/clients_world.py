"""A small shop behind a served proxy, over TLS, for real clients. Not a test itself.

The truth of every aggregate is known, and the budget is so large that answers lie close to it.
"""

from __future__ import annotations

import ipaddress
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from dpsql.pgwire.auth import make_verifier

PASSWORD = "not-a-secret"
USERS, ORDERS = 300, 1500
STATES = ("new", "paid", "sent")
DPSQL = (sys.executable, "-c", "from dpsql.cli import main; main()")
_READY = re.compile(r"dpsql: dataset \S+ on (\S+):(\d+)")

DATA = f"""
CREATE TABLE countries (code TEXT PRIMARY KEY, name TEXT);
INSERT INTO countries VALUES ('DE', 'Germany'), ('FR', 'France'), ('IT', 'Italy');
CREATE TABLE users (id BIGINT PRIMARY KEY, country TEXT, age INTEGER, active BOOLEAN);
INSERT INTO users SELECT i, ['DE', 'FR', 'IT'][1 + i % 3], 20 + i % 50, i % 4 > 0 FROM range(1, {USERS + 1}) t(i);
CREATE TABLE orders (id BIGINT, user_id BIGINT, state TEXT, product TEXT, amount DECIMAL(10, 2), qty INTEGER,
    created_at TIMESTAMP, d DATE, flag BOOLEAN);
INSERT INTO orders SELECT i, 1 + i % {USERS}, ['new', 'paid', 'sent'][1 + i // {USERS} % 3], ['pen', 'cup'][1 + i % 2],
    50.25, 1 + i // {USERS} % 5, TIMESTAMP '2024-01-15 12:00:00' + INTERVAL (i % 300) DAY,
    DATE '2024-01-15' + (i % 300)::INTEGER, i % 2 = 0 FROM range({ORDERS}) t(i);
"""
POLICY = """
dpsql: 1
dataset: shop
backend: duckdb:{folder}/shop.duckdb
ledger: sqlite:{folder}/shop.ledger
privacy:
  unit: user
  units: {users}
  max_groups: 6
  max_rows_per_group: 10
  budget: {{epsilon: 10000, delta: 1e-5}}
tables:
  users:
    unit: id
    key: id
    max_rows: 1
    columns:
      country: {{type: text, references: countries.code}}
      age: {{type: integer, lower: 0, upper: 120}}
      active: {{type: boolean}}
  orders:
    unit: user_id
    columns:
      state: {{type: text, values: [new, paid, sent]}}
      product: {{type: text}}
      amount: {{type: "numeric(10,2)", lower: 0, upper: 100}}
      qty: {{type: integer, lower: 0, upper: 10}}
      created_at: {{type: timestamp, lower: 2024-01-01, upper: 2025-01-01}}
      d: {{type: date, lower: 2024-01-01, upper: 2024-12-31}}
      flag: {{type: boolean}}
  countries: {{public: true, key: code}}
views:
  v_orders: SELECT state, amount FROM orders WHERE flag
roles:
  analyst: {{budget: {{epsilon: 9000, delta: 1e-5}}, epsilon: 20, max_epsilon: 50}}
users:
  alice: {{role: analyst, password: "{verifier}"}}
server: {{listen: 127.0.0.1:0, tls: {{cert: {folder}/server.crt, key: {folder}/server.key}}}}
"""


@dataclass(frozen=True, slots=True)
class Served:
    """A proxy that listens on `port` of localhost; `ca` is the certificate that verifies it."""

    port: int
    folder: Path
    pid: int

    @property
    def ca(self) -> Path:
        return self.folder / "server.crt"

    @property
    def dsn(self) -> str:
        return f"{self.unproved} password={PASSWORD}"

    @property
    def unproved(self) -> str:
        """Without the password."""
        tls = f"sslmode=verify-full sslrootcert={self.ca} channel_binding=require"
        return f"host=localhost port={self.port} user=alice dbname=shop connect_timeout=10 {tls}"

    @property
    def url(self) -> str:
        """Without TLS options, whose names differ between drivers."""
        return f"postgresql://alice:{PASSWORD}@localhost:{self.port}/shop"

    @property
    def libpq_url(self) -> str:
        return f"{self.url}?sslmode=verify-full&sslrootcert={self.ca}"

    def log(self) -> str:
        return (self.folder / "server.log").read_text(errors="replace")


def make_certificate(folder: Path) -> None:
    """server.crt and server.key for localhost."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number()).add_extension(names, critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    builder = builder.not_valid_before(datetime.now(UTC) - timedelta(days=1))
    certificate = builder.not_valid_after(datetime.now(UTC) + timedelta(days=30)).sign(key, hashes.SHA256())
    pem, traditional = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    (folder / "server.crt").write_bytes(certificate.public_bytes(pem))
    private = key.private_bytes(pem, traditional, serialization.NoEncryption())
    (folder / "server.key").write_bytes(private)
    (folder / "server.key").chmod(0o600)


def make_shop(folder: Path) -> Path:
    """Database, certificate, policy and ledger in a folder; the policy's path."""
    with closing(duckdb.connect(str(folder / "shop.duckdb"))) as connection:
        connection.execute(DATA)
    make_certificate(folder)
    policy = folder / "shop.yaml"
    policy.write_text(POLICY.format(folder=folder, users=USERS, verifier=make_verifier(PASSWORD)))
    done = subprocess.run([*DPSQL, "ledger", "init", str(policy)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return policy


@contextmanager
def serving(policy: Path, *options: str) -> Iterator[Served]:
    """`dpsql serve` as a process of its own, until the block ends."""
    log = policy.parent / "server.log"
    with log.open("wb") as out:
        command = [*DPSQL, "serve", str(policy), "--listen", "127.0.0.1:0", *options]
        process = subprocess.Popen(command, stdout=out, stderr=out)
    try:
        yield Served(_port(process, log), policy.parent, process.pid)
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(20)


def _port(process: subprocess.Popen[bytes], log: Path) -> int:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        found = _READY.search(log.read_text())
        if found is not None:
            return int(found[2])
        time.sleep(0.02)
    raise AssertionError(log.read_text())
