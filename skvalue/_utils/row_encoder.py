"""Rows of any kind as vectors, by what they hold: the encoding of an audit."""

from numbers import Real

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.metaestimators import available_if

from .columns import column_encoder, split_texts
from .containers import known_rows, pandas_rows
from .optional import import_optional
from .text_encoder import TextEncoder


def _has_texts(encoder):
    return isinstance(encoder.encoder_, TextEncoder)


class RowEncoder(TransformerMixin, BaseEstimator):
    """Vectors of rows by what they hold: embedding="auto".

    Of a frame, or an array of two dimensions, numbers are scaled, missing ones replaced
    by the median and marked; a date is its seconds, a category has a column for each
    level, and of texts there are the main components of their words. Columns that
    identify rows, or are constant, are left out. Texts in a list are encoded as a
    column of them, images are their pixels, and sparse matrices stay as they are.

    Parameters
    ----------
    all_words : bool, default=False
        Whether vectors of texts have all words behind the main components; see `split`.
    """

    def __init__(self, all_words=False):
        self.all_words = all_words

    def fit(self, X, y=None):
        """Learn the encoding of the rows."""
        X = _in_one_container(X)
        self.encoder_ = None
        if isinstance(X, list):
            self.encoder_ = TextEncoder().fit(X)
        elif hasattr(X, "columns"):
            encoder = TextEncoder()
            if not split_texts(X)[0]:
                encoder = column_encoder(X)[0]
            self.encoder_ = encoder.fit(X)
        return self

    def transform(self, X):
        """Vectors of rows of the same kind, an array or a CSR matrix."""
        X = _in_one_container(X)
        if self.encoder_ is None:
            return X
        vectors = self.encoder_.transform(X)
        if _has_texts(self) and not self.all_words:
            _, n_dense = self.encoder_.sizes_
            return vectors[:, :n_dense].toarray()
        return vectors

    @available_if(_has_texts)
    def split(self, X, scaler=None):
        """Dense vectors, and all words, of encoded rows; see `TextEncoder.split`."""
        return self.encoder_.split(X, scaler)


def _in_one_container(X):
    """Rows as a pandas frame, a list of texts, an array of pixels or a sparse matrix.

    Pixels have two dimensions.
    """
    X = known_rows(X)
    if sparse.issparse(X):
        return X
    if hasattr(X, "columns"):
        import_optional("pandas", "embedding='auto'")
        return pandas_rows(X)
    if isinstance(X, (list, tuple)):
        X = np.array(X, dtype=object)
    rows = np.asarray(X)
    if rows.ndim == 1:
        return list(map(str, rows))
    if rows.ndim > 2:
        return rows.reshape(len(rows), -1).astype(np.float64)

    pandas = import_optional("pandas", "embedding='auto'")
    names = [f"x{number}" for number in range(rows.shape[1])]
    frame = pandas.DataFrame(rows, columns=names)
    if rows.dtype == object:
        frame = frame.apply(_as_numbers)
    return frame


def _as_numbers(column):
    """A column of objects as floats, if all of them are numbers or missing."""
    is_number = column.dropna().map(
        lambda entry: isinstance(entry, Real) and not isinstance(entry, bool)
    )
    return column.astype(float) if is_number.all() else column
