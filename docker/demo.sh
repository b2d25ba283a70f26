#!/bin/sh
# The demo behind TLS: database, policy and ledger are made once in the folder, then the proxy serves them.
#   demo.sh [FOLDER] [HOST:PORT]
set -eu
folder=${1:-/data/demo}
listen=${2:-0.0.0.0:6432}
if [ ! -f "$folder/ready" ]; then
    dpsql demo --prepare --folder "$folder"
    certificate.py "$folder" localhost
    server="server: {listen: \"$listen\", tls: {cert: tls.crt, key: tls.key}, statement_timeout: 60s}"
    sed -i "s|^server:.*|$server|" "$folder/nyc-flights.yaml"
    touch "$folder/ready"
fi
exec dpsql serve "$folder/nyc-flights.yaml"
