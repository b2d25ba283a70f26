"""YAML text -> plain values and the line of every key.

Decides what YAML means in a policy: one document of maps, lists and scalars; numbers are exact (int or Decimal, never
float); dates stay text until their column's type is known. It must never drop a key silently (a duplicate is a
problem), build objects from tags, or expand aliases without limit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from dpsql.policy.problems import Path, Problems
from dpsql.policy.undecided import DECIDE

Data = dict[str, "Data"] | list["Data"] | str | int | Decimal | bool | None

MAX_BYTES = 1_000_000
MAX_NODES = 100_000
MAX_DEPTH = 20

_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]{0,30})")
_NUMBER = re.compile(r"[-+]?((0|[1-9][0-9]{0,39})(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][-+]?[0-9]{1,3})?")
_TAG = "tag:yaml.org,2002:"
_SCALAR_TAGS = frozenset(_TAG + name for name in ("str", "int", "float", "bool", "null", "timestamp"))


@dataclass(slots=True)
class _Reader:
    problems: Problems
    lines: dict[Path, int] = field(default_factory=dict)
    nodes: int = 0


def read(text: str, problems: Problems) -> Data:
    """The document's values; fills `problems.lines`. Syntax errors and duplicate keys become problems."""
    node = _compose(text, problems)
    if node is None:
        return {}
    reader = _Reader(problems)
    problems.lines = reader.lines
    return _convert(node, (), reader)


def _compose(text: str, problems: Problems) -> Node | None:
    try:
        node = YAML().compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problems.lines = {(): mark.line + 1 if mark else 1}
        problems.add((), f"is not valid YAML: {error.problem or error.context}", "correct the syntax there")
        return None
    except (YAMLError, RecursionError, ValueError):
        problems.add((), "is not valid YAML", "correct the syntax")
        return None
    if node is None:
        problems.add((), "is empty", "write a policy, or draft one with `dpsql init`")
    return node if isinstance(node, Node) else None


def _convert(node: Node, path: Path, reader: _Reader) -> Data:
    reader.lines.setdefault(path, node.start_mark.line + 1)
    reader.nodes += 1
    if reader.nodes > MAX_NODES or len(path) > MAX_DEPTH:
        reader.problems.add(path[:3], "is too large or too deeply nested", "make it smaller")
        return None
    match node:
        case MappingNode():
            return _mapping(node, path, reader)
        case SequenceNode():
            return [_convert(item, (*path, index), reader) for index, item in enumerate(node.value)]
        case ScalarNode():
            return _scalar(node, path, reader)
        case _:
            return None


def _mapping(node: MappingNode, path: Path, reader: _Reader) -> Data:
    result: dict[str, Data] = {}
    for key_node, value_node in node.value:
        if not isinstance(key_node, ScalarNode):
            reader.problems.add(path, "has a key that is not a word", "use plain words as keys")
            continue
        key = str(key_node.value)
        where = (*path, key)
        line = key_node.start_mark.line + 1
        if key in result:
            first = reader.lines[where]
            reader.lines[where] = line
            reader.problems.add(where, f"stands twice, first in line {first}", "keep one of them")
            continue
        reader.lines[where] = line
        result[key] = _convert(value_node, where, reader)
    return result


def _scalar(node: ScalarNode, path: Path, reader: _Reader) -> Data:
    text = str(node.value)
    if node.style == ">":
        text = text.replace("\a", "")  # where the library remembers that lines were folded
    tag = str(node.tag)
    if text == DECIDE and node.style is None:
        reader.problems.undecided.append(path)
    if tag not in _SCALAR_TAGS:
        reader.problems.add(path, f"has the tag {tag.removeprefix(_TAG)}", "remove the tag")
        return text
    if tag == _TAG + "null":
        return None
    if tag == _TAG + "bool":
        return text.lower() == "true"
    if tag in (_TAG + "int", _TAG + "float"):
        return _number(text)
    return text


def _number(text: str) -> Data:
    """An exact number; forms that are not plainly decimal (`0x10`, `007`, `.nan`) stay text and fail where used."""
    if _INTEGER.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text):
        return Decimal(text)
    return text
