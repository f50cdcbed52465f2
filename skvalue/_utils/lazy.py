"""Names of a package that are imported at first use, and stand once, in its stub."""

import ast
import sys
from importlib import import_module
from pathlib import Path
from typing import NamedTuple


class _Source(NamedTuple):
    """Where a name is imported from."""

    module: str  # relative to the package
    is_module: bool  # whether the name is that of the module
    is_public: bool


def attach_stub(package, file):
    """`__getattr__`, `__dir__` and `__all__` of a package, from the stub of its file.

    As for type checkers, which read the same imports, names imported by ``import a as
    a`` are public.
    """
    # (The package lazy_loader reads stubs, too. For it all names are public, and they
    # are in modules of the package itself.)
    stub = Path(file).with_suffix(".pyi").read_text(encoding="utf-8")
    sources = {}
    for line in ast.parse(stub).body:
        if isinstance(line, ast.ImportFrom):
            for alias in line.names:
                sources[alias.name] = _Source(
                    module="." * line.level + (line.module or alias.name),
                    is_module=line.module is None,
                    is_public=alias.asname is not None,
                )
    public = sorted(name for name, source in sources.items() if source.is_public)

    def __getattr__(name):
        if name not in sources:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        source = sources[name]
        value = import_module(source.module, package)
        if not source.is_module:
            value = getattr(value, name)
        vars(sys.modules[package])[name] = value  # the next time it is there
        return value

    return __getattr__, lambda: public, public
