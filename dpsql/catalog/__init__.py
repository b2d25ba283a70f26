"""What a client may learn of the database's shape: pg_catalog, information_schema and session functions.

Everything here comes from the policy and from a fixed snapshot of Postgres's own rows; nothing from the backend.
"""
