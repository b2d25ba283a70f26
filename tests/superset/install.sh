#!/usr/bin/env bash
# Superset into a virtual environment of its own, with the metadata database that every test run starts from.
# Usage: install.sh FOLDER. PYTHON: the interpreter to use, 3.10 to 3.12.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
venv="$1"

"${PYTHON:-python3}" -m venv "$venv"
"$venv/bin/python" -m pip install -q --disable-pip-version-check -r "$here/requirements.txt"

SUPERSET_HOME="$(mktemp -d)"
trap 'rm -rf "$SUPERSET_HOME"' EXIT
export SUPERSET_HOME HOME="$SUPERSET_HOME" SUPERSET_CONFIG_PATH="$here/superset_config.py" FLASK_APP=superset
log="$SUPERSET_HOME/log"
superset() { "$venv/bin/superset" "$@" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }; }
superset db upgrade
superset fab create-admin --username admin --firstname A --lastname B --email admin@example.org --password admin
superset init
cp "$SUPERSET_HOME/superset.db" "$venv/superset.db"
