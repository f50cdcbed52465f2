"""What can be counted about the structure of skvalue; `python tests/house.py` prints
it.

Every function of `MEASURES` returns a list of offenders: `tests/test_house.py` asks
that it is short enough. `--list` prints the offenders too.
"""

import ast
import importlib
import inspect
import pkgutil
import re
import sys
import warnings
from functools import cache, partial
from pathlib import Path

import numpy as np

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
PACKAGE = ROOT / "skvalue"

MAX_CHAIN = 4  # house classes in an MRO
MAX_HOOKS = 7  # methods that an author of a valuer may write


# Files and names ----------------------------------------------------------------------


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
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules():
    """Import path -> file, of all modules of skvalue."""
    return {dotted(path): path for path in files()}


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


def imported(path):
    """(line, absolute import path, name bound) of all imports of a file, in functions
    too."""
    package = path.relative_to(ROOT).parent.parts
    for node in nodes(path):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield (
                    node.lineno,
                    alias.name,
                    alias.asname or alias.name.partition(".")[0],
                )
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*above, *filter(None, [node.module])])
            for alias in node.names:
                yield node.lineno, f"{module}.{alias.name}", alias.asname or alias.name


def bound_modules(path):
    """Names that a file binds to modules of skvalue, and their import paths."""
    return {name: target for _, target, name in imported(path) if target in modules()}


def first_private(parts):
    """Index of the first private part of an import path of skvalue; `_utils` is
    public."""
    for i, part in enumerate(parts):
        if is_private(part) and not (i == 1 and part == "_utils"):
            return i
    return None


def may_use(here, parts, i):
    """Whether a file of the folder `here` may use the private name `parts[i]`."""
    above = ".".join(parts[:i])
    is_folder = above in modules() and modules()[above].name == "__init__.py"
    return f"{here}.".startswith(f"{above if is_folder else '.'.join(parts[: i - 1])}.")


def private_imports(folder=PACKAGE):
    """Imports of private modules and names of skvalue from outside their folder."""
    offenders = set()
    for path in files(folder):
        here = ".".join(path.relative_to(ROOT).parent.parts)
        used, bound = (
            [(line, name) for line, name, _ in imported(path)],
            bound_modules(path),
        )
        for node in nodes(path):
            if (
                isinstance(node, ast.Attribute)
                and getattr(node.value, "id", None) in bound
            ):
                used.append((node.lineno, f"{bound[node.value.id]}.{node.attr}"))
        for line, name in used:
            parts = name.split(".")
            i = first_private(parts) if parts[0] == "skvalue" else None
            if i is not None and not may_use(here, parts, i):
                offenders.add(f"{short(path)}:{line} {name}")
    return sorted(offenders)


def set_for_a_while(node):
    """Names that a statement of a test sets: by a patch of them, or by an
    assignment."""
    if isinstance(node, ast.Call):
        function = ast.unparse(node.func)
        if re.search(r"(setattr|delattr|\bobject|\bpatch)$", function):
            return [str(getattr(arg, "value", "")) for arg in node.args[:2]]
    elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
        return [node.attr] if ast.unparse(node.value) not in ("self", "cls") else []
    return []


def private_patches_of_tests():
    """Patches in tests of private modules, names and attributes of skvalue."""
    private = {*definitions(), *filter(is_private, (path.stem for path in files()))}
    return [
        f"{short(path)}:{node.lineno} {name}"
        for path in files(TESTS)
        for node in nodes(path)
        for name in set_for_a_while(node)
        if private & {*name.split(".")}
    ]


# Private attributes of objects --------------------------------------------------------

NAMED_TUPLE = {"_asdict", "_fields", "_make", "_replace"}
# Class attributes that scikit-learn asks of every estimator.
ASKED_FOR = {"_parameter_constraints", "_doc_link_module", "_doc_link_template"}
ACCESS = {"getattr", "hasattr", "setattr", "delattr"}


def attributes(path):
    """(line, name of the object or None, attribute, whether it is set), by name or as a
    string."""
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
    """Private name -> files of skvalue that define it: in a class, a module or on an
    object."""
    found = {}
    for path in files():
        names = {name for _, _, name, stored in attributes(path) if stored}
        for node in nodes(path):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                names.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
            elif isinstance(
                node, ast.keyword
            ):  # of what becomes attributes, by vars(self).update
                names.add(node.arg or "")
            elif isinstance(node, ast.Dict):
                names.update(str(getattr(key, "value", "")) for key in node.keys)
        for name in filter(is_private, names):
            found.setdefault(name, set()).add(path)
    return found


def private_attributes():
    """Private attributes of what is no object of the own class, that other folders
    define.

    Those of scikit-learn or torch are read through `_utils/sklearn.py` alone; so are
    private methods of scikit-learn that a class of the house writes anew.
    """
    offenders = set()
    for path in filter(lambda path: path != PACKAGE / "_utils" / "sklearn.py", files()):
        for line, of, name, _ in attributes(path):
            rooms = {other.parent for other in definitions().get(name, ())}
            inside = any(path.is_relative_to(room) for room in rooms)
            own = (rooms and of in ("self", "cls", "other")) or name in NAMED_TUPLE
            if not inside and not own:
                offenders.add(f"{short(path)}:{line} {of or '...'}.{name}")
        for line, name, _ in imported(path):
            if not name.startswith("skvalue.") and any(
                map(is_private, name.split("."))
            ):
                offenders.add(f"{short(path)}:{line} {name}")
    for cls in classes():
        theirs = {
            name for other in cls.__mro__ if not of_house(other) for name in vars(other)
        }
        private = {name for name in written(cls) if is_private(name)} - ASKED_FOR
        offenders.update(f"{name_of(cls)}.{name}" for name in private & theirs)
    return sorted(offenders)


# Classes ------------------------------------------------------------------------------


def of_house(cls):
    return cls.__module__.split(".")[0] == "skvalue"


def name_of(cls):
    return f"{cls.__module__}.{cls.__qualname__}"


@cache
def classes():
    """All classes that modules of skvalue define at their top or inside another
    class."""
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
                found[name_of(value)] = value
    return [found[name] for name in sorted(found)]


@cache
def _class_nodes(path):
    """Qualified name -> node of the classes of a file, those in functions left out."""
    found = {}

    def visit(node, above):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                found[f"{above}{child.name}"] = child
            named = isinstance(child, (ast.ClassDef, ast.FunctionDef))
            visit(child, f"{above}{child.name}." if named else above)

    visit(nodes(path)[0], "")
    return found


@cache
def written(cls):
    """Name -> node of the methods written in a class; names bound to something are
    there too."""
    path = Path(sys.modules[cls.__module__].__file__)
    found = {}
    for node in _class_nodes(path)[cls.__qualname__].body:
        if isinstance(node, ast.FunctionDef):
            found.setdefault(node.name, node)
        elif isinstance(node, ast.Assign):
            found.update({t.id: node for t in node.targets if isinstance(t, ast.Name)})
    return found


def house_chain(cls):
    return [other for other in cls.__mro__ if of_house(other)]


def long_chains():
    return [name_of(cls) for cls in classes() if len(house_chain(cls)) > MAX_CHAIN]


def mixins():
    """Mixins of the house."""
    return [name_of(cls) for cls in classes() if cls.__name__.endswith("Mixin")]


def _is_function(cls, name):
    value = vars(cls).get(name)
    return inspect.isroutine(value) or hasattr(value, "__get__")


def _is_abstract(cls, name):
    return bool(getattr(vars(cls)[name], "__isabstractmethod__", False))


def _body(node):
    """Statements of a function without its docstring."""
    return node.body[1:] if ast.get_docstring(node) is not None else node.body


def has_empty_default(cls, name):
    """Whether a documented method does nothing unless a subclass writes it.

    Its body is empty or returns constants or names.
    """
    node = written(cls).get(name)
    if not (isinstance(node, ast.FunctionDef) and ast.get_docstring(node)):
        return False
    plain = (
        ast.Return,
        ast.Constant,
        ast.Name,
        ast.Tuple,
        ast.List,
        ast.Dict,
        ast.Load,
    )
    return all(
        isinstance(part, plain) for line in _body(node) for part in ast.walk(line)
    )


def overridden_methods():
    """Implemented methods that a subclass writes again.

    Excepted: `__init__`, double-underscore methods that call `super()`, a `fit` (or
    `fit_transform`) of another signature that does one call, and methods with an empty
    default.
    """
    offenders = []
    for cls in classes():
        for name, node in written(cls).items():
            lower = [
                other
                for other in house_chain(cls)[1:]
                if name in written(other)
                and _is_function(other, name)
                and not _is_abstract(other, name)
                and not has_empty_default(other, name)
            ]
            if not lower or name == "__init__":
                continue
            if name.startswith("__") and "super()" in ast.unparse(node):
                continue
            if name in ("fit", "fit_transform") and len(_body(node)) == 1:
                both = [
                    ast.unparse(each.args) for each in (node, written(lower[0])[name])
                ]
                if both[0] != both[1]:
                    continue
            offenders.append(f"{name_of(cls)}.{name}, of {lower[0].__qualname__}")
    return offenders


def hooks():
    """What an author of a valuer may write: abstract methods, and private ones with a
    default.

    Of the default ones those count that do nothing, and those that some method writes
    again.
    """
    base = [cls for cls in classes() if cls.__module__.startswith("skvalue.base")]
    found = set()
    for cls in base:
        if any(
            name in ("fit", "transform")
            for c in house_chain(cls)
            for name in written(c)
        ):
            private = [
                n for n in written(cls) if is_private(n) and _is_function(cls, n)
            ]
            found |= {
                n for n in private if _is_abstract(cls, n) or has_empty_default(cls, n)
            }
    for cls in classes():
        if cls.__module__.startswith("skvalue.valuers"):
            below = [c for c in house_chain(cls) if c in base]
            private = filter(is_private, written(cls))
            found |= {
                name for name in private if any(_is_function(c, name) for c in below)
            }
    return sorted(found - ASKED_FOR)


# Files --------------------------------------------------------------------------------


def charges():
    """Calls that charge a ledger."""
    return [
        f"{short(path)}:{node.lineno}"
        for path in files()
        for node in nodes(path)
        if isinstance(node, ast.Call) and getattr(node.func, "attr", None) == "charge"
    ]


def called_parameters():
    """Parameters of functions of `neighbors` that are called: calls go down."""
    offenders = []
    for path in files(PACKAGE / "neighbors"):
        for node in nodes(path):
            if isinstance(node, (ast.FunctionDef, ast.Lambda)):
                names = {
                    arg.arg for arg in ast.walk(node.args) if isinstance(arg, ast.arg)
                }
                offenders += [
                    f"{short(path)}:{part.lineno} {part.func.id}()"
                    for part in ast.walk(node)
                    if isinstance(part, ast.Call)
                    and getattr(part.func, "id", None) in names - {"cls", "metric"}
                ]
    return sorted(set(offenders))


# Fitted valuers -----------------------------------------------------------------------

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


def build(cls, **parameters):
    valuer = cls(**REQUIRED.get(cls.__name__, {}))
    given = {**SMALL, **parameters}
    return valuer.set_params(
        **{name: given[name] for name in given if name in valuer.get_params()}
    )


@cache
def fitted():
    """Name -> valuer, fitted in the ways that it has: plain, with groups, privately."""
    from problems import two_classes

    import skvalue

    problem = two_classes(0, 40, 12, noise=0.2)
    found = {}
    for name in skvalue.__all__:
        cls = getattr(skvalue, name)
        if name.endswith("Valuer") and not inspect.isabstract(cls):
            points = {} if name == "DataOOBValuer" else problem.points
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found[name] = build(cls).fit(*problem.rows)
                found[f"{name}, groups"] = build(cls).fit(
                    *problem.rows, groups=np.arange(40) % 8, **points
                )
                if "epsilon" in inspect.signature(cls).parameters:
                    private = build(cls, **PRIVATE)
                    found[f"{name}, private"] = private.fit(*problem.rows, **points)
    return found


def shown_work():
    """Functions that compute, and run when a notebook shows a valuer: engines and
    hooks."""
    engines = {
        "neighbors",
        "gradients",
        "derivatives",
        "games",
        "linear",
        "estimation",
        "samplers",
    }
    computing = {*hooks(), "validation_error_"}
    offenders = set()
    for name, valuer in fitted().items():

        def follow(frame, event, _, name=name):
            code = frame.f_code
            if event == "call" and code.co_filename.startswith(str(PACKAGE)):
                path = Path(code.co_filename)
                room = path.relative_to(PACKAGE).parts[0]
                if room in engines or code.co_name in computing:
                    offenders.add(f"{name}: {short(path)} {code.co_name}")

        sys.setprofile(follow)
        try:
            valuer._repr_html_()
        finally:
            sys.setprofile(None)
    return sorted(offenders)


def shown_private_values():
    """Attributes for the curator alone that a notebook shows of a private fit."""
    curators = ("values_", "values_error_", "validation_error_")
    return [
        f"{name}: {attribute}"
        for name, valuer in fitted().items()
        if name.endswith("private") and not valuer._capabilities.values_are_public
        for attribute in curators
        if f"{attribute}<" in valuer._repr_html_()
    ]


MEASURES = {
    "sites that charge a ledger": (charges, 2),  # a release, and `skvalue ledger spend`
    "private imports across rooms": (private_imports, 0),
    "private attributes across rooms, or of scikit-learn": (private_attributes, 0),
    f"classes with more than {MAX_CHAIN} house classes in their MRO": (long_chains, 0),
    "mixins": (mixins, 0),
    "implemented methods written again": (overridden_methods, 0),
    "hooks of an author": (hooks, MAX_HOOKS),
    "called parameters in neighbors": (called_parameters, 0),
    "work to show a valuer": (shown_work, 0),
    "private values shown": (shown_private_values, 0),
    "private imports of tests": (partial(private_imports, TESTS), 0),
    "patches of private names by tests": (private_patches_of_tests, 0),
}


def main():
    sys.path.insert(0, str(ROOT))
    for name, (measure, limit) in MEASURES.items():
        offenders = measure()
        print(f"{name:<58} {len(offenders):>7,}   at most {limit:,}")
        if "--list" in sys.argv:
            print(*(f"    {offender}" for offender in offenders), sep="\n")


if __name__ == "__main__":
    main()
