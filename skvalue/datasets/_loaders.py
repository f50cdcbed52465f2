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


def _read_npz(name, folder):
    """The arrays of the file ``name.npz`` in a folder."""
    path = Path(folder) / f"{name}.npz"
    if not path.is_file():
        found = sorted(file.stem for file in Path(folder).glob("*.npz"))
        raise FileNotFoundError(
            f"folder must hold the file {name}.npz. Got {os.fspath(folder)!r}, which holds "
            + (f"the sets {', '.join(found)}." if found else "no npz file.")
        )
    try:
        # Loading a pickled array can run arbitrary code, and a data set does not need
        # it.
        file = np.load(path, allow_pickle=False)
        if isinstance(file, np.ndarray):
            raise ValueError("one array, as numpy.save writes it.")
        with file:
            arrays = dict(file)
    except (ValueError, EOFError, BadZipFile, zlib.error) as error:
        raise ValueError(
            f"{name}.npz in folder must hold plain arrays, without pickled objects. Got {error}"
        ) from None
    if not {"X", "y"} <= set(arrays):
        raise ValueError(
            f"{name}.npz in folder must hold the arrays X and y. Got {', '.join(arrays)}."
        )
    if arrays["X"].shape[:1] != arrays["y"].shape[:1] or arrays["y"].ndim == 0:
        raise ValueError(
            f"X and y of {name}.npz in folder must have the same length. Got shapes "
            f"{arrays['X'].shape} and {arrays['y'].shape}."
        )
    return arrays


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
    J. T. Wang, Y. Zhu, Y.-X. Wang, R. Jia, P. Mittal: "A Privacy-Friendly Approach to Data
    Valuation", NeurIPS 2023, Table 7.

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
        data = Bunch(**{**_read_npz(name, folder), "name": name})
        if "feature_names" in data:
            data.feature_names = data.feature_names.tolist()
        return data
    if name not in _OPENML_IDS:
        raise ValueError(
            f"name must be one of {', '.join(_OPENML_IDS)} without a folder. Got {name!r}."
        )
    # The parser "liac-arff" and plain arrays do not need pandas.
    fetched = datasets.fetch_openml(
        data_id=_OPENML_IDS[name], as_frame=False, parser="liac-arff"
    )
    return Bunch(
        name=name, X=fetched.data, y=fetched.target, feature_names=fetched.feature_names
    )
