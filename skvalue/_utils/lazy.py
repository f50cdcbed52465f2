"""Names of a package that are imported at first use, and stand once, in its stub."""

import ast
import sys
from importlib import import_module
from pathlib import Path


def attach_stub(package, file):
    """`__getattr__`, `__dir__` and `__all__` of a package, from the imports in its
    `.pyi` file.

    As for type checkers, who read the same file, names imported by ``import a as a``
    are public.
    """
    lines = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8")).body
    names = {
        alias.name: (
            "." * line.level + (line.module or alias.name),
            line.module,
            alias.asname,
        )
        for line in lines
        if isinstance(line, ast.ImportFrom)
        for alias in line.names
    }
    public = sorted(name for name, (*_, asname) in names.items() if asname)

    def __getattr__(name):
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        path, is_name, _ = names[name]
        module = import_module(path, package)
        found = getattr(module, name) if is_name else module
        vars(sys.modules[package])[name] = found  # the next time it is there
        return found

    return __getattr__, lambda: public, public
