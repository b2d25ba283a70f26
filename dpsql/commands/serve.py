"""`dpsql serve`: the proxy. Decides where it listens, and in how many processes it serves."""

from __future__ import annotations

from pathlib import Path

import click

from dpsql.commands.running import log_to_stderr
from dpsql.errors import BAD_PARAMETER, Rejected
from dpsql.policy.load import load
from dpsql.policy.model import Policy
from dpsql.server.cancel import MAX_WORKERS

_OWN = ("127.0.0.1", "::1", "localhost")


@click.command()
@click.argument("policy", type=click.Path(path_type=Path))
@click.option("--listen", help="HOST:PORT instead of the policy's; port 0 takes a free one.")
@click.option("--audit", type=click.Path(path_type=Path), help="A file for the audit trail, instead of stderr.")
@click.option("--metrics", type=click.IntRange(0, 65_535), help="Port on 127.0.0.1 for Prometheus; 0 takes a free one.")
@click.option(
    "--workers",
    type=click.IntRange(1, MAX_WORKERS),
    default=1,
    show_default=True,
    help="Processes behind the port.",
)
def serve(policy: Path, listen: str | None, audit: Path | None, metrics: int | None, workers: int) -> None:
    """Serve POLICY to PostgreSQL clients until stopped (Ctrl-C or SIGTERM); SIGHUP reads POLICY again."""
    log_to_stderr()
    loaded = load(policy)
    address = _address(loaded, listen)
    if loaded.server.tls is None and address[0] not in _OWN:
        click.echo(
            f"dpsql: listening on {address[0]} without TLS: clients on other machines are refused. "
            "Give the policy `server: {tls: {cert: ..., key: ...}}` to serve them.",
            err=True,
        )
    if workers == 1:
        from dpsql.commands import alone

        alone.run(loaded, policy, address, metrics, audit)
    else:
        from dpsql.commands import parent  # which loads no engine: its workers do

        parent.run(workers, policy, address, metrics, audit)


def _address(policy: Policy, listen: str | None) -> tuple[str, int]:
    if listen is None:
        return policy.server.host, policy.server.port
    host, _, port = listen.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65_535:
        raise Rejected(f"--listen takes HOST:PORT, not {listen!r}", sqlstate=BAD_PARAMETER)
    return host.strip("[]"), int(port)
