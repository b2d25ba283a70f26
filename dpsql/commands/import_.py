"""`dpsql import`: policies of other systems, converted into drafts. Decides where the draft goes."""

from __future__ import annotations

from pathlib import Path

import click

from dpsql.errors import BAD_PARAMETER, Rejected
from dpsql.policy.draft import Source, dataset_name
from dpsql.policy.smartnoise import convert
from dpsql.policy.source import MAX_BYTES
from dpsql.policy.undecided import DECIDE


@click.group(name="import")
def import_() -> None:
    """Convert another system's description of a dataset into a draft of a policy."""


@import_.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--output", "-o", type=click.Path(path_type=Path), help="The policy file; without it, standard output.")
@click.option("--force", is_flag=True, help="Overwrite the policy file.")
@click.option("--backend", default=DECIDE, help="Where the data are: duckdb:FILE or postgresql://...")
def smartnoise(file: Path, output: Path | None, force: bool, backend: str) -> None:
    """Convert SmartNoise SQL's metadata, a YAML FILE."""
    if output is not None and output.exists() and not force:
        hint = "Name another file with -o, or overwrite it with --force."
        raise Rejected(f"There is a file {output} already.", sqlstate=BAD_PARAMETER, hint=hint)
    stem = file.stem if output is None else output.stem
    shown = "policy.yaml" if output is None else str(output)
    text = convert(_text(file), Source(str(file), backend, dataset_name(stem), shown))
    if output is None:
        click.echo(text, nl=False)
        return
    output.write_text(text, encoding="utf-8")
    click.echo(f"{output}: converted, with comments on what has no counterpart", err=True)
    click.echo(f"Next: dpsql check {output}", err=True)


def _text(file: Path) -> str:
    try:
        if file.stat().st_size > MAX_BYTES:
            raise Rejected(f"{file} is above {MAX_BYTES} bytes.", sqlstate=BAD_PARAMETER)
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise Rejected(f"{file} is not UTF-8 text.", sqlstate=BAD_PARAMETER) from None
    except OSError as error:
        raise Rejected(f"{file} cannot be read ({error.strerror}).", sqlstate=BAD_PARAMETER) from None
