"""The settings of the Superset that `make superset-test` starts: SQLite, no Celery, no caches, no limits."""

from __future__ import annotations

import os

SECRET_KEY = "of a server that lives for one test run only"
SQLALCHEMY_DATABASE_URI = f"sqlite:///{os.environ['SUPERSET_HOME']}/superset.db?check_same_thread=false"
TALISMAN_ENABLED = False
CONTENT_SECURITY_POLICY_WARNING = False
RATELIMIT_ENABLED = False
