from io import BytesIO
from pathlib import Path
from unittest.mock import create_autospec

import numpy as np
import pytest
from sklearn import datasets
from sklearn.utils import Bunch

from skvalue.datasets import fetch_benchmark


@pytest.fixture(autouse=True)
def openml(monkeypatch):
    """OpenML without a network, with scikit-learn's own signature."""
    data = Bunch(
        data=np.eye(3),
        target=np.array(["P", "N", "P"], dtype=object),
        feature_names=["a", "b"],
    )
    fetch_openml = create_autospec(datasets.fetch_openml, return_value=data)
    monkeypatch.setattr(datasets, "fetch_openml", fetch_openml)
    return fetch_openml


def save(folder, name, **arrays):
    np.savez(folder / f"{name}.npz", **arrays)


@pytest.mark.parametrize("path_type", [str, Path])
def test_a_set_from_a_folder_is_what_the_file_holds(tmp_path, openml, path_type):
    X = np.arange(12, dtype=np.float32).reshape(4, 3)
    y = np.array([3, 3, 9, 9])
    split = np.array([0, 0, 1, 1], dtype=np.uint8)
    save(tmp_path, "toy", X=X, y=y, split=split, feature_names=["u", "v", "w"])
    data = fetch_benchmark("toy", folder=path_type(tmp_path))
    assert set(data) == {"name", "X", "y", "split", "feature_names"}
    assert data.name == "toy"
    assert data.feature_names == ["u", "v", "w"]
    for key, expected in {"X": X, "y": y, "split": split}.items():
        np.testing.assert_array_equal(data[key], expected)
        assert data[key].dtype == expected.dtype
    openml.assert_not_called()


def test_a_folder_comes_before_openml(tmp_path, openml):
    save(tmp_path, "cpu", X=np.eye(2), y=[0, 1])
    assert fetch_benchmark("cpu", tmp_path).X.shape == (2, 2)
    with pytest.raises(FileNotFoundError):
        fetch_benchmark("wind", tmp_path)
    openml.assert_not_called()


# Numbers on OpenML in Table 7 of the TKNN-Shapley paper.
@pytest.mark.parametrize(
    ("name", "data_id"),
    [
        ("click", 1218),
        ("apsfail", 41138),
        ("phoneme", 1489),
        ("wind", 847),
        ("pol", 722),
        ("cpu", 761),
        ("2dplanes", 727),
    ],
)
def test_without_a_folder_the_set_is_fetched_from_openml(openml, name, data_id):
    data = fetch_benchmark(name)
    openml.assert_called_once()
    assert openml.call_args.kwargs["data_id"] == data_id
    # A frame would need pandas.
    assert openml.call_args.kwargs["as_frame"] is False
    assert data.name == name
    assert data.feature_names == ["a", "b"]
    np.testing.assert_array_equal(data.X, np.eye(3))
    assert data.y.tolist() == ["P", "N", "P"]


def test_unknown_name_is_refused(openml):
    message = r"name must be one of 2dplanes, .*wind .* Got 'iris'\."
    with pytest.raises(ValueError, match=message):
        fetch_benchmark("iris")
    openml.assert_not_called()


@pytest.mark.parametrize("name", ["name", "folder"])
def test_wrong_types_are_refused(name):
    message = f"'{name}' parameter of fetch_benchmark .* Got 3"
    with pytest.raises(ValueError, match=message):
        fetch_benchmark(**{"name": "cpu", name: 3})


def test_missing_file_names_the_empty_folder(tmp_path):
    message = rf"file toy\.npz\. Got '.*{tmp_path.name}', which holds no npz file\."
    with pytest.raises(FileNotFoundError, match=message):
        fetch_benchmark("toy", tmp_path)


def test_missing_file_names_the_sets_of_the_folder(tmp_path):
    save(tmp_path, "one", X=np.eye(2), y=[0, 1])
    save(tmp_path, "other", X=np.eye(2), y=[0, 1])
    message = r"folder must hold the file toy\.npz\. .*holds the sets one, other\."
    with pytest.raises(FileNotFoundError, match=message):
        fetch_benchmark("toy", tmp_path)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.eye(2)}, "toy.npz in folder must hold the arrays X and y. Got X"),
        ({"X": np.eye(2), "y": [0, 1, 1]}, "X and y of toy.npz .* Got shapes"),
        ({"X": 1.0, "y": 2.0}, "X and y of toy.npz .* Got shapes"),
    ],
)
def test_file_without_a_data_set_is_refused(tmp_path, arrays, message):
    save(tmp_path, "toy", **arrays)
    with pytest.raises(ValueError, match=message):
        fetch_benchmark("toy", tmp_path)


def npz_bytes():
    file = BytesIO()
    np.savez(file, X=np.arange(999.0), y=np.arange(999))
    return file.getvalue()


def npy_bytes():
    file = BytesIO()
    np.save(file, np.eye(2))
    return file.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"text",
        npz_bytes()[:500],
        npz_bytes()[:3000] + b"#" + npz_bytes()[3001:],
        npy_bytes(),
    ],
    ids=["empty", "text", "truncated", "damaged", "one array"],
)
def test_file_of_another_kind_is_refused(tmp_path, content):
    (tmp_path / "toy.npz").write_bytes(content)
    with pytest.raises(ValueError, match=r"toy\.npz in folder must hold plain arrays"):
        fetch_benchmark("toy", tmp_path)


def test_the_name_of_the_file_is_that_of_the_set(tmp_path):
    np.savez(tmp_path / "toy.npz", X=np.eye(2), y=[0, 1], name="other")
    assert fetch_benchmark("toy", tmp_path).name == "toy"


class Bomb:
    """Unpickling it writes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


def test_pickled_objects_are_refused_and_not_run(tmp_path):
    fuse = tmp_path / "exploded"
    y = np.array([0, Bomb(str(fuse))], dtype=object)
    save(tmp_path, "toy", X=np.eye(2), y=y)
    message = r"toy\.npz in folder must hold plain arrays, without"
    with pytest.raises(ValueError, match=message):
        fetch_benchmark("toy", tmp_path)
    assert not fuse.exists()
    # The bomb is live: numpy runs it where pickles are allowed.
    np.load(tmp_path / "toy.npz", allow_pickle=True)["y"][1].close()
    assert fuse.exists()
