#!/usr/bin/env bash
# Installs the clients that are not Python packages of the tests' own environment: Debian's, and into $NODE_CLIENTS
# those of node, and a DuckDB with its postgres extension. What cannot be had is left out; its tests skip by name.
set -u
NODE_CLIENTS="${NODE_CLIENTS:-/opt/dpsql-clients}"
DEBIAN="postgresql-15 postgresql-client libpostgresql-jdbc-java default-jdk-headless odbc-postgresql unixodbc pgbouncer r-cran-rpostgresql
    golang-go golang-github-lib-pq-dev"

install_debian() {
    command -v apt-get >/dev/null || return 0
    apt-get update -qq >/dev/null 2>&1
    for package in $DEBIAN; do
        dpkg -s "$package" >/dev/null 2>&1 && continue
        [ "$package" = default-jdk-headless ] && command -v javac >/dev/null && continue
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" >/dev/null 2>&1 ||
            echo "not installed: $package"
    done
}

install_node() {
    command -v npm >/dev/null || { echo "not installed: node's clients (no npm)"; return 0; }
    mkdir -p "$NODE_CLIENTS" && cd "$NODE_CLIENTS" || return 0
    [ -d node_modules/knex ] && return 0
    npm install --silent --no-audit --no-fund --no-save pg@8 pg-cursor@2 postgres@3 knex@3 >/dev/null 2>&1 ||
        echo "not installed: node's clients"
}

install_duckdb() {
    [ -x "$NODE_CLIENTS/duckdb/bin/python" ] && return 0
    mkdir -p "$NODE_CLIENTS" && "${PYTHON:-python3}" -m venv "$NODE_CLIENTS/duckdb.new" &&
        "$NODE_CLIENTS/duckdb.new/bin/python" -m pip install -q --disable-pip-version-check duckdb-ext-postgres \
            >/dev/null 2>&1 && mv "$NODE_CLIENTS/duckdb.new" "$NODE_CLIENTS/duckdb" ||
        echo "not installed: DuckDB's postgres extension"
}

install_debian
install_node
install_duckdb
exit 0
