"""What can be counted about the structure of skvalue; `python tests/house.py` prints it.

Every function of `MEASURES` returns a list of offenders: `tests/test_house.py` asks that it is
empty, or short enough. `--list` prints the offenders too, `--lines FOLDER` counts another tree.
"""

import ast
import importlib
import inspect
import io
import pkgutil
import sys
import tokenize
import warnings
from functools import cache
from pathlib import Path

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
PACKAGE = ROOT / "skvalue"

MAX_CODE_LINES = 28_070  # 19,500 when the structure was made; what came since are features
MAX_CHAIN = 4  # house classes in an MRO
MAX_HOOKS = 8
MAX_FLAT = 20  # files directly in valuers/
MAX_PRIVATE = 3  # private attributes of a fitted valuer


# Files and names ----------------------------------------------------------------------------


def files(folder=PACKAGE):
    return sorted(folder.rglob("*.py"))


@cache
def tree(path):
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes(path):
    return tuple(ast.walk(tree(path)))


def short(path):
    return str(path.relative_to(ROOT))


def dotted(path):
    """Import path of a file of skvalue or tests."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


@cache
def folders():
    """Import paths of the packages of skvalue."""
    return {dotted(path) for path in files() if path.name == "__init__.py"}


def imported(path):
    """(line, absolute import path) of all that a file imports, inside functions too."""
    package = path.relative_to(ROOT).parent.parts
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def owner(parts, i):
    """The folder in which the private name `parts[i]` may be used."""
    above = ".".join(parts[:i])
    return above if above in folders() else ".".join(parts[: i - 1])


def first_private(parts):
    """Index of the first private part of an import path of skvalue; `_utils` is public."""
    for i, part in enumerate(parts):
        if is_private(part) and not (i == 1 and part == "_utils"):
            return i
    return None


@cache
def modules_of_skvalue():
    return {dotted(path) for path in files()}


def names_of_modules(path):
    """Names that a file binds to modules of skvalue, and their import paths."""
    modules = modules_of_skvalue()
    found = {}
    package = path.relative_to(ROOT).parent.parts
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                if f"{module}.{alias.name}" in modules:
                    found[alias.asname or alias.name] = f"{module}.{alias.name}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname and alias.name in modules:
                    found[alias.asname] = alias.name
                elif alias.name == "skvalue":
                    found["skvalue"] = "skvalue"
    return found


def private_imports(paths):
    """Imports of private modules and names of skvalue from outside their folder."""
    offenders = []
    for path in paths:
        here = ".".join(path.relative_to(ROOT).parent.parts)
        used = list(imported(path))
        modules = names_of_modules(path)
        for node in nodes(path):
            if isinstance(node, ast.Attribute) and is_private(node.attr):
                of = modules.get(node.value.id) if isinstance(node.value, ast.Name) else None
                if of is not None:
                    used.append((node.lineno, f"{of}.{node.attr}"))
        for line, name in used:
            parts = name.split(".")
            i = first_private(parts) if parts[0] == "skvalue" else None
            if i is not None and not f"{here}.".startswith(f"{owner(parts, i)}."):
                offenders.append(f"{short(path)}:{line} {name}")
    return sorted(set(offenders))


def private_imports_of_skvalue():
    return private_imports(files())


def private_imports_of_tests():
    return private_imports(files(TESTS))


def private_path(name):
    """Whether a dotted path leads to or through what is private in skvalue."""
    parts = name.split(".")
    return parts[0] == "skvalue" and first_private(parts) is not None


def patches(path):
    """(line, what is set, name) of the attributes that a test file sets for a while.

    By `monkeypatch`, `unittest.mock` or `setattr`, with a path or an object and a name, or by an
    assignment to a private attribute of anything but `self` and `cls`.
    """
    for node in nodes(path):
        if isinstance(node, ast.Call):
            function = node.func
            name = getattr(function, "attr", getattr(function, "id", None))
            of = ast.unparse(getattr(function, "value", ast.Constant("")))
            if name in {"setattr", "delattr", "object"} or name == "patch" or of.endswith("patch"):
                first, second, *_ = [*node.args, None, None]
                if isinstance(getattr(first, "value", None), str):
                    yield node.lineno, "", first.value
                elif isinstance(getattr(second, "value", None), str):
                    yield node.lineno, ast.unparse(first), second.value
        elif isinstance(node, (ast.Assign, ast.AugAssign, ast.Delete)):
            for target in [node.target] if isinstance(node, ast.AugAssign) else node.targets:
                for part in ast.walk(target):
                    if isinstance(part, ast.Attribute) and is_private(part.attr):
                        of = ast.unparse(part.value)
                        if of not in ("self", "cls"):
                            yield node.lineno, of, part.attr


def private_patches_of_tests(paths=None):
    """Patches in tests of private modules, names and attributes of skvalue."""
    offenders = []
    for path in files(TESTS) if paths is None else paths:
        modules = names_of_modules(path)
        for line, of, name in patches(path):
            root, _, rest = of.partition(".")
            whole = f"{modules.get(root, of and '...')}.{rest}.{name}".replace("..", ".")
            whole = whole if of else name
            ours = any(part in definitions() for part in whole.split("."))
            if private_path(whole) or (of and is_private(name) and ours):
                offenders.append(f"{short(path)}:{line} {of or name}{'.' + name if of else ''}")
    return sorted(set(offenders))


def private_imports_of_examples():
    return private_imports(files(ROOT / "examples"))


# Private attributes of objects --------------------------------------------------------------

NAMED_TUPLE = {"_asdict", "_fields", "_make", "_replace"}
# Class attributes that scikit-learn asks of every estimator.
ASKED_FOR = {"_parameter_constraints", "_doc_link_module", "_doc_link_template"}


ACCESS = {"getattr", "hasattr", "setattr", "delattr"}


def attributes(path):
    """(line, name of the object or None, attribute, whether it is set), by name or as a string."""
    for node in nodes(path):
        of = name = None
        if isinstance(node, ast.Attribute):
            of, name, stored = node.value, node.attr, isinstance(node.ctx, ast.Store)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", None) in ACCESS:
            of, name = node.args[0], getattr(node.args[1], "value", None)
            stored = node.func.id == "setattr"
        if isinstance(name, str) and is_private(name):
            yield node.lineno, getattr(of, "id", None), name, stored


@cache
def definitions():
    """Private name -> files of skvalue that define it: in a class, a module or on an object."""
    found = {}
    for path in files():
        names = {name for _, _, name, stored in attributes(path) if stored}
        for node in nodes(path):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                names.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
            elif isinstance(node, ast.keyword):  # of what becomes attributes, by vars(self).update
                names.add(node.arg or "")
            elif isinstance(node, ast.Dict):
                keys = (getattr(key, "value", None) for key in node.keys)
                names.update(key for key in keys if isinstance(key, str))
        for name in names:
            if is_private(name):
                found.setdefault(name, set()).add(path)
    return found


def private_attributes_of_others():
    """Private attributes that are defined nowhere in skvalue: scikit-learn's, or torch's.

    They are read through `_utils/sklearn.py` alone; so are private methods of scikit-learn that
    a class of the house writes anew.
    """
    offenders = []
    for path in files():
        if path == PACKAGE / "_utils" / "sklearn.py":
            continue
        for line, of, name, _ in attributes(path):
            if name not in definitions() and name not in NAMED_TUPLE:
                offenders.append(f"{short(path)}:{line} {of or '...'}.{name}")
        for line, name in imported(path):
            parts = name.split(".")
            if parts[0] != "skvalue" and any(is_private(part) for part in parts):
                offenders.append(f"{short(path)}:{line} {name}")
    for cls in classes():
        theirs = {name for other in cls.__mro__ if not of_house(other) for name in vars(other)}
        private = {name for name in written(cls) if is_private(name)} - ASKED_FOR
        offenders += [f"{cls.__module__}.{cls.__qualname__}.{n}" for n in private & theirs]
    return sorted(set(offenders))


def private_attributes_of_rooms():
    """Private attributes that only other folders define, of what is no object of the own class."""
    offenders = []
    for path in files():
        for line, of, name, _ in attributes(path):
            rooms = {other.parent for other in definitions().get(name, ())}
            inside = not rooms or any(path.is_relative_to(room) for room in rooms)
            if of not in ("self", "cls", "other") and not inside:
                offenders.append(f"{short(path)}:{line} {of or '...'}.{name}")
    return sorted(set(offenders))


# Classes ------------------------------------------------------------------------------------


def of_house(cls):
    return cls.__module__.split(".")[0] == "skvalue"


@cache
def classes():
    """All classes that modules of skvalue define at their top or inside another class."""
    found = {}
    for info in pkgutil.walk_packages([str(PACKAGE)], "skvalue."):
        if info.name.endswith("__main__"):
            continue
        try:
            module = importlib.import_module(info.name)
        except ImportError as error:  # of an extra that is not installed
            if (error.name or "").split(".")[0] == "skvalue":
                raise
            continue
        for value in vars(module).values():
            if inspect.isclass(value) and value.__module__ == info.name:
                found[f"{info.name}.{value.__qualname__}"] = value
    return [found[name] for name in sorted(found)]


def public_classes():
    import skvalue

    public = [getattr(skvalue, name) for name in skvalue.__all__]
    for room in filter(inspect.ismodule, list(public)):
        public += [getattr(room, name) for name in getattr(room, "__all__", ())]
    public = {value for value in public if inspect.isclass(value) and of_house(value)}
    return sorted(public, key=lambda cls: cls.__qualname__)


@cache
def _class_nodes(path):
    found = {}

    def visit(node, above):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                found[".".join([*above, child.name])] = child
                visit(child, [*above, child.name])
            elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                visit(child, [*above, child.name, "<locals>"])
            else:
                visit(child, above)

    visit(tree(path), [])
    return found


@cache
def written(cls):
    """Name -> node of the methods written in a class; names bound to something are there too."""
    path = Path(sys.modules[cls.__module__].__file__)
    found = {}
    for node in _class_nodes(path)[cls.__qualname__].body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found.setdefault(node.name, node)
        elif isinstance(node, ast.Assign):
            found.update({t.id: node for t in node.targets if isinstance(t, ast.Name)})
    return found


def house_chain(cls):
    return [other for other in cls.__mro__ if of_house(other)]


def long_chains():
    return [
        f"{len(house_chain(cls))} {cls.__module__}.{cls.__qualname__}"
        for cls in classes()
        if len(house_chain(cls)) > MAX_CHAIN
    ]


def longest_chain():
    return max(len(house_chain(cls)) for cls in classes())


def mixins():
    """Mixins of the house that public classes derive from."""
    return sorted(
        {
            f"{other.__module__}.{other.__qualname__}"
            for cls in public_classes()
            for other in house_chain(cls)
            if other.__name__.endswith("Mixin")
        }
    )


def _is_function(cls, name):
    value = vars(cls).get(name)
    return inspect.isroutine(value) or isinstance(value, property) or hasattr(value, "__get__")


def _is_abstract(cls, name):
    value = vars(cls)[name]
    return bool(getattr(value, "__isabstractmethod__", False))


def _body(node):
    """Statements of a function without its docstring."""
    return node.body[1:] if ast.get_docstring(node) is not None else node.body


def has_empty_default(cls, name):
    """Whether a method does nothing unless a subclass writes it.

    Its docstring says what it is for; its body is empty or returns a constant, a name or an empty
    container.
    """
    node = written(cls).get(name)
    if not (isinstance(node, ast.FunctionDef) and ast.get_docstring(node)):
        return False
    body = _body(node)
    if not body:
        return True
    value = body[0].value if len(body) == 1 and isinstance(body[0], ast.Return) else 0
    if isinstance(value, ast.Tuple):
        return all(isinstance(item, (ast.Constant, ast.Name)) for item in value.elts)
    empty = isinstance(value, (ast.Dict, ast.List)) and not list(ast.iter_child_nodes(value))
    return value is None or empty or isinstance(value, (ast.Constant, ast.Name))


def _calls_super(node):
    return any(isinstance(part, ast.Name) and part.id == "super" for part in ast.walk(node))


def _parameters(node):
    return ast.dump(node.args) if isinstance(node, ast.FunctionDef) else None


def overridden_methods():
    """Implemented methods that a subclass writes again.

    Excepted: `__init__`, double-underscore methods that call `super()`, a `fit` (or
    `fit_transform`) of another signature that does one call, and methods with an empty default.
    """
    offenders = []
    for cls in classes():
        for name, node in written(cls).items():
            lower = [c for c in house_chain(cls)[1:] if name in written(c)]
            lower = [c for c in lower if _is_function(c, name) and not _is_abstract(c, name)]
            lower = [c for c in lower if not has_empty_default(c, name)]
            if not lower or name == "__init__":
                continue
            if name.startswith("__") and name.endswith("__") and _calls_super(node):
                continue
            other = _parameters(written(lower[0])[name])
            fits = name in ("fit", "fit_transform") and isinstance(node, ast.FunctionDef)
            if fits and len(_body(node)) == 1 and _parameters(node) != other:
                continue
            offenders.append(
                f"{cls.__module__}.{cls.__qualname__}.{name}, of {lower[0].__qualname__}"
            )
    return offenders


def hooks():
    """What an author of a valuer may write: abstract methods, and private ones with a default.

    Of the default ones those count that do nothing, and those that some method writes again.
    """
    base = [cls for cls in classes() if cls.__module__.startswith("skvalue.base")]
    found = set()
    for cls in base:
        if not any(name in ("fit", "transform") for c in house_chain(cls) for name in written(c)):
            continue  # no base class of valuers
        for name in filter(is_private, written(cls)):
            open_to_authors = _is_abstract(cls, name) or has_empty_default(cls, name)
            if _is_function(cls, name) and open_to_authors:
                found.add(name)
    authors = [cls for cls in classes() if cls.__module__.startswith("skvalue.valuers")]
    for cls in authors:
        below = [c for c in house_chain(cls) if c in base]
        names = {name for name in written(cls) if is_private(name)}
        found |= {name for name in names if any(_is_function(c, name) for c in below)}
    return sorted(found - ASKED_FOR)


# Files --------------------------------------------------------------------------------------


def private_files_at_the_root():
    return [short(path) for path in sorted(PACKAGE.glob("_*.py")) if is_private(path.stem)]


def flat_valuers():
    return [short(path) for path in sorted((PACKAGE / "valuers").glob("*.py"))]


def count_code(path):
    """Lines of a file that hold code: no docstring, comment or blank line; imports count."""
    text = path.read_text(encoding="utf-8")
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            docstrings.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    silent = {
        tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
        tokenize.ENDMARKER,
    }  # fmt: skip
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in silent:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - docstrings)


def code_lines(folder=PACKAGE):
    return sum(count_code(path) for path in files(folder))


# Names and calls ----------------------------------------------------------------------------


def called_parameters():
    """Parameters of functions of `neighbors` that are called, or documented as callable."""
    offenders = []

    def visit(node, parameters, path):
        for child in ast.iter_child_nodes(node):
            inner = parameters
            if isinstance(child, (ast.FunctionDef, ast.Lambda)):
                args = child.args
                every = [*args.posonlyargs, *args.args, *args.kwonlyargs]
                every += [arg for arg in (args.vararg, args.kwarg) if arg is not None]
                inner = parameters | {arg.arg for arg in every} - {"cls"}
                for arg in every:
                    if arg.annotation is not None and "Callable" in ast.dump(arg.annotation):
                        offenders.append(f"{short(path)}:{child.lineno} {arg.arg}: annotated")
            called = getattr(child.func, "id", None) if isinstance(child, ast.Call) else None
            if called in parameters - {"metric"}:
                offenders.append(f"{short(path)}:{child.lineno} {called}()")
            visit(child, inner, path)

    for path in files(PACKAGE / "neighbors"):
        visit(tree(path), frozenset(), path)
        for i, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            name, _, kind = line.strip().partition(" : ")
            if name.isidentifier() and "callable" in kind and name != "metric":
                offenders.append(f"{short(path)}:{i} {line.strip()}")
    return offenders


def judges():
    """Lines that call validation points judges."""
    return [
        f"{short(path)}:{i} {line.strip()}"
        for path in files()
        for i, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if "judg" in line.lower()
    ]


# Fitted valuers -----------------------------------------------------------------------------

# Small and quick; parameters that a class does not have are left out.
REQUIRED = {"ScoresValuer": {"scores": lambda X, y, X_val, y_val: y == y_val[:, None]}}
SMALL = {
    "max_evaluations": 200, "n_estimators": 20, "n_rounds": 2, "n_permutations": 2,
    "random_state": 0,
}  # fmt: skip
PRIVATE = {
    "epsilon": 1.0, "delta": 1e-5, "l2": 1.0, "n_layers": 3, "max_evaluations": None,
    "noise_random_state": 0,
}  # fmt: skip
# By the beginning of their names: what scikit-learn itself sets on an estimator.
OF_SCIKIT_LEARN = (
    "_n_features_out", "_skl", "_sklearn", "_callback", "_parent_callback", "_metadata_request",
)  # fmt: skip


def valuers():
    """All public valuers of rows."""
    import skvalue

    found = (getattr(skvalue, name) for name in skvalue.__all__ if name.endswith("Valuer"))
    return [cls for cls in found if not inspect.isabstract(cls)]


def build(cls, **parameters):
    valuer = cls(**REQUIRED.get(cls.__name__, {}))
    known = valuer.get_params()
    given = {**SMALL, **parameters}
    return valuer.set_params(**{name: given[name] for name in given if name in known})


@cache
def fitted():
    """Name -> valuer, fitted in the ways that it has: plain, with groups, privately."""
    import numpy as np

    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = np.where(X[:, 0] > 0, "yes", "no")
    X_val, y_val = X[:12] + 0.1, y[:12]
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for cls in valuers():
            name = cls.__name__
            takes = inspect.signature(cls.fit).parameters
            points = {"X_val": X_val, "y_val": y_val} if "X_val" in takes else {}
            points = {} if name == "DataOOBValuer" else points
            found[name] = build(cls).fit(X, y)
            found[f"{name}, groups"] = build(cls).fit(X, y, groups=np.arange(40) % 8, **points)
            if "epsilon" in inspect.signature(cls).parameters:
                private = build(cls, **PRIVATE)
                try:
                    found[f"{name}, private"] = private.fit(X, y, **points)
                except ValueError as error:
                    found[f"{name}, private"] = str(error)
    return found


def private_state():
    """Number and names of the private attributes of each fitted valuer, the most first."""
    found = {}
    for name, valuer in fitted().items():
        if not isinstance(valuer, str):
            own = [n for n in vars(valuer) if is_private(n) and not n.startswith(OF_SCIKIT_LEARN)]
            found[name] = own
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))


def crowded_valuers():
    return [
        f"{name}: {len(own)} {' '.join(own)}"
        for name, own in private_state().items()
        if len(own) > MAX_PRIVATE
    ]


def shown_work():
    """Functions that compute, and run when a notebook shows a valuer: engines and hooks."""
    engines = {"neighbors", "gradients", "games", "estimation", "samplers", "semivalues"}
    computing = {*hooks(), "validation_error_"}
    offenders = []
    for name, valuer in fitted().items():
        if isinstance(valuer, str):
            continue
        called = set()

        def follow(frame, event, arg, called=called):
            path = frame.f_code.co_filename
            if event == "call" and path.startswith(str(PACKAGE)):
                called.add((Path(path), frame.f_code.co_name))

        sys.setprofile(follow)
        try:
            valuer._repr_html_()
        finally:
            sys.setprofile(None)
        for path, function in sorted(called):
            if path.relative_to(PACKAGE).parts[0] in engines or function in computing:
                offenders.append(f"{name}: {short(path)} {function}")
    return offenders


def shown_private_values():
    """Attributes for the curator alone that a notebook shows of a private fit."""
    offenders = []
    for name, valuer in fitted().items():
        if isinstance(valuer, str) or valuer._takes.values_are_public:
            continue
        if name.endswith("private"):
            html = valuer._repr_html_()
            offenders += [
                f"{name}: {attribute}"
                for attribute in ("values_", "values_error_", "validation_error_")
                if f"{attribute}<" in html
            ]
    return offenders


MEASURES = {
    "private imports across rooms": (private_imports_of_skvalue, 0),
    "private attributes of scikit-learn": (private_attributes_of_others, 0),
    "private attributes across rooms": (private_attributes_of_rooms, 0),
    f"classes with more than {MAX_CHAIN} house classes in their MRO": (long_chains, 0),
    "mixins of the house on public classes": (mixins, 0),
    "implemented methods written again": (overridden_methods, 0),
    "hooks of an author": (hooks, MAX_HOOKS),
    "private files at the root": (private_files_at_the_root, 0),
    "files flat in valuers/": (flat_valuers, MAX_FLAT),
    "callables in neighbors": (called_parameters, 0),
    f"valuers with more than {MAX_PRIVATE} private attributes": (crowded_valuers, 0),
    "work to show a valuer": (shown_work, 0),
    "private values shown": (shown_private_values, 0),
    "private imports of tests": (private_imports_of_tests, 0),
    "patches of private names by tests": (private_patches_of_tests, 0),
}
# Printed, but not (yet) asked for by a test.
REPORTED = {
    "private imports of examples": private_imports_of_examples,
    "lines with 'judg'": judges,
}


def main():
    if "--lines" in sys.argv:
        print(f"{code_lines(Path(sys.argv[sys.argv.index('--lines') + 1])):,} lines of code")
        return
    sys.path.insert(0, str(ROOT))
    rows = [("lines of code", code_lines(), MAX_CODE_LINES, [])]
    rows.append(("house classes in the longest MRO", longest_chain(), MAX_CHAIN, []))
    for name, (measure, limit) in MEASURES.items():
        offenders = measure()
        rows.append((name, len(offenders), limit, offenders))
    for name, measure in REPORTED.items():
        offenders = measure()
        rows.append((name, len(offenders), "", offenders))
    for name, number, limit, offenders in rows:
        print(f"{name:<58} {number:>7,}   {f'at most {limit:,}' if limit != '' else ''}")
        if "--list" in sys.argv:
            print(*(f"    {offender}" for offender in offenders), sep="\n")


if __name__ == "__main__":
    main()
