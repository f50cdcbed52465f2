"""Rows with texts as vectors: dense ones for forests, all words for linear models."""

from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import TruncatedSVD

from .columns import column_encoder, split_texts, text_vectorizer

_TOPICS = 50  # components of the words of a column


class TextEncoder(TransformerMixin, BaseEstimator):
    """Numbers of columns, the main components of the words of texts, and all words.

    The words of each text column are weighted by TF-IDF, with the logarithm of their
    counts; those of a single row are left out. Where words are not separated by spaces,
    or no two rows have one, letters in a row take their place. `split` takes the
    encoded rows apart again.

    Parameters
    ----------
    texts : sequence of str, default=()
        Columns that are texts whatever they hold.
    """

    def __init__(self, texts=()):
        self.texts = texts

    def fit(self, X, y=None):
        """Learn the encoding of a pandas frame, or of a list of texts."""
        if hasattr(X, "columns"):
            names, self.others_ = split_texts(X, self.texts)
        else:
            names, self.others_ = ["text"], []
        self.columns_ = None
        n_numbers = 0
        if self.others_:
            others = X[self.others_]
            self.columns_ = column_encoder(others)[0].fit(others)
            n_numbers = self.columns_.transform(others[:1]).shape[1]
        self.words_ = {}
        self.topics_ = {}
        n_topics = 0
        for name in names:
            self.words_[name], counts = _fit_words(_texts(X, name))
            n_components = min(_TOPICS, counts.shape[1] - 1, counts.shape[0] - 1)
            topics = TruncatedSVD(max(n_components, 1), random_state=0).fit(counts)
            self.topics_[name] = topics
            n_topics += topics.components_.shape[0]
        self.sizes_ = n_numbers, n_numbers + n_topics
        return self

    def transform(self, X):
        """Rows as a CSR matrix: columns, components, words."""
        words = {
            name: vectorizer.transform(_texts(X, name))
            for name, vectorizer in self.words_.items()
        }
        topics = [self.topics_[name].transform(words[name]) for name in words]
        numbers = [self.columns_.transform(X[self.others_])] if self.others_ else []
        blocks = [*numbers, *topics, *words.values()]
        return sparse.hstack([sparse.csr_array(block) for block in blocks]).tocsr()

    def split(self, X, scaler=None):
        """Dense vectors, and all words, of encoded rows.

        The scaler is for the numbers of columns, which are in both.
        """
        n_numbers, n_dense = self.sizes_
        dense = X[:, :n_dense].toarray()
        if n_numbers and scaler is not None:
            dense[:, :n_numbers] = scaler.fit_transform(dense[:, :n_numbers])
        wide = sparse.hstack([sparse.csr_array(dense[:, :n_numbers]), X[:, n_dense:]])
        return dense, wide.tocsr()


def _fit_words(texts):
    """A vectorizer of words, and its counts; of letters if no word is there twice."""
    vectorizer = text_vectorizer(texts, sublinear_tf=True, min_df=2)
    try:
        counts = vectorizer.fit_transform(texts)
    except ValueError:  # no word twice
        vectorizer.set_params(analyzer="char", ngram_range=(1, 3), min_df=1)
        counts = vectorizer.fit_transform(texts)
    return vectorizer, counts


def _texts(X, name):
    """The texts of a column, or a list of texts; missing ones are empty."""
    if not hasattr(X, "columns"):
        return X
    return X[name].astype(object).where(X[name].notna(), "").astype(str)
