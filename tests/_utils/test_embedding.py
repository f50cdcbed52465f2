"""The parameter embedding: texts, images and columns become vectors."""

import math
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skvalue import KNNShapleyValuer, TKNNShapleyValuer
from skvalue._utils.embedding import learns_from_rows, through_module

VALUERS = [KNNShapleyValuer(3), TKNNShapleyValuer(0.5)]
each_valuer = pytest.mark.parametrize("valuer", VALUERS)
WORDS = ["good", "great", "fine", "bad", "awful", "poor"]


def first_two(X):
    return np.asarray(X)[:, :2]


@pytest.fixture
def texts(rng):
    y = rng.integers(0, 2, 60)
    return [" ".join(rng.choice(WORDS[3 * label :][:3], 4)) for label in y], y


@pytest.fixture
def numbers(rng):
    return rng.normal(size=(60, 4)), rng.integers(0, 2, 60)


def fit_last_as_points(valuer, X, y, n):
    """A clone, fitted on the first n rows; the others are validation points."""
    return clone(valuer).fit(X[:n], y[:n], X_val=X[n:], y_val=y[n:])


def with_embedding(valuer, embedding):
    return clone(valuer).set_params(embedding=embedding)


@each_valuer
def test_a_callable_gives_the_values_of_its_vectors_and_is_pickled(valuer, numbers):
    X, y = numbers
    X_new = np.random.default_rng(0).normal(size=(5, 4))
    of_vectors = fit_last_as_points(valuer, X[:, :2], y, 40)
    other = fit_last_as_points(with_embedding(valuer, first_two), X, y, 40)
    np.testing.assert_array_equal(other.values_, of_vectors.values_)
    scores = other.transform(X_new)
    np.testing.assert_array_equal(scores, of_vectors.transform(X_new[:, :2]))
    np.testing.assert_array_equal(other.validation_error_, of_vectors.validation_error_)
    assert other.n_features_in_ == 2
    copy = pickle.loads(pickle.dumps(other))
    np.testing.assert_array_equal(copy.transform(X_new), scores)

    of_vectors.add_validation(X_new[:, :2], y[:5])
    other.add_validation(X_new, y[:5])
    np.testing.assert_array_equal(other.values_, of_vectors.values_)


def test_a_module_on_a_gpu_stays_there(numbers, gpu):
    torch = pytest.importorskip("torch")
    from skvalue._utils.torch_device import find_device

    X, y = numbers
    module = torch.nn.Linear(4, 3)
    expected = KNNShapleyValuer(3, embedding=module).fit(X, y).values_
    valuer = KNNShapleyValuer(3, embedding=module.to(find_device("cuda")))
    np.testing.assert_allclose(valuer.fit(X, y).values_, expected, atol=1e-6)
    assert module.weight.device.type != "cpu"


def test_batches_are_halved_where_memory_runs_out(rng):
    torch = pytest.importorskip("torch")
    X = rng.normal(size=(1500, 4))
    sizes = []
    room = 100

    def forward(x):
        sizes.append(len(x))
        if len(x) > room:
            raise torch.OutOfMemoryError("no room")
        return x[:, :2]

    module = torch.nn.Identity()
    module.forward = forward
    np.testing.assert_array_equal(through_module(module, X), X[:, :2])
    assert sizes == [750, 375, 188] + [94] * 15 + [90]
    room = 0
    with pytest.raises(torch.OutOfMemoryError, match="no room"):
        through_module(module, X)


@pytest.mark.parametrize("n_rows", [0, 1, 5])
@pytest.mark.parametrize("shape", [(), (2,), (2, 3)])
def test_outputs_of_a_module_are_flattened(n_rows, shape):
    torch = pytest.importorskip("torch")
    module = torch.nn.Identity()
    module.forward = lambda x: torch.ones(len(x), *shape)
    vectors = through_module(module, np.zeros((n_rows, 4)))
    np.testing.assert_array_equal(vectors, np.ones((n_rows, math.prod(shape))))


@pytest.mark.parametrize("shape", [(), (2,), (2, 5)])
def test_a_module_that_returns_other_rows_is_refused(shape):
    torch = pytest.importorskip("torch")
    module = torch.nn.Identity()
    module.forward = lambda x: torch.ones(shape)
    X = np.zeros((5, 4))
    y = np.arange(5) % 2
    with pytest.raises(ValueError, match="embedding must return one vector for every"):
        KNNShapleyValuer(embedding=module).fit(X, y, X_val=X, y_val=y)


def test_rows_go_where_the_module_is(rng, gpu):
    torch = pytest.importorskip("torch")
    from skvalue._utils.torch_device import find_device

    class Projection(torch.nn.Module):
        """Nothing to train, and a counter before the numbers."""

        def __init__(self):
            super().__init__()
            self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
            self.register_buffer("directions", torch.ones(4, 2, dtype=torch.float64))

        def forward(self, x):
            return x @ self.directions

    X = rng.normal(size=(20, 4)).astype(np.float32)
    vectors = through_module(Projection().to(find_device("cuda")), X)
    expected = X.astype(np.float64) @ np.ones((4, 2))
    np.testing.assert_allclose(vectors, expected, rtol=1e-12)


@each_valuer
def test_a_transformer_is_cloned_and_fitted_on_the_rows(valuer, numbers):
    X, y = numbers
    scaler = StandardScaler()
    other = fit_last_as_points(with_embedding(valuer, scaler), X, y, 40)
    assert not hasattr(scaler, "mean_")
    np.testing.assert_array_equal(other.embedding_.mean_, X[:40].mean(axis=0))
    scaled = other.embedding_.transform(X)
    of_vectors = fit_last_as_points(valuer, scaled, y, 40)
    np.testing.assert_array_equal(other.values_, of_vectors.values_)


def test_a_frozen_transformer_is_used_as_it_is_and_survives_clone(numbers):
    X, y = numbers
    public = StandardScaler().fit(X * 7 + 3)
    valuer = clone(KNNShapleyValuer(embedding=FrozenEstimator(public))).fit(X, y)
    of_vectors = KNNShapleyValuer().fit(public.transform(X), y)
    np.testing.assert_array_equal(valuer.values_, of_vectors.values_)


@each_valuer
@pytest.mark.parametrize("stateless", [True, False])
def test_texts_have_the_values_of_their_vectors(valuer, texts, stateless):
    X, y = texts
    embedding = HashingVectorizer(n_features=2**14) if stateless else TfidfVectorizer()
    other = fit_last_as_points(with_embedding(valuer, embedding), X, y, 40)
    vectors = clone(embedding).fit(X[:40]).transform(X).toarray()
    of_vectors = fit_last_as_points(valuer, vectors, y, 40)
    np.testing.assert_allclose(other.values_, of_vectors.values_, atol=1e-12)
    assert sparse.issparse(other._fitted.problem.X.source)  # 2**14 columns, never dense
    assert other.utility_ > 0.9
    assert other.transform(["good great fine", "bad poor"]).shape == (2, 1)
    assert clone(other).fit(np.array(X), y).values_.shape == (60,)


@each_valuer
def test_images_have_the_values_of_the_outputs_of_a_torch_module(valuer, rng):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Conv2d(1, 3, 3),
        torch.nn.Dropout(0.5),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
    )
    module[1].eval()
    X = rng.normal(size=(1500, 1, 8, 8))
    y = rng.integers(0, 2, 1500)
    other = fit_last_as_points(with_embedding(valuer, module), X, y, 1200)
    modes = [layer.training for layer in module]
    assert modes == [True, False, True, True]  # as they were
    with torch.no_grad():
        images = torch.as_tensor(X, dtype=torch.float32)
        vectors = module.eval()(images).flatten(1).numpy()
    of_vectors = fit_last_as_points(valuer, vectors, y, 1200)
    np.testing.assert_allclose(other.values_, of_vectors.values_, atol=1e-7)
    assert other.n_features_in_ == 27

    of_arrays = clone(other).fit(X[:1200], y[:1200])
    of_tensors = clone(other).fit(torch.as_tensor(X[:1200]), y[:1200])
    np.testing.assert_allclose(of_tensors.values_, of_arrays.values_)


def test_columns_of_frames_are_those_before_the_embedding(numbers):
    frames = pytest.importorskip("pandas")
    X, y = numbers
    frame = frames.DataFrame(X, columns=list("abcd"))
    embedding = make_pipeline(StandardScaler(), PCA(2)).set_output(transform="pandas")
    valuer = KNNShapleyValuer(embedding=embedding)
    assert not hasattr(clone(valuer).fit(X, y), "feature_names_in_")
    valuer.fit(frame, y, X_val=frame[:9], y_val=y[:9])
    assert list(valuer.feature_names_in_) == list("abcd")
    assert valuer.n_features_in_ == 4
    assert valuer.transform(frame[:3] + 1).shape == (3, 1)
    with pytest.raises(ValueError, match="feature names should match"):
        valuer.transform(frame[["b", "a", "c", "d"]])


def test_transformers_learn_from_rows_unless_they_are_frozen_or_stateless():
    assert learns_from_rows(PCA())
    assert learns_from_rows(make_pipeline(PCA()))
    assert not learns_from_rows(FrozenEstimator(PCA()))
    assert not learns_from_rows(FunctionTransformer(first_two))
    assert not learns_from_rows(first_two)


BAD_EMBEDDINGS = {
    "one number per row": (
        lambda X: X[:, 0], r"embedding must return one vector for every row of X, ",
    ),
    "too few vectors": (
        lambda X: X[1:], r"of shape \(60, n_components\). Got shape \(59, 4\)",
    ),
    "NaN": (lambda X: X * np.nan, "Input X contains NaN"),
    "a word": ("minilm", "'embedding' parameter of .* must be"),
}  # fmt: skip


@each_valuer
@pytest.mark.parametrize("case", BAD_EMBEDDINGS)
def test_bad_embeddings_are_refused(case, valuer, numbers):
    embedding, message = BAD_EMBEDDINGS[case]
    with pytest.raises(ValueError, match=message):
        with_embedding(valuer, embedding).fit(*numbers)


@each_valuer
def test_too_few_vectors_of_validation_points_are_refused(valuer, numbers):
    X, y = numbers
    of_first_rows = with_embedding(valuer, lambda X: X[:60])
    message = "X_val must be like X: embedding must return .* of X_val"
    with pytest.raises(ValueError, match=message):
        of_first_rows.fit(X, y, X_val=np.r_[X, X], y_val=np.r_[y, y])


@each_valuer
def test_texts_without_an_embedding_are_refused_with_the_cure(valuer, texts):
    X, y = texts
    with pytest.raises(ValueError, match="X must hold numbers.* Pass embedding="):
        clone(valuer).fit(np.array(X)[:, None], y)


@pytest.mark.parametrize("embedding", [PCA(2), make_pipeline(StandardScaler())])
def test_an_embedding_that_learns_from_private_rows_is_refused(embedding, numbers):
    X, y = numbers
    valuer = TKNNShapleyValuer(epsilon=1.0, embedding=embedding)
    message = "embedding must not learn from the private rows"
    with pytest.raises(ValueError, match=message):
        valuer.fit(X, y, X_val=X[:20] + 0.1, y_val=y[:20])


def test_private_fits_take_embeddings_that_learn_from_no_rows(numbers):
    X, y = numbers
    for embedding in (first_two, FrozenEstimator(PCA(2).fit(X + 1))):
        valuer = TKNNShapleyValuer(epsilon=1.0, embedding=embedding)
        valuer.fit(X, y, X_val=X[:20] + 0.1, y_val=y[:20])
        assert valuer.privacy_.epsilon == pytest.approx(1.0)
        assert np.isfinite(valuer.score_samples(X[:3], y[:3])).all()
