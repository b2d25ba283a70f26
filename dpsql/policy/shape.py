"""Plain values -> `Document`, with every wrong, missing or unknown key reported.

Decides how a misfit reads, and repairs it with the key's example, so that the checks of meaning can still run and
report their problems together with these. A repaired document never becomes a policy: its problems stand.
"""

from __future__ import annotations

from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from dpsql.policy.document import Document
from dpsql.policy.problems import Path, Problems, did_you_mean
from dpsql.policy.source import Data, read

_ROUNDS = 8
_SECRET = "password"
_UNKNOWN = "..."
_MUST_BE = {
    "string_type": "must be text",
    "int_type": "must be a whole number",
    "bool_type": "must be true or false",
    "model_type": "must be a map of keys",
    "dict_type": "must be a map of keys",
    "list_type": "must be a list",
}


def shape(data: Data, problems: Problems) -> Document | None:
    """The document, repaired where `problems` grew; None where nothing sensible is left."""
    for _ in range(_ROUNDS):
        try:
            return Document.model_validate(data)
        except ValidationError as error:
            details = error.errors(include_url=False, include_context=True)
        for detail in details:
            path = _path(detail["loc"], problems)
            _report(detail, path, problems)
            data = repair(data, path, problems)
    return None


def _path(loc: tuple[int | str, ...], problems: Problems) -> Path:
    """The location without the names pydantic adds for the arms of a union."""
    path: Path = ()
    for index, part in enumerate(loc):
        if index == len(loc) - 1 and part not in ("word", "map", "list"):
            return (*path, part)
        if (*path, part) in problems.lines or part not in ("word", "map", "list"):
            path = (*path, part)
    return path


def _report(detail: ErrorDetails, path: Path, problems: Problems) -> None:
    kind = detail["type"]
    if kind == "extra_forbidden":
        section = _section(path[:-1])
        known = section.model_fields if section else {}
        problems.add(path, "is not a key that exists here", did_you_mean(str(path[-1]), known))
    elif kind == "missing":
        problems.add(path, "is missing", f"add `{path[-1]}: {_example(path)}`")
    elif kind == "literal_error":
        problems.add(path, f"must be {detail['ctx']['expected']}", f"write `{path[-1]}: {_example(path)}`")
    else:
        what = _MUST_BE.get(kind) or str(detail["msg"])
        example = _example(path)
        fix = "docs/policy.md shows its form" if example == _UNKNOWN else f"write for example `{example}`"
        problems.add(path, f"{what}{_seen(detail['input'], path)}", fix)


def _seen(value: object, path: Path) -> str:
    if (path and path[-1] == _SECRET) or isinstance(value, dict | list):
        return ""
    return ", but nothing is written there" if value is None else f", not {value!s:.60}"


def _example(path: Path) -> str:
    found = _field(path)
    if found is None or not found.examples:
        return _UNKNOWN
    example = found.examples[0]
    return str(example).lower() if isinstance(example, bool) else str(example)


def _field(path: Path) -> FieldInfo | None:
    section = _section(path[:-1])
    return section.model_fields.get(str(path[-1])) if section and path else None


def _section(path: Path) -> type[BaseModel] | None:
    """The model that describes the map at `path`: fields by name, and any key below a dict of sections."""
    current: Any = Document
    for part in path:
        model = _model(current)
        if model is None:
            current = _member(current)
        else:
            found = model.model_fields.get(str(part))
            current = found.annotation if found else None
    return _model(current)


def _member(annotation: Any) -> Any:
    arguments = get_args(annotation)
    return arguments[-1] if arguments else None


def _model(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if getattr(annotation, "__origin__", None) in (dict, list):
        return None
    return next((model for model in map(_model, get_args(annotation)) if model), None)


def repair(data: Data, path: Path, problems: Problems) -> Data:
    """The data with the value at `path` replaced by its example where it must exist, else removed."""
    problems.guessed.append(path)
    if not path or not isinstance(data, dict):
        return data
    parent: Any = data
    for part in path[:-1]:
        try:
            parent = parent[part]
        except (KeyError, IndexError, TypeError):
            return data
    found = _field(path)
    if isinstance(parent, dict):
        parent.pop(path[-1], None)
        if found is not None and found.is_required():
            parent[path[-1]] = _sample(found)
    elif isinstance(parent, list) and isinstance(path[-1], int) and path[-1] < len(parent):
        parent[path[-1]] = ""
    return data


def _sample(found: FieldInfo) -> Data:
    example = found.examples[0] if found.examples else None
    if not isinstance(example, str) or not example.startswith("{"):
        return example
    return read(example, Problems("example"))
