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
from source_files import (
    PACKAGE,
    ROOT,
    TESTS,
    bound_modules,
    dotted,
    files,
    imported,
    is_private,
    modules,
    nodes,
    private_attributes_of,
    short,
)

__all__ = ["MEASURES", "PACKAGE", "ROOT", "dotted", "files", "imported", "short"]

MAX_CHAIN = 4  # house classes in an MRO
MAX_HOOKS = 7  # methods that an author of a valuer may write


# Private names of other rooms ---------------------------------------------------------


def first_private(parts):
    """Index of the first private part of an import path of skvalue, or None.

    `_utils` is public.
    """
    for i, part in enumerate(parts):
        if is_private(part) and not (i == 1 and part == "_utils"):
            return i
    return None


def may_use(folder, parts, i):
    """Whether a file of a folder, a dotted path, may use the private `parts[i]`."""
    owner = ".".join(parts[:i])
    is_folder = owner in modules() and modules()[owner].name == "__init__.py"
    if not is_folder:
        owner = ".".join(parts[: i - 1])
    return f"{folder}.".startswith(f"{owner}.")


def names_used(path):
    """Lines and absolute paths of names that a file imports, or reads of a module."""
    for line, name, _ in imported(path):
        yield line, name
    bound = bound_modules(path)
    for node in nodes(path):
        if isinstance(node, ast.Attribute):
            module = bound.get(getattr(node.value, "id", None))
            if module is not None:
                yield node.lineno, f"{module}.{node.attr}"


def private_imports(folder=PACKAGE):
    """Uses of private modules and names of skvalue from outside their folder."""
    offenders = set()
    for path in files(folder):
        own_folder = ".".join(path.relative_to(ROOT).parent.parts)
        for line, name in names_used(path):
            parts = name.split(".")
            if parts[0] != "skvalue":
                continue
            i = first_private(parts)
            if i is not None and not may_use(own_folder, parts, i):
                offenders.add(f"{short(path)}:{line} {name}")
    return sorted(offenders)


def names_set(node):
    """Names that a node of a test sets, by a patch or by an assignment."""
    if isinstance(node, ast.Call):
        function = ast.unparse(node.func)
        if re.search(r"(setattr|delattr|\bobject|\bpatch)$", function):
            return [str(getattr(arg, "value", "")) for arg in node.args[:2]]
    if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
        is_own = ast.unparse(node.value) in ("self", "cls")
        return [] if is_own else [node.attr]
    return []


def private_patches_of_tests():
    """Patches in tests of private modules, names and attributes of skvalue."""
    private = set(definitions())
    private.update(path.stem for path in files() if is_private(path.stem))
    offenders = []
    for path in files(TESTS):
        for node in nodes(path):
            for name in names_set(node):
                if private & set(name.split(".")):
                    offenders.append(f"{short(path)}:{node.lineno} {name}")
    return offenders


# Private attributes of objects --------------------------------------------------------

NAMED_TUPLE = {"_asdict", "_fields", "_make", "_replace"}
# Class attributes that scikit-learn asks of every estimator.
ASKED_FOR = {"_parameter_constraints", "_doc_link_module", "_doc_link_template"}


@cache
def definitions():
    """Private name -> files of skvalue that define it.

    It may be defined in a class, in a module or on an object.
    """
    found = {}
    for path in files():
        names = {name for _, _, name, is_set in private_attributes_of(path) if is_set}
        for node in nodes(path):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                names.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
            # What becomes attributes by vars(self).update.
            elif isinstance(node, ast.keyword):
                names.add(node.arg or "")
            elif isinstance(node, ast.Dict):
                names.update(str(getattr(key, "value", "")) for key in node.keys)
        for name in filter(is_private, names):
            found.setdefault(name, set()).add(path)
    return found


def private_attributes():
    """Private attributes of objects, and private methods, that are another's.

    Those of skvalue are for the folder that defines them. Those of scikit-learn or
    torch are read through `_utils/sklearn.py` alone, and a class of the house writes
    none of scikit-learn's private methods anew.
    """
    offenders = set()
    for path in files():
        if path != PACKAGE / "_utils" / "sklearn.py":
            offenders.update(_foreign_attributes(path))
            offenders.update(_foreign_imports(path))
    for cls in classes():
        foreign = set()
        for other in cls.__mro__:
            if not of_house(other):
                foreign.update(vars(other))
        private = {name for name in written(cls) if is_private(name)} - ASKED_FOR
        offenders.update(f"{name_of(cls)}.{name}" for name in private & foreign)
    return sorted(offenders)


def _foreign_attributes(path):
    for line, owner, name, _ in private_attributes_of(path):
        folders = {definition.parent for definition in definitions().get(name, ())}
        is_inside = any(path.is_relative_to(folder) for folder in folders)
        is_own = folders and owner in ("self", "cls", "other")
        if not (is_inside or is_own or name in NAMED_TUPLE):
            yield f"{short(path)}:{line} {owner or '...'}.{name}"


def _foreign_imports(path):
    for line, name, _ in imported(path):
        is_foreign = not name.startswith("skvalue.")
        if is_foreign and any(is_private(part) for part in name.split(".")):
            yield f"{short(path)}:{line} {name}"


# Classes ------------------------------------------------------------------------------


def of_house(cls):
    return cls.__module__.split(".")[0] == "skvalue"


def name_of(cls):
    return f"{cls.__module__}.{cls.__qualname__}"


@cache
def classes():
    """All classes that modules of skvalue define, at their top or in a class."""
    found = {}
    for info in pkgutil.walk_packages([str(PACKAGE)], "skvalue."):
        if info.name.endswith("__main__"):
            continue
        if info.name not in modules():  # compiled from Cython
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
    """Name -> node of the methods of a class, and of the names that it binds."""
    path = Path(sys.modules[cls.__module__].__file__)
    found = {}
    for node in _class_nodes(path)[cls.__qualname__].body:
        if isinstance(node, ast.FunctionDef):
            found.setdefault(node.name, node)
        elif isinstance(node, ast.Assign):
            names = [
                target.id for target in node.targets if isinstance(target, ast.Name)
            ]
            found.update(dict.fromkeys(names, node))
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
    displays = (ast.Tuple, ast.List, ast.Dict)
    plain = (ast.Return, ast.Constant, ast.Name, ast.Load, *displays)
    inside = [part for statement in _body(node) for part in ast.walk(statement)]
    return all(isinstance(part, plain) for part in inside)


def overridden_methods():
    """Implemented methods that a subclass writes again.

    Excepted: `__init__`, double-underscore methods that call `super()`, a `fit` (or
    `fit_transform`) of another signature without branches, and methods with an empty
    default.
    """
    offenders = []
    for cls in classes():
        for name, node in written(cls).items():
            bases = [base for base in house_chain(cls)[1:] if implements(base, name)]
            if bases and not may_override(name, node, written(bases[0])[name]):
                offenders.append(f"{name_of(cls)}.{name}, of {bases[0].__qualname__}")
    return offenders


def implements(cls, name):
    """Whether a class has a method of the name that does something."""
    if name not in written(cls) or not _is_function(cls, name):
        return False
    return not _is_abstract(cls, name) and not has_empty_default(cls, name)


def may_override(name, node, of_base):
    """Whether a method may be written again; nodes of it and of that of the base."""
    if name == "__init__":
        return True
    if name.startswith("__"):
        return "super()" in ast.unparse(node)
    if name not in ("fit", "fit_transform"):
        return False
    is_straight = all(
        isinstance(line, (ast.Assign, ast.Return)) for line in _body(node)
    )
    return is_straight and ast.unparse(node.args) != ast.unparse(of_base.args)


def hooks():
    """What an author of a valuer may write: abstract methods, and private ones with a
    default.

    Of the default ones those count that do nothing, and those that some method writes
    again.
    """
    bases = [cls for cls in classes() if cls.__module__.startswith("skvalue.base")]
    found = set()
    for cls in bases:
        inherited = {name for other in house_chain(cls) for name in written(other)}
        if not inherited & {"fit", "transform"}:
            continue
        for name in filter(is_private, written(cls)):
            if not _is_function(cls, name):
                continue
            if _is_abstract(cls, name) or has_empty_default(cls, name):
                found.add(name)
    for cls in classes():
        if cls.__module__.startswith("skvalue.valuers"):
            above = [base for base in house_chain(cls) if base in bases]
            for name in filter(is_private, written(cls)):
                if any(_is_function(base, name) for base in above):
                    found.add(name)
    return sorted(found - ASKED_FOR)


# Files --------------------------------------------------------------------------------


def charges():
    """Calls that charge a ledger."""
    return [
        f"{short(path)}:{node.lineno}"
        for path, node in calls(PACKAGE)
        if getattr(node.func, "attr", None) == "charge"
    ]


def calls(folder):
    """Files of a folder and the calls in them."""
    for path in files(folder):
        for node in nodes(path):
            if isinstance(node, ast.Call):
                yield path, node


def called_parameters():
    """Parameters of functions of `neighbors` that are called: calls go down."""
    offenders = set()
    for path in files(PACKAGE / "neighbors"):
        for node in nodes(path):
            if isinstance(node, (ast.FunctionDef, ast.Lambda)):
                offenders.update(_called_parameters_of(path, node))
    return sorted(offenders)


def _called_parameters_of(path, function):
    arguments = ast.walk(function.args)
    names = {arg.arg for arg in arguments if isinstance(arg, ast.arg)}
    names -= {"cls", "metric"}
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) in names:
            yield f"{short(path)}:{node.lineno} {node.func.id}()"


# Fitted valuers -----------------------------------------------------------------------

# Small and quick; parameters that a class does not have are left out.
REQUIRED = {"ScoresValuer": {"scores": lambda X, y, X_val, y_val: y == y_val[:, None]}}
SMALL = {
    "max_evaluations": 200,
    "n_estimators": 20,
    "n_rounds": 2,
    "n_permutations": 2,
    "random_state": 0,
}
PRIVATE = {
    "epsilon": 1.0,
    "delta": 1e-5,
    "l2": 1.0,
    "n_layers": 3,
    "max_evaluations": None,
    "noise_random_state": 0,
}


def build(cls, **parameters):
    valuer = cls(**REQUIRED.get(cls.__name__, {}))
    parameters = {**SMALL, **parameters}
    names = parameters.keys() & valuer.get_params().keys()
    return valuer.set_params(**{name: parameters[name] for name in names})


def fits_of(cls):
    """Valuers of a class, fitted in the ways that it has, by these ways."""
    from problems import two_classes

    problem = two_classes(0, 40, 12, noise=0.2)
    points = {} if cls.__name__ == "DataOOBValuer" else problem.points
    groups = np.arange(40) % 8
    fitted = {
        "plain": build(cls).fit(*problem.rows),
        "groups": build(cls).fit(*problem.rows, groups=groups, **points),
    }
    if "epsilon" in inspect.signature(cls).parameters:
        fitted["private"] = build(cls, **PRIVATE).fit(*problem.rows, **points)
    return fitted


@cache
def fitted():
    """Name -> valuer, fitted in the ways that it has: plain, with groups, privately."""
    import skvalue

    found = {}
    for name in skvalue.__all__:
        cls = getattr(skvalue, name)
        if name.endswith("Valuer") and not inspect.isabstract(cls):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for way, valuer in fits_of(cls).items():
                    found[f"{name}, {way}"] = valuer
    return found


ENGINES = {"neighbors", "derivatives", "linear", "games", "estimation", "samplers"}


def shown_work():
    """Functions that compute, and run when a notebook shows a valuer."""
    computing = {*hooks(), "validation_error_"}
    offenders = set()
    for name, valuer in fitted().items():

        def follow(frame, event, _, name=name):
            code = frame.f_code
            if event != "call" or not code.co_filename.startswith(str(PACKAGE)):
                return
            path = Path(code.co_filename)
            room = path.relative_to(PACKAGE).parts[0]
            if room in ENGINES or code.co_name in computing:
                offenders.add(f"{name}: {short(path)} {code.co_name}")

        sys.setprofile(follow)
        try:
            valuer._repr_html_()
        finally:
            sys.setprofile(None)
    return sorted(offenders)


def shown_private_values():
    """Attributes for the curator alone that a notebook shows of a private fit."""
    offenders = []
    for name, valuer in fitted().items():
        if name.endswith("private") and not valuer._capabilities.values_are_public:
            html = valuer._repr_html_()
            for attribute in ("values_", "values_error_", "validation_error_"):
                if f"{attribute}<" in html:
                    offenders.append(f"{name}: {attribute}")
    return offenders


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
