"""Names, types and privacy units of a statement, resolved against the policy: sqlglot trees in, algebra out."""
