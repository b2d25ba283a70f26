#!/bin/sh
# A made-up shop in a database `shop`, an empty database `ledger`, and a role for each: the reader may only read.
set -eu
psql -v ON_ERROR_STOP=1 -v password="$DPSQL_PASSWORD" --username "${POSTGRES_USER:-postgres}" --dbname postgres <<'SQL'
CREATE ROLE reader LOGIN PASSWORD :'password';
CREATE ROLE ledger LOGIN PASSWORD :'password';
CREATE DATABASE ledger OWNER ledger;
CREATE DATABASE shop;
\connect shop
CREATE TABLE customers (id integer PRIMARY KEY, country text NOT NULL, born integer);
INSERT INTO customers
SELECT i, (ARRAY['AT', 'CH', 'DE', 'FR', 'IT'])[1 + i % 5], 1940 + (i * 7) % 65 FROM generate_series(1, 5000) AS i;
CREATE TABLE orders (id integer PRIMARY KEY, customer integer NOT NULL REFERENCES customers, day date, amount numeric(8,2));
INSERT INTO orders
SELECT i, 1 + (i * 31) % 5000, DATE '2025-01-01' + (i * 11) % 365, (i * 17) % 20000 / 100.0
FROM generate_series(1, 40000) AS i;
GRANT SELECT ON customers, orders TO reader;
SQL
