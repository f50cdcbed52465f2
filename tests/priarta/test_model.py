"""The folder that a buyer exports: it gives the same model, and no code in it runs."""

import json
import os
import sys

import numpy as np
import pytest
from full_disk import full_disk
from no_files import NO_FILES
from sklearn.preprocessing import StandardScaler

from skvalue.priarta import (
    BuyerModel,
    Identity,
    PriArTaScorer,
    PrincipalComponents,
    SellerRelease,
)

from .markets import gaussian_rows


@pytest.fixture(scope="module")
def scorer():
    rows = gaussian_rows(np.random.default_rng(0), 200, 4)
    return PriArTaScorer("pca", max_norm=1.0, mean_weight=0.6).fit(rows)


@pytest.fixture
def folder(scorer, tmp_path):
    scorer.export(tmp_path / "model")
    return tmp_path / "model"


def refuses(folder, message):
    with pytest.raises(ValueError, match=message):
        BuyerModel.load(folder)


class TestExport:
    @pytest.mark.parametrize(
        ("representation", "latent"),
        [
            (Identity(), "gaussian"),
            (Identity(standardize=True), "pca"),
            (PrincipalComponents(3), Identity(standardize=True)),
            ("pca", PrincipalComponents(2)),
        ],
        ids=str,
    )
    def test_folder_gives_the_same_model(self, representation, latent, rng, tmp_path):
        X = rng.normal(size=(100, 5)) * [1, 2, 3, 4, 5] + 7
        scorer = PriArTaScorer(representation, latent=latent, mean_weight=0.6).fit(X)
        scorer.export(tmp_path)
        model = BuyerModel.load(tmp_path)
        assert model.fingerprint == scorer.model_.fingerprint
        assert np.array_equal(model.transform(X), scorer.model_.transform(X))
        assert model.max_norm == scorer.max_norm_
        assert sorted(os.listdir(tmp_path)) == ["config.json", "weights.npz"]

    def test_folder_with_a_model_is_not_overwritten(self, scorer, folder):
        before = (folder / "config.json").read_bytes()
        with pytest.raises(
            ValueError, match="folder must be one without a model.*delete it or name"
        ):
            scorer.export(folder)
        assert (folder / "config.json").read_bytes() == before

    @pytest.mark.parametrize(
        "representation", [StandardScaler(), np.asarray], ids=["scaler", "function"]
    )
    def test_map_of_other_code_is_refused(self, representation, rng, tmp_path):
        scorer = PriArTaScorer(representation).fit(rng.normal(size=(10, 2)))
        with pytest.raises(
            ValueError, match="representation must be one that can be exported, ident"
        ):
            scorer.export(tmp_path / "model")
        assert not (tmp_path / "model").exists()

    @pytest.mark.parametrize("name", ["config.json", "weights.npz"])
    def test_files_are_written_all_or_none(self, name, scorer, folder, tmp_path):
        size = (folder / name).stat().st_size
        with full_disk(size - 1), pytest.raises(OSError):
            scorer.model_.save(tmp_path / "new")
        assert os.listdir(tmp_path / "new") == []
        scorer.model_.save(tmp_path / "new")
        model = BuyerModel.load(tmp_path / "new")
        assert model.fingerprint == scorer.model_.fingerprint

    def test_models_without_networks_need_no_torch(self, rng, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "torch", None)
        X = rng.normal(size=(20, 3))
        scorer = PriArTaScorer("pca").fit(X)
        scorer.export(tmp_path)
        assert np.array_equal(
            BuyerModel.load(tmp_path).transform(X), scorer.model_.transform(X)
        )

    def test_network_without_torch_is_refused(self, folder, monkeypatch):
        monkeypatch.setitem(sys.modules, "torch", None)
        path = folder / "config.json"
        config = json.loads(path.read_text())
        config["latent"]["name"] = "vae"
        path.write_text(json.dumps(config))
        with pytest.raises(ImportError, match="The map 'vae' needs torch: pip install"):
            BuyerModel.load(folder)


class TestFingerprint:
    def fingerprint(self, X, **parameters):
        parameters = {"mean_weight": 0.6, **parameters}
        return PriArTaScorer(**parameters).fit(X).model_.fingerprint

    def test_depends_on_every_parameter(self, rng):
        X = rng.normal(size=(50, 3))
        settings = [
            {},
            {"max_norm": 1.0},
            {"mean_weight": 0.5},
            {"latent": "pca"},
            {"representation": Identity(standardize=True)},
            {"representation": StandardScaler()},
            {"representation": np.asarray},
        ]
        fingerprints = {self.fingerprint(X, **parameters) for parameters in settings}
        assert len(fingerprints) == 7

    def test_of_equal_maps_that_cannot_be_exported_is_equal(self, rng):
        X = rng.normal(size=(50, 3))
        first = PriArTaScorer(StandardScaler()).fit(X).model_.fingerprint
        assert PriArTaScorer(StandardScaler()).fit(X).model_.fingerprint == first

    def test_depends_on_the_rows(self, rng):
        X = rng.normal(size=(50, 3))
        moved = PriArTaScorer().fit(X + 1e-9).model_.fingerprint
        assert moved != PriArTaScorer().fit(X).model_.fingerprint
        assert moved != self.fingerprint(X)


class TestUntrustedConfig:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"format": "other"}, "of format"),
            ({"version": True}, "version 3. Got"),
            ({"version": 2.0}, "version 3. Got"),
            ({"version": 2}, "version 3. Got"),
            ({"max_norm": 10**400}, "max_norm must be"),
            ({"max_norm": -1.0}, "max_norm must be"),
            ({"max_norm": "1"}, "max_norm must be"),
            ({"mean_weight": 10**400}, "mean_weight must be"),
            ({"mean_weight": True}, "mean_weight must be"),
            (
                {"code": "import os"},
                "exactly the fields of a BuyerModel. Got .'code'. wrong",
            ),
            ({"max_norm": 2.0}, "fingerprint must be"),
            (
                {"representation": {"name": "os:system", "config": {}}},
                "must be one of identity",
            ),
            ({"representation": ["pca"]}, "representation must be"),
            ({"latent": {"name": "gaussian", "config": 3}}, "config must be"),
            (
                {"representation": {"name": "pca", "config": {"n_components": 0}}},
                "n_components",
            ),
            ({"latent": {"name": "gaussian", "config": {}}}, "config must be"),
        ],
        ids=lambda case: str(case)[:40],
    )
    def test_invalid_fields_are_refused(self, folder, changes, message):
        path = folder / "config.json"
        config = json.loads(path.read_text())
        path.write_text(json.dumps(config | changes))
        refuses(folder, message)

    @pytest.mark.parametrize(
        ("text", "message"),
        [("{", "JSON"), ("[" * 10**5, "JSON"), ("1", "object")],
        ids=["open", "nested", "number"],
    )
    def test_text_that_is_no_record_is_refused(self, folder, text, message):
        (folder / "config.json").write_text(text)
        refuses(folder, f"config.json must be.*{message}")

    def test_text_that_is_too_long_is_refused(self, folder):
        (folder / "config.json").write_bytes(b" " * 4_000_001)
        refuses(folder, "config.json must have at most 4000000 bytes")

    def test_missing_folder_raises_the_error_of_the_system(self, folder):
        with pytest.raises(FileNotFoundError):
            BuyerModel.load(folder / "nowhere")


class TestUntrustedWeights:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"centre": None}, "The weights must hold the centre"),
            (
                {"centre": np.zeros(3)},
                "fingerprint must be that of the folder's content",
            ),
            ({"centre": np.full(4, np.nan)}, "centre must hold finite numbers"),
            (
                {"centre": np.array(list("1234"))},
                "centre must be a float64 array of shape",
            ),
            (
                {"centre": np.zeros(4, complex)},
                "centre must be a float64 array of shape",
            ),
            (
                {"more": np.zeros(4)},
                "the weights must be the centre's or those of a map. Got 'more'",
            ),
            ({"latent/more": np.zeros(4)}, "arrays must hold exactly"),
            (
                {"representation/mean": np.zeros(3)},
                "directions of as many entries as the mean has",
            ),
            (
                {"representation/mean": np.zeros(4, np.int8)},
                "mean must be a float64 array of shape",
            ),
            (
                {"representation/mean": np.full(4, np.inf)},
                "mean must hold finite numbers",
            ),
            ({"representation/mean": None}, "arrays must hold exactly"),
            (
                {"latent/scale": np.zeros(4)},
                "arrays must be as many scales as means, all above 0",
            ),
        ],
        ids=lambda case: str(case)[:40],
    )
    def test_invalid_arrays_are_refused(self, folder, changes, message):
        path = folder / "weights.npz"
        with np.load(path) as file:
            arrays = dict(file) | changes
        arrays = {name: a for name, a in arrays.items() if a is not None}
        np.savez(path, **arrays)
        refuses(folder, message)

    def test_objects_are_refused(self, folder):
        np.savez(folder / "weights.npz", centre=np.array([{}], dtype=object))
        refuses(folder, "weights.npz must be .* allow_pickle=False")

    def test_compressed_array_is_refused_before_it_fills_the_memory(self, folder):
        path = folder / "weights.npz"
        np.savez_compressed(path, centre=np.zeros(10**6))
        assert path.stat().st_size < 10**5
        refuses(folder, "weights.npz must be .* Got 8000128 byte")

    def test_array_that_claims_320_gigabytes_is_refused(self, folder):
        path = folder / "weights.npz"
        np.savez(path, centre=np.zeros(4))
        claim = b"(40000000000,), }"
        content = path.read_bytes()
        tampered = content.replace(b"(4,), }".ljust(len(claim)), claim)
        assert tampered != content
        path.write_bytes(tampered)
        refuses(folder, "weights.npz must be")

    def test_array_of_another_format_is_refused(self, folder):
        np.save(folder / "array.npy", np.zeros(4))
        (folder / "array.npy").replace(folder / "weights.npz")
        refuses(folder, "weights.npz must be .* Got File is not a zip file")

    @pytest.mark.parametrize(
        "damage",
        [
            lambda content: b"\x80\x04\x95 a pickle?",
            lambda content: b"",
            lambda content: content[:200],
            lambda content: content.replace(b"(4,)", b"(9,)"),
        ],
        ids=["pickle", "empty", "cut", "shape"],
    )
    def test_damaged_file_is_refused(self, folder, damage):
        path = folder / "weights.npz"
        path.write_bytes(damage(path.read_bytes()))
        refuses(folder, "weights.npz must be")


@pytest.mark.parametrize("name", ["config.json", "weights.npz"])
@pytest.mark.parametrize("make", NO_FILES)
def test_pipe_or_folder_in_place_of_a_file_is_refused(folder, name, make):
    (folder / name).unlink()
    make(folder / name)
    refuses(folder, f"{name} must be a file")


class TestColumns:
    """Names of the buyer's columns travel with the model, and are compared."""

    @pytest.fixture(scope="class")
    @staticmethod
    def frame():
        pd = pytest.importorskip("pandas")
        rows = np.random.default_rng(0).normal(size=(80, 3))
        return pd.DataFrame(rows, columns=["age", "dose", "metres"])

    @pytest.fixture(scope="class")
    @staticmethod
    def model(frame):
        return PriArTaScorer().fit(frame).model_

    def test_are_read_from_the_folder(self, model, tmp_path):
        model.save(tmp_path)
        read = BuyerModel.load(tmp_path)
        assert read.columns == ("age", "dose", "metres")
        assert read.fingerprint == model.fingerprint

    def test_are_part_of_the_fingerprint(self, frame, model):
        other = frame.rename(columns={"age": "years"})
        assert PriArTaScorer().fit(other).model_.fingerprint != model.fingerprint

    def test_of_an_array_are_none(self, frame):
        assert PriArTaScorer().fit(frame.to_numpy()).model_.columns is None

    @pytest.mark.parametrize("epsilon", [None, 1.0])
    @pytest.mark.parametrize(
        "columns", [["metres", "dose", "age"], ["age", "dose"]], ids=["order", "fewer"]
    )
    def test_of_a_seller_must_be_the_same(self, frame, model, columns, epsilon):
        seller = SellerRelease(model, epsilon)
        with pytest.raises(ValueError, match="X must have the 3 columns of the buyer"):
            seller.fit(frame[columns])
        seller.fit(frame)
        seller.fit(frame.to_numpy())

    def test_of_the_buyer_must_be_those_of_its_model(self, frame, model):
        with pytest.raises(ValueError, match=r"'metres' in place of 'age'"):
            PriArTaScorer().fit(frame[frame.columns[::-1]], model=model)

    @pytest.mark.parametrize(
        "columns", ["abc", [], ["a", "a", "b"], ["a", 3, "b"], ["a", "b", "c" * 201]]
    )
    def test_that_are_invalid_are_refused(self, model, tmp_path, columns):
        model.save(tmp_path)
        config = json.loads((tmp_path / "config.json").read_text())
        config["columns"] = columns
        (tmp_path / "config.json").write_text(json.dumps(config))
        refuses(tmp_path, "columns must be")
