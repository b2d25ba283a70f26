"""A policy file -> `Policy`, or all that is wrong with it.

Decides the order: read, shape, build. Nothing partial is ever returned, and nothing here contacts a backend.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dpsql.policy.build import build
from dpsql.policy.document import Document
from dpsql.policy.model import Policy
from dpsql.policy.problems import OPEN, PolicyError, Problem, Problems
from dpsql.policy.problems import Path as KeyPath
from dpsql.policy.shape import repair, shape
from dpsql.policy.source import MAX_BYTES, Data, read
from dpsql.policy.undecided import question


def load(path: str | Path) -> Policy:
    """The policy in the file. Raises `PolicyError` with every problem, each with file, line, key and fix."""
    file = Path(path)
    return parse(_text(file), file)


def parse(text: str, path: Path) -> Policy:
    """The policy in the text, as if it stood in the file `path`, beside which relative paths start."""
    problems = Problems(str(path))
    data = read(text, problems)
    if not data:
        problems.refuse_if_any()
    document = shape(_decided(data, problems), problems)
    if document is None:
        problems.refuse_if_any()
        raise PolicyError([Problem(str(path), 1, "", "is not a policy", "see the example in the manual")])
    policy = build(document, path.absolute(), problems)
    problems.refuse_if_any()
    return policy


def _decided(data: Data, problems: Problems) -> Data:
    """The data with an example in the place of each open decision, so that all other problems are found as well."""
    for path in problems.undecided:
        problems.add(path, OPEN, question(path, _at(data, (*path[:-1], "type"))))
        data = repair(data, path, problems)
    return data


def _at(data: Data, path: KeyPath) -> str:
    """The text at a path, empty where there is none."""
    for part in path:
        data = data.get(str(part)) if isinstance(data, dict) else None
    return data if isinstance(data, str) else ""


def json_schema() -> dict[str, Any]:
    """The JSON Schema of the policy file, for editors."""
    return Document.model_json_schema() | {"$schema": "https://json-schema.org/draft/2020-12/schema"}


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_BYTES:
            size = Problem(str(path), 0, "", f"is above {MAX_BYTES:,} bytes", "a policy is a short YAML file")
            raise PolicyError([size])
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        problem = Problem(str(path), 0, "", "is not UTF-8 text", "save it as UTF-8")
    except OSError as error:
        problem = Problem(str(path), 0, "", f"cannot be read ({error.strerror})", "check the path and its permissions")
    raise PolicyError([problem])
