"""The parameters of the server that never change: what clients choose their catalog queries and forms by."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

FIXED: Mapping[str, str] = MappingProxyType(
    {
        "server_version": "15.14",
        "server_version_num": "150014",
        "server_encoding": "UTF8",
        "client_encoding": "UTF8",
        "DateStyle": "ISO, MDY",
        "IntervalStyle": "postgres",
        "TimeZone": "UTC",
        "integer_datetimes": "on",
        "standard_conforming_strings": "on",
        "is_superuser": "off",
        "in_hot_standby": "off",
        "default_transaction_read_only": "off",
    }
)
"""Postgres 15, older than most clients, so that psql does not warn. What may be SET, is the session's to report."""

PRESET: Mapping[str, str] = MappingProxyType(
    {
        "block_size": "8192",
        "lc_collate": "C.UTF-8",
        "lc_ctype": "C.UTF-8",
        "max_function_args": "100",
        "max_identifier_length": "63",
        "max_index_keys": "32",
    }
)
"""What a build of Postgres fixes: clients ask for it with SHOW (psqlODBC within each cursor's transaction)."""
