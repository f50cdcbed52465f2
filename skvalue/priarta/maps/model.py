"""The buyer's model for sellers: fitted maps, a centre and norms.

It is exported as a folder without code.
"""

import hashlib
import json
import os
import warnings
from functools import partial
from numbers import Real

import numpy as np
from numpy.lib.npyio import NpzFile

from ..._utils.fits import columns_of
from ..._utils.untrusted import (
    checked_array,
    choice,
    named_fields,
    read_record,
    read_text,
    refuse,
    refuse_no_file,
)
from ..._utils.writing import write_files
from ...exceptions import ParameterError
from ._modules import (
    LATENTS,
    REPRESENTATIONS,
    as_rows,
    class_named,
    count_rows,
    map_alone,
    n_entries_of,
    name_of,
    without_null_rows,
)

_FORMAT = "skvalue.priarta.BuyerModel"
_VERSION = 3
_CONFIG = "config.json"
_WEIGHTS = "weights.npz"
_MAPS = {"representation": REPRESENTATIONS, "latent": LATENTS}
_NUMBERS = ("max_norm", "mean_weight", "median_norm")
_MAX_CONFIG_SIZE = 4_000_000  # bytes
_MAX_COLUMNS = 10_000
_MAX_NAME = 200  # characters
MIN_REACH = 1e-50  # distances of latent rows from the centre
MAX_REACH = 1e50


class BuyerModel:
    """The buyer's fitted maps, and what the radius of a private seller follows from.

    `PriArTaScorer` makes it; a seller reads it from a folder with `load`.

    Parameters
    ----------
    representation, latent : object
        Fitted maps, see the user guide.
    centre : array-like of shape (n_dimensions,)
        The buyer's mean, around which moments are taken.
    max_norm : float
        With a `median_norm`, the 95 % quantile of the distances of the buyer's latent
        rows from the centre. Without one, the radius to which every private seller
        clips.
    mean_weight : float, default=0.6
        Weight of the mean in a noisy release, in units where rows have norm at most 1.
        A larger weight gives a more accurate mean and a less accurate second moment.
    median_norm : float, default=None
        Median of the distances of the buyer's latent rows from the centre, up to
        `max_norm`. It is where a private seller starts to search for the median of its
        own.
    columns : sequence of str, default=None
        Names of the columns of the buyer's rows, which those of a seller must have. If
        None, no names are compared.

    Attributes
    ----------
    fingerprint : str
        Hash of all that determines a summary; a summary with another hash is not
        accepted.

    Raises
    ------
    ValueError
        If `centre` holds NaN or infinity, or a number is out of range.

    See Also
    --------
    SellerRelease : Makes the summary of a seller.

    Examples
    --------
    >>> from skvalue.priarta import PriArTaScorer
    >>> model = PriArTaScorer().fit([[0.0, 0.0], [2.0, 2.0]]).model_
    >>> model.transform([[1.0, 4.0]])
    array([[0., 3.]])
    """

    def __init__(
        self,
        representation,
        latent,
        centre,
        max_norm,
        mean_weight=0.6,
        median_norm=None,
        columns=None,
    ):
        self.representation = representation
        self.latent = latent
        self.centre = np.array(centre, dtype=np.float64)
        self.max_norm = _positive(max_norm, "max_norm", MAX_REACH)
        self.mean_weight = _positive(mean_weight, "mean_weight", 1e3)
        self.median_norm = None
        if median_norm is not None:
            self.median_norm = _positive(median_norm, "median_norm", self.max_norm)
        if self.centre.ndim != 1 or self.centre.size == 0:
            raise ValueError(
                "centre must be a sequence of finite numbers, one per latent "
                f"dimension. Got an array of shape {self.centre.shape}."
            )
        if not np.isfinite(self.centre).all():
            raise ValueError(
                "centre must be a sequence of finite numbers. Got NaN or infinity."
            )
        self.columns = _checked_columns(columns)
        self.fingerprint = self._hash()

    @property
    def has_own_radius(self):
        """Whether each private seller clips to a radius of its own."""
        return self.median_norm is not None

    @property
    def n_dimensions(self):
        """Number of latent dimensions d."""
        return len(self.centre)

    def latent_rows(self, X):
        """Latent rows, neither centred nor clipped.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...)
            Rows in the shape of the buyer's rows.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_dimensions)
            Latent rows, of finite numbers.

        Raises
        ------
        ValueError
            If the maps do not accept `X`, or their output is not finite.
        """
        rows = map_rows(self.representation, self.latent, X)
        if rows.shape[1] != self.n_dimensions:
            raise ParameterError(
                "X",
                f"must give latent rows of {self.n_dimensions} entries. Got "
                f"{rows.shape[1]}.",
            )
        return rows

    def transform(self, X):
        """Latent rows minus the centre.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...)
            Rows in the shape of the buyer's rows.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_dimensions)
            Centred rows.

        Raises
        ------
        ValueError
            As in `latent_rows`.
        """
        return self.latent_rows(X) - self.centre

    def reachable_rows(self, X):
        """Rows as in `transform`, whose moments neither overflow nor underflow.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...)
            Rows in the shape of the buyer's rows.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_dimensions)
            Centred rows.

        Raises
        ------
        ValueError
            As in `latent_rows`, or if a latent row is more than 1e50 away from the
            centre.
        """
        rows = self.transform(X)
        reach = np.abs(rows).max()
        if not reach <= MAX_REACH:
            raise ParameterError(
                "X",
                f"must give latent rows that reach up to {MAX_REACH:g} away from the "
                f"buyer's mean. Got {reach:g}: scale its columns as the buyer's.",
            )
        return rows

    def private_rows(self, X):
        """Latent rows as in `transform`, of private rows.

        Each row is transformed by itself, so that its latent row has the same bits
        whatever other rows there are: a map chosen by a malicious buyer can amplify
        rounding. A row with NaN or infinity, or for which a map gives such numbers, is
        a null row, which adds nothing to the moments: an error would tell the buyer
        that there is such a row. So is a row that a map refuses, such as one with a
        text among numbers.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...)
            Rows in the shape of the buyer's rows.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_dimensions)
            Centred rows of finite numbers; null rows are zero.
        is_null : ndarray of bool of shape (n_samples,)
            Which rows the maps cannot transform. It is private.

        Raises
        ------
        ValueError
            If the maps do not accept rows of the shape of `X`.
        """
        is_null = np.zeros(count_rows(X), dtype=bool)
        if not len(is_null):  # their number can be private
            return np.zeros((0, self.n_dimensions)), is_null
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning can tell of a row, too
            # Maps of this package are of numbers.
            takes_numbers = hasattr(self.representation, "transform_alone")
            X = without_null_rows(X, is_null, takes_numbers)
            n_entries = n_entries_of(self.latent)
            values = map_alone(
                self.representation, X, is_null, "representation", n_entries
            )
            rows = map_alone(self.latent, values, is_null, "latent", self.n_dimensions)
            if rows.shape[1] != self.n_dimensions:
                raise ParameterError(
                    "X",
                    f"must give latent rows of {self.n_dimensions} entries. Got "
                    f"{rows.shape[1]}.",
                )
            centred = rows - self.centre
            # The centre is finite, but a difference can overflow.
            is_null |= ~np.isfinite(centred).all(axis=1)
            centred[is_null] = 0.0
            return centred, is_null

    def check_columns(self, X):
        """Refuse a frame whose columns are not the buyer's, in their order.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...)
            Rows. An array has no names and is not refused.

        Raises
        ------
        ValueError
            If the names differ.
        """
        names = columns_of(X).get("feature_names_in_")
        if names is None or self.columns is None or tuple(names) == self.columns:
            return
        differing = [
            f"{name!r} in place of {expected!r}"
            for name, expected in zip(names, self.columns)
            if name != expected
        ]
        got = f"{len(names)} columns"
        if len(names) == len(self.columns):
            got = ", ".join(differing[:3])
        raise ParameterError(
            "X",
            f"must have the {len(self.columns)} columns of the buyer's rows, in their "
            f"order. Got {got}.",
        )

    @property
    def n_entries(self):
        """Number of entries of a row, or None if the representation does not say it."""
        return n_entries_of(self.representation)

    # A folder -------------------------------------------------------------------------

    def save(self, folder):
        """Write the model as a JSON file and an npz file of arrays.

        Parameters
        ----------
        folder : str or path-like
            Folder without a model, which is created if it does not exist.

        Raises
        ------
        ValueError
            If a map cannot be exported, or the folder has a model.
        """
        config, arrays = self._exported()
        refuse_model_folder(folder)
        record = {**config, "fingerprint": self.fingerprint}

        def write_weights(file):
            np.savez(file, **arrays)

        os.makedirs(folder, exist_ok=True)
        write_files(
            {
                os.path.join(folder, _WEIGHTS): write_weights,
                os.path.join(folder, _CONFIG): json.dumps(
                    record, indent=1, allow_nan=False
                ),
            }
        )

    @classmethod
    def load(cls, folder):
        """Read a model from a folder, which is not trusted.

        No code of the folder is loaded, and nothing is unpickled.

        Parameters
        ----------
        folder : str or path-like
            Folder written by `save`.

        Returns
        -------
        model : BuyerModel
            The model.

        Raises
        ------
        ValueError
            If a file is too long or damaged, or does not match the fingerprint.
        ImportError
            If a package that a network needs is not installed.
        """
        text = read_text(os.path.join(folder, _CONFIG), _MAX_CONFIG_SIZE, _CONFIG)
        fields = {"representation", "latent", "fingerprint", "columns", *_NUMBERS}
        config = read_record(text, _FORMAT, _VERSION, fields, _MAX_CONFIG_SIZE, _CONFIG)
        arrays = _load_weights(folder)
        for name in arrays:
            if name != "centre" and not name.startswith(("representation/", "latent/")):
                refuse("names of the weights", "the centre's or those of a map", name)
        representation = _load_map(config["representation"], "representation", arrays)
        latent = _load_map(config["latent"], "latent", arrays)
        if "centre" not in arrays:
            raise ValueError(f"The weights must hold the centre. Got {sorted(arrays)}.")
        centre = checked_array(arrays["centre"], "centre", (None,))
        numbers = {name: config[name] for name in _NUMBERS}
        columns = config["columns"]
        model = cls(representation, latent, centre, **numbers, columns=columns)
        if model.fingerprint != config["fingerprint"]:
            raise ValueError(
                "fingerprint must be that of the folder's content: the folder was "
                f"changed or damaged. Got {config['fingerprint']!r}, and "
                f"{model.fingerprint!r} by the content."
            )
        return model

    def _exported(self):
        """Configuration and arrays to write."""
        config = {"format": _FORMAT, "version": _VERSION}
        arrays = {"centre": self.centre}
        for role, names in _MAPS.items():
            fitted_map = getattr(self, role)
            name = name_of(fitted_map, names)
            if name is None or not hasattr(fitted_map, "to_arrays"):
                raise ValueError(
                    f"{role} must be one that can be exported, "
                    f"{', '.join(sorted(names))}: a seller's machine loads only code "
                    "of skvalue. Got "
                    f"{getattr(fitted_map, 'import_path', type(fitted_map).__name__)}."
                )
            weights, map_config = fitted_map.to_arrays()
            config[role] = {"name": name, "config": map_config}
            for key, array in weights.items():
                arrays[f"{role}/{key}"] = np.ascontiguousarray(array)
        for name in _NUMBERS:
            config[name] = getattr(self, name)
        config["columns"] = None if self.columns is None else list(self.columns)
        return config, arrays

    def _hash(self):
        """Hash of configuration and arrays.

        For maps that cannot be exported their import paths are hashed.
        """
        try:
            config, arrays = self._exported()
        except ValueError:
            config = []
            for fitted_map in (self.representation, self.latent):
                class_name = type(fitted_map).__qualname__
                config.append(getattr(fitted_map, "import_path", class_name))
            config += [getattr(self, name) for name in _NUMBERS]
            config.append(self.columns)
            arrays = {"centre": self.centre}
        text = json.dumps(config, sort_keys=True, allow_nan=False)
        digest = hashlib.sha256(text.encode())
        for name, array in sorted(arrays.items()):
            digest.update(f"{name} {array.dtype.str} {array.shape};".encode())
            digest.update(array.tobytes())
        return digest.hexdigest()


def refuse_model_folder(folder):
    """Refuse a folder that has a model."""
    if os.path.lexists(os.path.join(folder, _CONFIG)):
        raise ValueError(
            "folder must be one without a model: sellers may use the model that it "
            f"has, whose summaries fit no other. Got {os.fspath(folder)!r}: delete it "
            "or name another one."
        )


def map_rows(representation, latent, X):
    """Rows (n, n_dimensions) transformed by both maps, and checked."""
    rows = as_rows(representation.transform(X), count_rows(X), "representation")
    return as_rows(latent.transform(rows), len(rows), "latent")


def row_norms(rows):
    """Euclidean norms (n,) of finite rows (n, d), which may overflow to infinity."""
    largest = np.abs(rows).max(axis=1, initial=0.0)
    scaled = rows / np.where(largest > 0, largest, 1.0)[:, None]
    with np.errstate(over="ignore"):
        return largest * np.sqrt((scaled**2).sum(axis=1))


def _load_weights(folder):
    """Named arrays of an untrusted folder, together no larger than the file."""
    path = os.path.join(folder, _WEIGHTS)
    refuse_no_file(path, _WEIGHTS)
    try:
        with open(path, "rb") as file, NpzFile(file, allow_pickle=False) as arrays:
            # A small compressed file could fill the memory.
            size = sum(info.file_size for info in arrays.zip.infolist())
            if size > os.path.getsize(path):
                raise ValueError(f"{size} bytes in fewer")
            return {name: arrays[name] for name in arrays.files}
    except FileNotFoundError:
        raise
    except Exception as error:  # a damaged file can raise anything
        raise ValueError(
            f"{_WEIGHTS} must be an uncompressed npz file of numbers. Got {error}."
        ) from None


def _load_map(record, role, arrays):
    """A fitted map from its untrusted record and the arrays of its role."""
    names = _MAPS[role]
    name, config = named_fields(
        record,
        role,
        name=partial(choice, among=names),
        config=lambda config, _: config,  # checked by the class
    )
    prefix = f"{role}/"
    weights = {
        key.removeprefix(prefix): array
        for key, array in arrays.items()
        if key.startswith(prefix)
    }
    return class_named(name, names).from_arrays(weights, config)


def _positive(value, name, largest):
    """A number above 0, up to `largest`, as a float."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not 0 < value <= largest:
        refuse(name, f"a number above 0, up to {largest:g}", value)
    return float(value)


def _checked_columns(columns):
    """Names of columns, each of them once, as a tuple; or None."""
    if columns is None:
        return None
    is_sequence = isinstance(columns, list | tuple | np.ndarray)
    if not is_sequence or not 1 <= len(columns) <= _MAX_COLUMNS:
        refuse("columns", f"None or 1 to {_MAX_COLUMNS} names", columns)
    for name in columns:
        if not isinstance(name, str) or not 0 < len(name) <= _MAX_NAME:
            refuse("columns", f"names of 1 to {_MAX_NAME} characters", name)
    if len(set(columns)) < len(columns):
        refuse("columns", "names that differ", list(columns))
    return tuple(map(str, columns))


def as_model(model):
    """A `BuyerModel`, from an object or a folder."""
    return model if isinstance(model, BuyerModel) else BuyerModel.load(model)
