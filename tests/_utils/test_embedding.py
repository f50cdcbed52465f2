"""The embedding parameter: texts, images and columns turned into vectors, in fit and
after it."""

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


@each_valuer
def test_a_callable(valuer, numbers):
    X, y = numbers
    new = np.random.default_rng(0).normal(size=(5, 4))
    plain = clone(valuer).fit(X[:40, :2], y[:40], X_val=X[40:, :2], y_val=y[40:])
    other = clone(valuer).set_params(embedding=first_two)
    other.fit(X[:40], y[:40], X_val=X[40:], y_val=y[40:])
    np.testing.assert_array_equal(other.values_, plain.values_)
    np.testing.assert_array_equal(other.transform(new), plain.transform(new[:, :2]))
    np.testing.assert_array_equal(other.validation_error_, plain.validation_error_)
    assert other.n_features_in_ == 2
    again = pickle.loads(pickle.dumps(other))
    np.testing.assert_array_equal(again.transform(new), other.transform(new))
    plain.add_validation(new[:, :2], y[:5])
    other.add_validation(new, y[:5])
    np.testing.assert_array_equal(other.values_, plain.values_)


def test_a_module_on_a_gpu(numbers, gpu):
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
    sizes, room, X = [], 100, rng.normal(size=(1500, 4))

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
    found = through_module(Projection().to(find_device("cuda")), X)
    np.testing.assert_allclose(
        found, X.astype(np.float64) @ np.ones((4, 2)), rtol=1e-12
    )


@each_valuer
def test_a_transformer_is_cloned_and_fitted_on_the_rows(valuer, numbers):
    X, y = numbers
    scaler = StandardScaler()
    other = clone(valuer).set_params(embedding=scaler)
    other.fit(X[:40], y[:40], X_val=X[40:], y_val=y[40:])
    assert not hasattr(scaler, "mean_")
    np.testing.assert_array_equal(other.embedding_.mean_, X[:40].mean(axis=0))
    scaled = other.embedding_.transform(X)
    plain = clone(valuer).fit(scaled[:40], y[:40], X_val=scaled[40:], y_val=y[40:])
    np.testing.assert_array_equal(other.values_, plain.values_)


def test_a_frozen_transformer_is_used_as_it_is_and_survives_clone(numbers):
    X, y = numbers
    public = StandardScaler().fit(X * 7 + 3)
    valuer = clone(KNNShapleyValuer(embedding=FrozenEstimator(public))).fit(X, y)
    plain = KNNShapleyValuer().fit(public.transform(X), y)
    np.testing.assert_array_equal(valuer.values_, plain.values_)


@each_valuer
@pytest.mark.parametrize("stateless", [True, False])
def test_texts(valuer, texts, stateless):
    X, y = texts
    embedding = HashingVectorizer(n_features=2**14) if stateless else TfidfVectorizer()
    other = clone(valuer).set_params(embedding=embedding)
    other.fit(X[:40], y[:40], X_val=X[40:], y_val=y[40:])
    vectors = clone(embedding).fit(X[:40]).transform(X).toarray()
    plain = clone(valuer).fit(vectors[:40], y[:40], X_val=vectors[40:], y_val=y[40:])
    np.testing.assert_allclose(other.values_, plain.values_, atol=1e-12)
    assert sparse.issparse(other._fitted.problem.X.source)  # 2**14 columns, never dense
    assert other.utility_ > 0.9
    assert other.transform(["good great fine", "bad poor"]).shape == (2, 1)
    assert clone(other).fit(np.array(X), y).values_.shape == (60,)


@each_valuer
def test_images_through_a_torch_module(valuer, rng):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Conv2d(1, 3, 3),
        torch.nn.Dropout(0.5),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
    )
    module[1].eval()
    X, y = rng.normal(size=(1500, 1, 8, 8)), rng.integers(0, 2, 1500)
    other = clone(valuer).set_params(embedding=module)
    other.fit(X[:1200], y[:1200], X_val=X[1200:], y_val=y[1200:])
    assert [part.training for part in module] == [True, False, True, True]  # as it was
    with torch.no_grad():
        vectors = (
            module.eval()(torch.as_tensor(X, dtype=torch.float32)).flatten(1).numpy()
        )
    plain = clone(valuer).fit(
        vectors[:1200], y[:1200], X_val=vectors[1200:], y_val=y[1200:]
    )
    np.testing.assert_allclose(other.values_, plain.values_, atol=1e-7)
    assert other.n_features_in_ == 27
    tensors = clone(other).fit(torch.as_tensor(X[:1200]), y[:1200])
    np.testing.assert_allclose(
        tensors.values_, clone(other).fit(X[:1200], y[:1200]).values_
    )


def test_frames(numbers):
    frames = pytest.importorskip("pandas")
    X, y = numbers
    frame = frames.DataFrame(X, columns=list("abcd"))
    embedding = make_pipeline(StandardScaler(), PCA(2)).set_output(transform="pandas")
    valuer = KNNShapleyValuer(embedding=embedding).fit(
        frame, y, X_val=frame[:9], y_val=y[:9]
    )
    assert list(valuer.feature_names_in_) == list("abcd")
    assert valuer.n_features_in_ == 4
    assert valuer.transform(frame[:3] + 1).shape == (3, 1)
    assert not hasattr(
        KNNShapleyValuer(embedding=embedding).fit(X, y), "feature_names_in_"
    )
    with pytest.raises(ValueError, match="feature names should match"):
        valuer.transform(frame[["b", "a", "c", "d"]])


def test_which_learn_from_the_rows():
    assert learns_from_rows(PCA())
    assert learns_from_rows(make_pipeline(PCA()))
    assert not learns_from_rows(FrozenEstimator(PCA()))
    assert not learns_from_rows(FunctionTransformer(first_two))
    assert not learns_from_rows(first_two)


@each_valuer
def test_messages(valuer, numbers, texts):
    X, y = numbers
    with pytest.raises(
        ValueError, match=r"embedding must return one vector for every row of X, "
    ):
        clone(valuer).set_params(embedding=lambda X: X[:, 0]).fit(X, y)
    with pytest.raises(
        ValueError, match=r"of shape \(60, n_components\). Got shape \(59, 4\)"
    ):
        clone(valuer).set_params(embedding=lambda X: X[1:]).fit(X, y)
    half = clone(valuer).set_params(embedding=lambda X: X[:60])
    with pytest.raises(
        ValueError, match="X_val must be like X: embedding must return .* of X_val"
    ):
        half.fit(X, y, X_val=np.r_[X, X], y_val=np.r_[y, y])
    with pytest.raises(ValueError, match="Input X contains NaN"):
        clone(valuer).set_params(embedding=lambda X: X * np.nan).fit(X, y)
    with pytest.raises(ValueError, match="'embedding' parameter of .* must be"):
        clone(valuer).set_params(embedding="minilm").fit(X, y)
    with pytest.raises(ValueError, match="X must hold numbers.* Pass embedding="):
        clone(valuer).fit(np.array(texts[0])[:, None], y)


def test_with_epsilon_nothing_is_learnt_from_private_rows(numbers):
    X, y = numbers

    points = dict(X_val=X[:20] + 0.1, y_val=y[:20])
    for embedding in (PCA(2), make_pipeline(StandardScaler())):
        with pytest.raises(
            ValueError, match="embedding must not learn from the private rows"
        ):
            TKNNShapleyValuer(epsilon=1.0, embedding=embedding).fit(X, y, **points)
    for embedding in (first_two, FrozenEstimator(PCA(2).fit(X + 1))):
        valuer = TKNNShapleyValuer(epsilon=1.0, embedding=embedding).fit(X, y, **points)
        assert valuer.privacy_.epsilon == pytest.approx(1.0)
        assert np.isfinite(valuer.score_samples(X[:3], y[:3])).all()
