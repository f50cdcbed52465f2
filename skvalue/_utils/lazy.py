"""Public names of a package that are imported at first use, and named once, in its stub."""

import ast
from importlib import import_module
from pathlib import Path


def attach_stub(package, file):
    """`__getattr__`, `__dir__` and `__all__` of a package, from the imports in its `.pyi` file.

    Editors and type checkers read the same file.
    """
    lines = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8")).body
    modules = {
        alias.name: line.module
        for line in lines
        if isinstance(line, ast.ImportFrom)
        for alias in line.names
    }
    public = sorted(modules)

    def __getattr__(name):
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if modules[name] is None:  # a module of the package itself
            return import_module(f".{name}", package)
        return getattr(import_module(f".{modules[name]}", package), name)

    return __getattr__, lambda: public, public
