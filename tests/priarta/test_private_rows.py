"""Private rows of sellers: each moves its own latent row, and no answer refuses one."""

import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skvalue.priarta import (
    BuyerModel,
    GaussianVAE,
    Identity,
    PriArTaScorer,
    PrincipalComponents,
    SellerRelease,
    SimCLR,
)
from skvalue.priarta.maps import row_norms
from skvalue.priarta.seller import (
    half_surplus,
    moment_statistic,
    own_radii,
    release_sensitivity,
    statistic_sensitivity,
    surplus_weight,
)
from skvalue.privacy import Ledger, clip_rows

N = 80
BAD = [np.nan, np.inf, -np.inf, 1e200, 1e308, -1e308, 5e-324]


def identity(X):
    return Identity(standardize=True).fit(X)


def components(X):
    return PrincipalComponents(5).fit(X)


def vae(X):
    return GaussianVAE(latent_dim=3, hidden_dim=16, n_epochs=1, random_state=0).fit(X)


def simclr_of_a_table(X):
    return SimCLR(projection_dim=4, n_epochs=1, batch_size=20, random_state=0).fit(X)


def simclr_of_images(X):
    images = np.resize(X, (len(X), 8, 8))
    options = {"projection_dim": 4, "n_epochs": 1, "batch_size": 20, "random_state": 0}
    return SimCLR(**options).fit(images)


def wrapped(X):
    """A map of scikit-learn, which has no `transform_alone`."""
    from sklearn.decomposition import PCA

    scorer = PriArTaScorer(PCA(4, random_state=0), max_norm=1.0).fit(X)
    return scorer.model_.representation


MAPS = [identity, components, vae, simclr_of_a_table, simclr_of_images, wrapped]


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(size=(N, 10))


@pytest.fixture(scope="module", params=MAPS, ids=lambda make: make.__name__)
def model(request, rows):
    fitted = request.param(rows)
    X = np.resize(rows, (N, 8, 8)) if request.param is simclr_of_images else rows
    latent = Identity().fit(fitted.transform(X[:20]))
    return BuyerModel(fitted, latent, np.zeros(len(latent.mean_)), 2.0), X


@pytest.fixture(scope="module")
def alone(model):
    """The latent row of each row without any other."""
    model, X = model
    return np.concatenate([model.private_rows(X[i : i + 1])[0] for i in range(N)])


@pytest.mark.parametrize("n", [2, 3, 17, 64, 71])
def test_a_row_has_the_same_bits_in_every_batch_and_place(model, alone, n):
    model, X = model
    for start in (0, 1, 9):
        latent, _ = model.private_rows(X[start : start + n])
        np.testing.assert_array_equal(latent, alone[start : start + n])


@pytest.mark.parametrize("value", BAD)
def test_a_bad_row_moves_no_other_row(model, value):
    model, X = model
    before, _ = model.private_rows(X)
    changed = X.copy()
    changed[3].flat[0] = value
    after, _ = model.private_rows(changed)
    np.testing.assert_array_equal(np.delete(after, 3, 0), np.delete(before, 3, 0))
    assert np.isfinite(after).all()


@pytest.mark.parametrize("relation", ["replace", "null", "add_remove"])
@pytest.mark.parametrize("value", BAD)
def test_a_bad_row_moves_the_statistic_by_at_most_the_sensitivity(
    model, value, relation
):
    model, X = model
    changed = X.copy()
    changed[3].flat[:] = value
    neighbour = np.delete(X, 3, 0) if relation == "add_remove" else X
    if relation == "null":
        neighbour = changed.copy()
        neighbour[3] = np.nan  # a null row
    clipped = [
        clip_rows(model.private_rows(Z)[0], model.max_norm)
        for Z in (changed, neighbour)
    ]
    statistics = [
        moment_statistic(rows / model.max_norm, 0.6, relation) for rows in clipped
    ]
    distance = np.linalg.norm(statistics[0] - statistics[1])
    assert distance <= statistic_sensitivity(0.6, relation)


@pytest.mark.parametrize("relation", ["replace", "null", "add_remove"])
@pytest.mark.parametrize("value", BAD)
def test_a_bad_row_moves_all_vectors_of_a_release_by_at_most_the_sensitivity(
    rows, value, relation
):
    """At whatever radius the noisy counts before it lead to."""
    model = PriArTaScorer(mean_weight=0.6).fit(rows).model_
    changed = rows.copy()
    changed[3] = value
    neighbour = np.delete(rows, 3, 0) if relation == "add_remove" else rows.copy()
    if relation == "null":
        neighbour[3] = np.nan  # a null row
    norms = []
    latent = []
    for X in (changed, neighbour):
        centred, is_null = model.private_rows(X)
        norms.append(np.where(is_null, np.nan, row_norms(centred)))
        latent.append(centred)

    weight = surplus_weight(0.6, relation)
    for radius in own_radii(model)[::7]:
        threshold = radius / 1.1
        surplus = [weight * half_surplus(each, threshold) for each in norms]
        statistics = [
            moment_statistic(clip_rows(each, radius) / radius, 0.6, relation)
            for each in latent
        ]
        squares = 6 * np.subtract(*surplus) ** 2
        squares += np.sum(np.subtract(*statistics) ** 2)
        assert np.sqrt(squares) <= release_sensitivity(0.6, relation, 6)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e308])
def test_a_private_release_refuses_no_row(rows, value):
    scale = Identity(standardize=True).fit(rows)
    scale.scale_ = np.full(10, 1e-5)  # a map under which 1e308 overflows
    model = BuyerModel(scale, Identity().fit(rows), np.zeros(10), 2.0)
    X = rows.copy()
    X[5, 0] = value
    seller = SellerRelease(model, epsilon=0.8).fit(X)
    assert seller.n_null_rows_ == 1
    assert "null" not in seller.summary_.to_json()


OBJECTS = {"text": "x", "complex": 1j, "dict": {}, "date": pd.Timestamp(0)}


@pytest.mark.parametrize("entry", OBJECTS)
@pytest.mark.parametrize("container", ["frame", "array", "list"])
@pytest.mark.parametrize("representation", [identity, components])
def test_an_object_among_numbers_is_a_null_row(representation, container, entry, rows):
    mapped = representation(rows)
    latent = Identity().fit(mapped.transform(rows))
    model = BuyerModel(mapped, latent, latent.mean_, 2.0)
    X = rows.astype(object)
    X[5, 0] = OBJECTS[entry]
    if container == "frame":
        X = pd.DataFrame(X)
    if container == "list":
        X = X.tolist()
    centred, is_null = model.private_rows(X)
    expected, _ = model.private_rows(rows)
    expected[5] = 0
    assert np.flatnonzero(is_null).tolist() == [5]
    np.testing.assert_array_equal(centred, expected)


class _Lengths:
    """A map of texts, which leaves out empty ones and repeats those with a comma."""

    def fit(self, X):
        return self

    def transform(self, X):
        pieces = [text.split(",") for text in np.asarray(X) if text]
        return np.array([[len(piece) for piece in text] * 2 for text in pieces])


@pytest.mark.parametrize("place", [0, 5])
@pytest.mark.parametrize("text", ["", "a,bb"])
def test_a_row_of_which_a_map_makes_another_shape_is_null(text, place, rng):
    lengths = rng.integers(1, 9, 40)
    X = np.array(["x" * length for length in lengths], dtype=object)
    latent = Identity().fit(np.column_stack([lengths, lengths]))
    model = BuyerModel(_Lengths(), latent, np.zeros(2), 10.0)
    whole, _ = model.private_rows(X)
    X[place] = text
    part, is_null = model.private_rows(X)
    assert np.flatnonzero(is_null).tolist() == [place]
    np.testing.assert_array_equal(np.delete(part, place, 0), np.delete(whole, place, 0))


# Rows of a frame in other containers, in which a number above 2 is missing.
CONTAINERS = {
    "frame": lambda frame: frame,
    "nullable": lambda frame: frame.astype("Float64"),
    "objects with None": lambda frame: frame.astype(object).where(frame.notna(), None),
    "objects with NA": lambda frame: frame.astype(object).where(frame.notna(), pd.NA),
    "list": lambda frame: frame.to_numpy().tolist(),
    "polars": lambda frame: pytest.importorskip("polars").DataFrame(frame),
    "polars, null": lambda frame: (
        pytest.importorskip("polars").DataFrame(frame).fill_nan(None)
    ),
}


def first_columns(frame):
    return ColumnTransformer([("x", StandardScaler(), ["a", "b"])]).fit(frame)


def half(X):
    return 0.5 * np.asarray(X, dtype=np.float64)


@pytest.mark.filterwarnings("ignore::skvalue.privacy.SeededNoiseWarning")
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize(
    "representation", ["identity", "pca", StandardScaler(), first_columns, half]
)
def test_missing_numbers_are_null_rows_in_every_container(
    representation, container, rng
):
    frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc"))
    needs_names = representation is first_columns
    if needs_names:
        representation = representation(frame)
        if container == "list":
            pytest.skip("a list has no names of columns")
    model = PriArTaScorer(representation).fit(frame).model_
    seller = SellerRelease(model, epsilon=1.0, noise_random_state=0)
    # What is missing among objects is left to the map, which has two of the columns.
    columns = list("ab") if needs_names and "objects" in container else list("abc")
    is_null = (frame[columns] > 2).any(axis=1)
    frame_of_null_rows = frame.copy()
    frame_of_null_rows[is_null] = np.nan
    expected = clone(seller).fit(frame_of_null_rows)
    fitted = seller.fit(CONTAINERS[container](frame.mask(frame > 2)))
    assert fitted.n_null_rows_ == np.count_nonzero(is_null) > 0
    np.testing.assert_array_equal(fitted.summary_.mean, expected.summary_.mean)


def of_float64(X):
    """A map that takes no objects, as torch does not."""
    assert X.dtype == np.float64
    return X


@pytest.mark.filterwarnings("ignore::skvalue.privacy.SeededNoiseWarning")
@pytest.mark.parametrize("entry", [1.0, None, pd.NA, np.nan, "a text", 1j])
@pytest.mark.parametrize("container", [np.asarray, np.ndarray.tolist])
def test_rows_of_objects_are_numbers_row_by_row_for_other_maps(container, entry, rng):
    rows = rng.normal(size=(60, 2))
    model = PriArTaScorer(of_float64).fit(rows).model_
    seller = SellerRelease(model, epsilon=1.0, noise_random_state=0)
    is_number = isinstance(entry, float) and np.isfinite(entry)
    rows[3, 1] = entry if is_number else np.nan
    expected = clone(seller).fit(rows)
    objects = rows.astype(object)
    objects[3, 1] = entry
    fitted = seller.fit(container(objects))
    assert fitted.n_null_rows_ == expected.n_null_rows_ == (not is_number)
    np.testing.assert_array_equal(fitted.summary_.mean, expected.summary_.mean)


def test_a_column_of_texts_is_left_to_the_map(rng):
    """Digits as texts are categories."""
    frame = pd.DataFrame({"kind": rng.choice(["1", "2"], 60)})
    encoder = OneHotEncoder(sparse_output=False).fit(frame)
    model = PriArTaScorer(encoder).fit(frame).model_
    fitted = SellerRelease(model, epsilon=1.0).fit(frame.replace("2", "3"))
    assert fitted.n_null_rows_ == np.count_nonzero(frame == "2")


@pytest.mark.parametrize("epsilon", [1e6, 1e9, 1e12])
def test_an_epsilon_that_no_summary_states_is_refused_before_the_charge(rows, epsilon):
    ledger = Ledger(None, "rows", epsilon=1e12, delta=1e-5)
    model = PriArTaScorer().fit(rows).model_
    with pytest.raises(ValueError, match="epsilon must be below 1e\\+06"):
        SellerRelease(model, epsilon, ledger=ledger).fit(rows)
    assert ledger.n_charges == 0


def test_without_noise_a_row_that_is_not_finite_is_refused(rows):
    model = BuyerModel(identity(rows), Identity().fit(rows), np.zeros(10), 2.0)
    X = rows.copy()
    X[5, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        SellerRelease(model, epsilon=None).fit(X)


def test_rows_of_another_shape_are_refused(rows):
    model = BuyerModel(identity(rows), Identity().fit(rows), np.zeros(10), 2.0)
    with pytest.raises(ValueError, match="10 columns"):
        SellerRelease(model, epsilon=0.8).fit(rows[:, :4])


ODD_LINES = {
    "plain": "98765,0.5",
    "text": "98765,abc",
    "missing": "98765,",
    "short": "98765",
    "long": "98765,1,2",
    "infinite": "inf,98765",
    "not a number": "nan,98765",
    "overflow": "1e999,98765",
    "bytes": "\udcff,98765",
    "comment": "# 98765,2",
    "vertical tab": "98765,1\x0b2,3",
    "carriage return": "98765,1\r2,3",
    "next line": "98765,1\x852,3",
    "line separator": "98765,1\u20282,3",
    "file separator": "98765,1\x1c2,3",
    "zero byte": "98765,1\x002",
    "quotes": '"98765,1',
}


@pytest.mark.parametrize("line", ODD_LINES)
def test_the_command_answers_whatever_a_private_line_is(line, tmp_path, capsys, rng):
    from skvalue.priarta.__main__ import main

    PriArTaScorer(max_norm=1.0).fit(rng.normal(size=(50, 2))).export(tmp_path / "model")
    lines = ["0.1,0.2"] * 20 + [ODD_LINES[line]]
    text = "\n".join(lines).encode("utf-8", "surrogateescape")
    (tmp_path / "rows.csv").write_bytes(text)
    output = tmp_path / "out.json"
    arguments = ["summarize", tmp_path / "model", tmp_path / "rows.csv"]
    arguments += ["--epsilon", 1, "--delta", 1e-5, "-o", output]
    arguments += ["--notes", tmp_path / "notes.txt"]
    assert not main([str(argument) for argument in arguments])
    assert json.loads(output.read_text())["n_samples"] == 21
    printed = capsys.readouterr()
    assert "98765" not in printed.out + printed.err
    n_null = int(line != "plain")
    notes = (tmp_path / "notes.txt").read_text()
    assert notes.startswith(f"{n_null} rows could not be read")
    assert f"\n{1 - n_null} rows were clipped to the radius 1.\n" in notes


def test_a_mark_of_the_byte_order_is_no_part_of_a_row(tmp_path, rng):
    from skvalue.priarta.__main__ import main

    PriArTaScorer(max_norm=1.0).fit(rng.normal(size=(50, 2))).export(tmp_path / "model")
    (tmp_path / "rows.csv").write_bytes(b"\xef\xbb\xbf0.1,0.2\r\n0.3,0.4\r\n")
    arguments = ["summarize", tmp_path / "model", tmp_path / "rows.csv"]
    arguments += ["--epsilon", 1, "--delta", 1e-5, "-o", tmp_path / "out.json"]
    arguments += ["--notes", tmp_path / "notes.txt"]
    assert not main([str(argument) for argument in arguments])
    assert (tmp_path / "notes.txt").read_text().startswith("0 rows could not be read")


@pytest.mark.slow
def test_exit_codes_do_not_tell_whether_a_row_is_there(tmp_path, rng):
    # The scale of the buyer's map makes exactly the rows above 1e6 overflow.
    first = identity(rng.normal(size=(10, 2)))
    first.mean_ = np.zeros(2)
    first.scale_ = np.array([1e6 / 1.797e308, 1.0])
    second = identity(rng.normal(size=(10, 2)))
    second.mean_ = np.zeros(2)
    second.scale_ = np.array([1e308, 1.0])
    BuyerModel(first, second, np.zeros(2), 3.0).save(tmp_path / "model")
    X = np.c_[rng.lognormal(11, 0.8, 300), rng.normal(size=300)]
    X = X[X[:, 0] < 9e5]
    np.save(tmp_path / "without.npy", X)
    np.save(tmp_path / "with.npy", np.r_[X, [[1.2e6, 0.0]]])
    answers = []
    for name in ("without", "with"):
        command = [sys.executable, "-m", "skvalue", "seller", "summarize", "model"]
        command += [f"{name}.npy", "--epsilon", "0.5", "--delta", "1e-5"]
        command += ["-o", f"{name}.json"]
        root = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
        environment = os.environ | {"PYTHONPATH": root}
        result = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, env=environment
        )
        answers.append((result.returncode, result.stderr))
    assert answers == [(0, ""), (0, "")]
