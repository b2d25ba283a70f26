"""The commands: one file each; `dpsql.cli` only groups them."""
