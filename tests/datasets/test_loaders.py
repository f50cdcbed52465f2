from unittest.mock import create_autospec

import numpy as np
import pytest
from sklearn import datasets
from sklearn.utils import Bunch

from skvalue.datasets import fetch_benchmark


@pytest.fixture(autouse=True)
def openml(monkeypatch):
    """OpenML without a network, with scikit-learn's own signature."""
    answer = Bunch(
        data=np.eye(3),
        target=np.array(["P", "N", "P"], dtype=object),
        feature_names=["a", "b"],
    )
    fake = create_autospec(datasets.fetch_openml, return_value=answer)
    monkeypatch.setattr(datasets, "fetch_openml", fake)
    return fake


def save(folder, name, **arrays):
    np.savez(folder / f"{name}.npz", **arrays)


@pytest.mark.parametrize("kind", [str, lambda path: path])
def test_a_set_from_a_folder_is_what_the_file_holds(tmp_path, openml, kind):
    X = np.arange(12, dtype=np.float32).reshape(4, 3)
    y = np.array([3, 3, 9, 9])
    split = np.array([0, 0, 1, 1], dtype=np.uint8)
    save(tmp_path, "toy", X=X, y=y, split=split, feature_names=["u", "v", "w"])
    data = fetch_benchmark("toy", folder=kind(tmp_path))
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


NUMBERS = {
    "click": 1218,
    "apsfail": 41138,
    "phoneme": 1489,
    "wind": 847,
    "pol": 722,
    "cpu": 761,
}
NUMBERS["2dplanes"] = 727  # Table 7 of the TKNN-Shapley paper.


@pytest.mark.parametrize(("name", "number"), NUMBERS.items())
def test_without_a_folder_openml_is_asked(openml, name, number):
    data = fetch_benchmark(name)
    openml.assert_called_once()
    asked = {"data_id": number, "as_frame": False}  # a frame needs pandas
    assert asked.items() <= openml.call_args.kwargs.items()
    assert data.name == name
    assert data.feature_names == ["a", "b"]
    np.testing.assert_array_equal(data.X, np.eye(3))
    assert data.y.tolist() == ["P", "N", "P"]


def test_unknown_name_is_refused(openml):
    with pytest.raises(
        ValueError, match=r"name must be one of 2dplanes, .*wind .* Got 'iris'\."
    ):
        fetch_benchmark("iris")
    openml.assert_not_called()


@pytest.mark.parametrize("name", ["name", "folder"])
def test_wrong_types_are_refused(name):
    with pytest.raises(
        ValueError, match=f"'{name}' parameter of fetch_benchmark .* Got 3"
    ):
        fetch_benchmark(**{"name": "cpu", name: 3})


def test_missing_file_names_folder_and_what_it_holds(tmp_path):
    rule = rf"folder must hold the file toy\.npz\. Got '.*{tmp_path.name}'"
    with pytest.raises(FileNotFoundError, match=rule + r", which holds no npz file\."):
        fetch_benchmark("toy", tmp_path)
    save(tmp_path, "one", X=np.eye(2), y=[0, 1])
    save(tmp_path, "other", X=np.eye(2), y=[0, 1])
    with pytest.raises(
        FileNotFoundError, match=rule + r", which holds the sets one, other\."
    ):
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


def test_file_of_another_kind_is_refused(tmp_path):
    save(tmp_path, "whole", X=np.arange(999.0), y=np.arange(999))
    whole = (tmp_path / "whole.npz").read_bytes()
    np.save(tmp_path / "one.npy", np.eye(2))
    one = (tmp_path / "one.npy").read_bytes()
    for content in (b"", b"text", whole[:500], whole[:3000] + b"#" + whole[3001:], one):
        (tmp_path / "toy.npz").write_bytes(content)
        with pytest.raises(
            ValueError, match=r"toy\.npz in folder must hold plain arrays"
        ):
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
    with pytest.raises(
        ValueError, match=r"toy\.npz in folder must hold plain arrays, without"
    ):
        fetch_benchmark("toy", tmp_path)
    assert not fuse.exists()
    # The bomb is live: numpy runs it where pickles are allowed.
    np.load(tmp_path / "toy.npz", allow_pickle=True)["y"][1].close()
    assert fuse.exists()
