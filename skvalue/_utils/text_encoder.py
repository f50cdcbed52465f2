"""Rows with texts as vectors: dense ones for forests, and all words for linear
models."""

from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from .columns import column_encoder, split_texts

_TOPICS = 50  # components of the words of a column


class TextEncoder(TransformerMixin, BaseEstimator):
    """Numbers of columns, the main components of the words of texts, and all words.

    The words of each text column are weighted by TF-IDF, with the logarithm of their
    counts; those of a single row are left out. `split` takes the encoded rows apart
    again.
    """

    def fit(self, X, y=None):
        """Learn the encoding of a pandas frame, or of a list of texts."""
        names, self.others_ = (
            split_texts(X) if hasattr(X, "columns") else (["text"], [])
        )
        self.columns_, self.words_, self.topics_ = None, {}, {}
        if self.others_:
            self.columns_ = column_encoder(X[self.others_])[0].fit(X[self.others_])
        for name in names:
            words = TfidfVectorizer(sublinear_tf=True, min_df=2)
            try:
                counts = words.fit_transform(_texts(X, name))
            except ValueError:  # no word twice
                words.set_params(min_df=1)
                counts = words.fit_transform(_texts(X, name))
            n_topics = min(_TOPICS, counts.shape[1] - 1, counts.shape[0] - 1)
            self.words_[name] = words
            self.topics_[name] = TruncatedSVD(max(n_topics, 1), random_state=0).fit(
                counts
            )
        n_numbers = (
            self.columns_.transform(X[self.others_][:1]).shape[1] if self.others_ else 0
        )
        n_topics = sum(topics.components_.shape[0] for topics in self.topics_.values())
        self.sizes_ = n_numbers, n_numbers + n_topics
        return self

    def transform(self, X):
        """Rows as a CSR matrix: columns, components, words."""
        words = [each.transform(_texts(X, name)) for name, each in self.words_.items()]
        topics = [each.transform(w) for each, w in zip(self.topics_.values(), words)]
        blocks = [self.columns_.transform(X[self.others_])] if self.others_ else []
        return sparse.hstack(
            [sparse.csr_array(b) for b in (*blocks, *topics, *words)]
        ).tocsr()

    def split(self, X, scaler=None):
        """Dense vectors, and all words; the scaler is for the numbers of columns in
        both."""
        n_numbers, n_dense = self.sizes_
        dense = X[:, :n_dense].toarray()
        if n_numbers and scaler is not None:
            dense[:, :n_numbers] = scaler.fit_transform(dense[:, :n_numbers])
        wide = sparse.hstack([sparse.csr_array(dense[:, :n_numbers]), X[:, n_dense:]])
        return dense, wide.tocsr()


def _texts(X, name):
    """The texts of a column, or a list of texts; missing ones are empty."""
    if not hasattr(X, "columns"):
        return X
    return X[name].astype(object).where(X[name].notna(), "").astype(str)
