"""Loaders of benchmark data sets, from OpenML or from a folder of npz files."""

import os
import zlib
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from sklearn import datasets
from sklearn.utils import Bunch

from .._utils.sklearn import validate_params

# Data set IDs on OpenML, as in Table 7 of the TKNN-Shapley paper.
_OPENML_IDS = {
    "2dplanes": 727,
    "apsfail": 41138,
    "click": 1218,
    "cpu": 761,
    "phoneme": 1489,
    "pol": 722,
    "wind": 847,
}


@validate_params(
    {"name": [str], "folder": [str, os.PathLike, None]},
    prefer_skip_nested_validation=True,
)
def fetch_benchmark(name, folder=None):
    """Load a data set used to compare valuation methods.

    Parameters
    ----------
    name : str
        Name of the data set. From OpenML: "2dplanes", "apsfail", "click", "cpu",
        "phoneme", "pol" or "wind", with two classes each. From a folder: any file in
        it.
    folder : str or path-like, default=None
        A folder of files ``name.npz`` with the arrays X and y, written by
        `numpy.savez`. None fetches the data set from OpenML, to the folder of
        `sklearn.datasets.get_data_home`.

    Returns
    -------
    data : Bunch
        With ``name``, ``X``, ``y`` and, if known, the list ``feature_names``. From a
        folder, it has all arrays of the file (such as ``split``), unchanged. From
        OpenML, X is float64 with nominal columns as codes, and y contains strings;
        missing values ("apsfail") stay NaN.

    Raises
    ------
    FileNotFoundError
        If the folder does not contain the file.
    ValueError
        If the name is not one of those above and there is no folder, or the file is not
        as described.

    See Also
    --------
    sklearn.datasets.fetch_openml : Fetch any data set from OpenML.

    References
    ----------
    J. T. Wang, Y. Zhu, Y.-X. Wang, R. Jia, P. Mittal: "A Privacy-Friendly Approach to
    Data Valuation", NeurIPS 2023, Table 7.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from skvalue.datasets import fetch_benchmark
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/toy.npz", X=np.eye(3), y=["a", "b", "a"])
    ...     data = fetch_benchmark("toy", folder)
    >>> data.X.shape, data.y.tolist()
    ((3, 3), ['a', 'b', 'a'])
    """
    if folder is not None:
        return _read_npz(name, folder)
    if name not in _OPENML_IDS:
        raise ValueError(
            f"name must be one of {', '.join(_OPENML_IDS)} without a folder. Got "
            f"{name!r}."
        )
    # The parser "liac-arff" and plain arrays do not need pandas.
    fetched = datasets.fetch_openml(
        data_id=_OPENML_IDS[name], as_frame=False, parser="liac-arff"
    )
    return Bunch(
        name=name,
        X=fetched.data,
        y=fetched.target,
        feature_names=fetched.feature_names,
    )


def _read_npz(name, folder):
    """The data set of the file ``name.npz`` in a folder, as a Bunch."""
    path = Path(folder) / f"{name}.npz"
    if not path.is_file():
        raise FileNotFoundError(
            f"folder must hold the file {name}.npz. Got {os.fspath(folder)!r}, which "
            f"holds {_list_files(folder)}."
        )
    arrays = _read_arrays(path)
    if not {"X", "y"} <= set(arrays):
        raise ValueError(
            f"{name}.npz in folder must hold the arrays X and y. Got "
            f"{', '.join(arrays)}."
        )
    X_shape = arrays["X"].shape
    y_shape = arrays["y"].shape
    if X_shape[:1] != y_shape[:1] or not y_shape:
        raise ValueError(
            f"X and y of {name}.npz in folder must have the same length. Got shapes "
            f"{X_shape} and {y_shape}."
        )
    # The name of the file replaces an array that is called so.
    arrays["name"] = name
    if "feature_names" in arrays:
        arrays["feature_names"] = arrays["feature_names"].tolist()
    return Bunch(**arrays)


def _list_files(folder):
    """Names of the data sets in a folder, as words of a message."""
    names = sorted(path.stem for path in Path(folder).glob("*.npz"))
    return f"the sets {', '.join(names)}" if names else "no npz file"


def _read_arrays(path):
    """The arrays of an npz file by name."""
    try:
        # Loading a pickled array can run any code, and a data set does not need it.
        file = np.load(path, allow_pickle=False)
        if isinstance(file, np.ndarray):
            raise ValueError("one array, as numpy.save writes it.")
        with file:
            return dict(file)
    except (ValueError, EOFError, BadZipFile, zlib.error) as error:
        raise ValueError(
            f"{path.name} in folder must hold plain arrays, without pickled objects. "
            f"Got {error}"
        ) from None
