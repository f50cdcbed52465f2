"""The source of skvalue and of its tests, as syntax trees."""

import ast
from functools import cache
from pathlib import Path

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
PACKAGE = ROOT / "skvalue"


def files(folder=PACKAGE):
    return sorted(folder.rglob("*.py"))


@cache
def nodes(path):
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def short(path):
    return str(path.relative_to(ROOT))


def dotted(path):
    """Import path of a file of skvalue or tests."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    if parts[-1] == "__init__":
        parts = parts[:-1]
    return ".".join(parts)


@cache
def modules():
    """Import path -> file, of all modules of skvalue."""
    return {dotted(path): path for path in files()}


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


def imported(path):
    """All imports of a file, in functions too.

    Yields the line, the absolute import path and the name that is bound.
    """
    package = path.relative_to(ROOT).parent.parts
    for node in nodes(path):
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound = alias.asname or alias.name.partition(".")[0]
                yield node.lineno, alias.name, bound
        elif isinstance(node, ast.ImportFrom):
            above = ()
            if node.level:
                above = package[: len(package) - node.level + 1]
            module = ".".join([*above, *filter(None, [node.module])])
            for alias in node.names:
                yield node.lineno, f"{module}.{alias.name}", alias.asname or alias.name


def bound_modules(path):
    """Names that a file binds to modules of skvalue, and their import paths."""
    return {name: target for _, target, name in imported(path) if target in modules()}


# Names that read or set the attribute that their second argument names.
_ACCESS = {"getattr", "hasattr", "setattr", "delattr"}


def private_attributes_of(path):
    """Private attributes in a file, by name or as a string.

    Yields the line, the name of the object or None, the attribute, and whether it is
    set.
    """
    for node in nodes(path):
        if isinstance(node, ast.Attribute):
            owner = node.value
            name = node.attr
            is_set = isinstance(node.ctx, ast.Store)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", None) in _ACCESS:
            owner = node.args[0]
            name = getattr(node.args[1], "value", None)
            is_set = node.func.id == "setattr"
        else:
            continue
        if isinstance(name, str) and is_private(name):
            yield node.lineno, getattr(owner, "id", None), name, is_set
