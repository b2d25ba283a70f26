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
