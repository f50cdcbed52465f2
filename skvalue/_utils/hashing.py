"""A hash of data and parameters that is the same in every process."""

import copyreg
import functools
import hashlib
import re
import sys
import sysconfig
from types import CodeType, FunctionType, MethodType, ModuleType

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

_PLAIN = (str, bytes, int, float, complex, slice, range, type(None), type(Ellipsis))
_STANDARD = sysconfig.get_path("stdlib")
_CODE = ("code", "consts", "names", "exceptiontable")
_NO_CODE = {"__module__", "__dict__", "__weakref__", "__doc__", "__firstlineno__"}
_NO_CODE |= {"__slotnames__", "__annotations__", "__static_attributes__"}  # set when asked for


def fingerprint(*parts):
    """Hash of data and parameters, the same in every process.

    Hashed are the bytes of arrays, class and parameters of estimators, names of functions and
    classes of installed packages, the code of all others together with the defaults, the closure
    and the globals that they use, and the state of other objects as for `pickle`. An estimator
    inside a callable or a `FrozenEstimator` is never cloned, so that its fitted state counts.

    >>> fingerprint(np.arange(3), {"a": 1}) == fingerprint(np.arange(3), {"a": 1})
    True
    >>> fingerprint(lambda x: max(x)) == fingerprint(lambda x: min(x))
    False
    """
    return _Hasher().digest(parts, cloned=True).hex()


class _Hasher:
    """Digests of parts; objects met again, in cycles too, are hashed once."""

    def __init__(self):
        self._known = {}  # id, cloned -> object (so that its id stays taken) and digest

    def digest(self, part, cloned=False):
        """Digest of a part; of an estimator that is `cloned`, without its fitted state."""
        if isinstance(part, _PLAIN):
            return _joined(type(part).__name__, repr(part))
        key = id(part), cloned
        if key not in self._known:
            self._known[key] = part, b"cycle"
            self._known[key] = part, self._of(part, cloned)
        return self._known[key][1]

    def _of(self, part, cloned):
        if isinstance(part, np.ndarray) and not part.dtype.hasobject:
            return _joined(f"{part.dtype}{part.shape}", part.tobytes())
        if isinstance(part, np.ndarray):
            return _joined(f"objects{part.shape}", self._items(part.ravel().tolist(), cloned))
        if sparse.issparse(part):
            rows = sparse.csr_array(part)
            return self._all("sparse", rows.shape, rows.data, rows.indices, rows.indptr)
        if type(part) in (list, tuple):
            return _joined(type(part).__name__, self._items(part, cloned))
        if type(part) in (dict, set, frozenset):
            items = part.items() if type(part) is dict else part
            return _joined(type(part).__name__, *sorted(self._each(items)))
        if cloned and _is_cloned(part):
            parameters = sorted(part.get_params(deep=False).items())
            return _joined("estimator", *self._each([type(part), parameters], cloned=True))
        if isinstance(part, CodeType):
            return self._all("code", *(getattr(part, f"co_{name}") for name in _CODE))
        if isinstance(part, ModuleType):
            return _joined("module", part.__name__)
        if isinstance(part, MethodType):
            return self._all("method", part.__func__, part.__self__)
        if isinstance(part, functools.partial):
            return self._all("partial", part.func, part.args, part.keywords, vars(part))
        if isinstance(part, (FunctionType, type)) or hasattr(part, "__qualname__"):
            return self._named(part)
        return self._object(part)

    def _items(self, items, cloned):
        """Digest of the items of a sequence; of many strings at once."""
        if all(type(item) is str for item in items):
            lengths = np.fromiter(map(len, items), dtype=np.int64, count=len(items))
            return _joined("strings", lengths, "".join(items).encode(errors="surrogatepass"))
        return _joined("items", *self._each(items, cloned))

    def _each(self, parts, cloned=False):
        return [self.digest(part, cloned) for part in parts]

    def _all(self, kind, *parts):
        return _joined(kind, *self._each(parts))

    def _named(self, part):
        """Digest of a function or class."""
        module, name = getattr(part, "__module__", None), part.__qualname__
        parts = [module, name]
        if isinstance(part, FunctionType):
            if "<" in name or not _is_installed(module):
                parts += self._code(part)
        elif isinstance(part, type):
            if not _is_installed(module):
                parts += [
                    part.__bases__,
                    {k: v for k, v in vars(part).items() if k not in _NO_CODE},
                ]
        else:  # a built-in function or method, or a wrapper such as that of `functools.cache`
            owner = getattr(part, "__self__", None)
            parts += [owner, getattr(part, "__wrapped__", None)]
        return self._all("named", *parts)

    def _code(self, function):
        """What a call of a function depends on."""
        cells = [_content(cell) for cell in function.__closure__ or ()]
        known = function.__globals__
        used = {name: known[name] for name in sorted(_names(function.__code__)) if name in known}
        defaults = function.__defaults__, function.__kwdefaults__
        return [function.__code__, *defaults, cells, used, vars(function)]

    def _object(self, part):
        """Digest of another object: of what `pickle` would write, or its `repr` if it cannot."""
        if isinstance(part, (staticmethod, classmethod, property)):
            names = ("__func__", "fget", "fset", "fdel")
            return self._all(type(part).__name__, *(getattr(part, name, None) for name in names))
        try:
            if hasattr(part, "detach") and hasattr(part, "cpu"):  # torch pickles addresses
                return self._all(str(part.dtype), np.asarray(part.detach().cpu().double()))
            reduce = copyreg.dispatch_table.get(type(part))
            reduced = part.__reduce_ex__(4) if reduce is None else reduce(part)
            if isinstance(reduced, str):
                return self._all("global", type(part), reduced)
            build, arguments, state, items, pairs = [*reduced, *[None] * 3][:5]
            items, pairs = (None if each is None else list(each) for each in (items, pairs))
        except Exception:
            return self._all("repr", type(part), re.sub(r" at 0x[0-9a-f]+", "", repr(part)))
        return self._all("object", build, arguments, state, items, pairs)


def _joined(kind, *contents):
    """Digest of a kind and contents (str or buffers), each with its length."""
    digest = hashlib.blake2b(digest_size=16)
    for content in (kind, *contents):
        content = memoryview(content.encode() if isinstance(content, str) else content)
        digest.update(f"{content.nbytes}:".encode())
        digest.update(content)
    return digest.digest()


def _is_cloned(part):
    """Whether `sklearn.base.clone` makes a new object of the parameters."""
    if isinstance(part, type) or not hasattr(part, "get_params"):
        return False
    own = getattr(type(part), "__sklearn_clone__", None)
    return own in (None, BaseEstimator.__sklearn_clone__)


def _is_installed(module):
    """Whether a module belongs to Python, to skvalue or to another installed package."""
    if module == "__main__" or module not in sys.modules:
        return False
    file = getattr(sys.modules[module], "__file__", None)
    known = file is None or "-packages" in file or file.startswith(_STANDARD)
    return known or module.partition(".")[0] == __name__.partition(".")[0]


def _names(code):
    """Names that a function and the functions within it use."""
    inner = (const for const in code.co_consts if isinstance(const, CodeType))
    return set(code.co_names).union(*map(_names, inner))


def _content(cell):
    try:
        return cell.cell_contents
    except ValueError:  # not yet set
        return None
