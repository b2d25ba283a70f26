#!/usr/bin/env bash
# Installs the clients that are not Python packages: Debian's, and node's into $NODE_CLIENTS. What cannot be had is
# left out; its tests skip by name.
set -u
NODE_CLIENTS="${NODE_CLIENTS:-/opt/dpsql-clients}"
DEBIAN="postgresql-15 postgresql-client libpostgresql-jdbc-java default-jdk-headless odbc-postgresql unixodbc pgbouncer"

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

install_debian
install_node
exit 0
