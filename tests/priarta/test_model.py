"""The folder that a buyer ships: what comes out is what went in, and nothing in it
runs."""

import json
import os
import runpy
import sys

import numpy as np
import pytest
from full_disk import full_disk
from sklearn.preprocessing import StandardScaler

from skvalue.priarta import (
    BuyerModel,
    Identity,
    PriArTaScorer,
    PrincipalComponents,
    Summary,
)
from skvalue.priarta.__main__ import main
from skvalue.priarta.seller import max_file_size, read_rows
from skvalue.privacy import Ledger

from .markets import gaussian_rows

MAPS = [
    (Identity(), "gaussian"),
    (Identity(standardize=True), "pca"),
    (PrincipalComponents(3), Identity(standardize=True)),
    ("pca", PrincipalComponents(2)),
]


@pytest.fixture(scope="module")
def scorer():
    rows = gaussian_rows(np.random.default_rng(0), 200, 4)
    return PriArTaScorer("pca", max_norm=1.0, mean_weight=0.6).fit(rows)


@pytest.fixture
def folder(scorer, tmp_path):
    scorer.export(tmp_path / "model")
    return scorer, tmp_path / "model"


@pytest.mark.parametrize(("representation", "latent"), MAPS)
def test_there_and_back(representation, latent, rng, tmp_path):
    X = rng.normal(size=(100, 5)) * [1, 2, 3, 4, 5] + 7
    scorer = PriArTaScorer(representation, latent=latent, mean_weight=0.6).fit(X)
    scorer.export(tmp_path)
    model = BuyerModel.load(tmp_path)
    assert model.fingerprint == scorer.model_.fingerprint
    assert np.array_equal(model.transform(X), scorer.model_.transform(X))
    assert model.max_norm == scorer.max_norm_
    assert sorted(os.listdir(tmp_path)) == ["config.json", "weights.npz"]


def refused(folder, message):
    with pytest.raises(ValueError, match=message):
        BuyerModel.load(folder)


def test_no_model_is_overwritten(folder):
    scorer, path = folder
    before = (path / "config.json").read_bytes()
    with pytest.raises(
        ValueError, match="folder must be one without a model.*delete it or name"
    ):
        scorer.export(path)
    assert (path / "config.json").read_bytes() == before


def test_fingerprint_is_of_everything(rng):
    X = rng.normal(size=(50, 3))
    prints = {
        PriArTaScorer(**{"mean_weight": 0.6} | setting).fit(X).model_.fingerprint
        for setting in (
            {}, dict(max_norm=1.0), dict(mean_weight=0.5), dict(latent="pca"),
            dict(representation=Identity(standardize=True)), dict(representation=StandardScaler()),
            dict(representation=np.asarray),
        )
    }  # fmt: skip
    assert len(prints) == 7
    again = [
        PriArTaScorer(StandardScaler()).fit(X).model_.fingerprint for _ in range(2)
    ]
    assert again[0] == again[1]
    assert PriArTaScorer().fit(X + 1e-9).model_.fingerprint not in prints


@pytest.mark.parametrize("given", [StandardScaler(), np.asarray], ids=str)
def test_what_cannot_be_exported(given, rng, tmp_path):
    scorer = PriArTaScorer(given).fit(rng.normal(size=(10, 2)))
    with pytest.raises(
        ValueError, match="representation must be one that can be exported, ident"
    ):
        scorer.export(tmp_path / "model")
    assert not (tmp_path / "model").exists()


CONFIGS = [
    (dict(format="other"), "of format"),
    *((dict(version=version), "version 1. Got") for version in (True, 1.0, 2)),
    *((dict(max_norm=norm), "max_norm must be") for norm in (10**400, -1.0, "1")),
    *((dict(mean_weight=weight), "mean_weight must be") for weight in (10**400, True)),
    (dict(code="import os"), "exactly the fields of a BuyerModel. Got .'code'. wrong"),
    (dict(max_norm=2.0), "fingerprint must be"),
    (
        dict(representation={"name": "os:system", "config": {}}),
        "must be one of identity",
    ),
    (dict(representation=["pca"]), "representation must be"),
    (dict(latent={"name": "gaussian", "config": 3}), "config must be"),
    (
        dict(representation={"name": "pca", "config": {"n_components": 0}}),
        "n_components",
    ),
    (dict(latent={"name": "gaussian", "config": {}}), "config must be"),
]


def test_folders_are_not_trusted(folder):
    path = folder[1] / "config.json"
    config = json.loads(path.read_text())
    for changes, message in CONFIGS:
        path.write_text(json.dumps(config | changes))
        refused(folder[1], message)


WEIGHTS = [
    ({"centre": None}, "The weights must hold the centre"),
    ({"centre": np.zeros(3)}, "fingerprint must be that of the folder's content"),
    ({"centre": np.full(4, np.nan)}, "centre must hold finite numbers"),
    ({"centre": np.array(list("1234"))}, "centre must be a float64 array of shape"),
    ({"centre": np.zeros(4, complex)}, "centre must be a float64 array of shape"),
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
    ({"representation/mean": np.full(4, np.inf)}, "mean must hold finite numbers"),
    ({"representation/mean": None}, "arrays must hold exactly"),
    (
        {"latent/scale": np.zeros(4)},
        "arrays must be as many scales as means, all above 0",
    ),
]


def test_weights_are_not_trusted(folder):
    path = folder[1] / "weights.npz"
    with np.load(path) as file:
        arrays = dict(file)
    for changes, message in WEIGHTS:
        np.savez(path, **{k: v for k, v in (arrays | changes).items() if v is not None})
        refused(folder[1], message)


def test_weights_hold_no_objects_and_fill_no_memory(folder):
    path = folder[1] / "weights.npz"
    np.savez(path, centre=np.array([{}], dtype=object))
    refused(folder[1], "weights.npz must be .* allow_pickle=False")
    np.savez_compressed(path, centre=np.zeros(10**6))
    assert path.stat().st_size < 10**5
    refused(folder[1], "weights.npz must be .* Got 8000128 byte")
    np.savez(path, centre=np.zeros(4))
    claim, more = b"(4,), }", b"(40000000000,), }"  # of 320 gigabytes
    content = path.read_bytes()
    path.write_bytes(content.replace(claim.ljust(len(more)), more))
    assert path.read_bytes() != content
    refused(folder[1], "weights.npz must be")
    np.save(folder[1] / "array.npy", np.zeros(4))
    (folder[1] / "array.npy").replace(path)
    refused(folder[1], "weights.npz must be .* Got File is not a zip file")


def test_without_networks_numpy_is_enough(rng, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    X = rng.normal(size=(20, 3))
    scorer = PriArTaScorer("pca").fit(X)
    scorer.export(tmp_path)
    assert np.array_equal(
        BuyerModel.load(tmp_path).transform(X), scorer.model_.transform(X)
    )
    config = json.loads((tmp_path / "config.json").read_text())
    config["latent"]["name"] = "vae"
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ImportError, match="The map 'vae' needs torch: pip install"):
        BuyerModel.load(tmp_path)


def test_damaged_files(folder):
    weights, config = folder[1] / "weights.npz", folder[1] / "config.json"
    whole = weights.read_bytes()
    for content in (
        b"\x80\x04\x95 a pickle?",
        b"",
        whole[:200],
        whole.replace(b"(4,)", b"(9,)"),
    ):
        weights.write_bytes(content)
        refused(folder[1], "weights.npz must be")
    for text, message in (("{", "JSON"), ("[" * 10**5, "JSON"), ("1", "object")):
        config.write_text(text)
        refused(folder[1], f"config.json must be.*{message}")
    config.write_bytes(b" " * 4_000_001)
    refused(folder[1], "config.json must have at most 4000000 bytes")
    with pytest.raises(FileNotFoundError):
        BuyerModel.load(folder[1] / "nowhere")


@pytest.mark.parametrize("name", ["config.json", "weights.npz"])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_pipes_and_folders_are_no_files(folder, name, make):
    (folder[1] / name).unlink()
    make(folder[1] / name)
    refused(folder[1], f"{name} must be a file")


# The seller's command -----------------------------------------------------------------


def test_from_folder_to_score(folder, rng, tmp_path, monkeypatch, capsys):
    scorer, model = folder
    X = gaussian_rows(rng, 3000, 4, 0.5)
    np.savez(tmp_path / "mine.npz", X)
    out = tmp_path / "summary.json"
    words = [
        "summarize",
        model,
        tmp_path / "mine.npz",
        "--epsilon",
        0.8,
        "--delta",
        1e-5,
    ]
    monkeypatch.setattr(sys, "argv", ["priarta", *map(str, words), "-o", str(out)])
    with pytest.raises(SystemExit, match="0"):
        runpy.run_module("skvalue.priarta", run_name="__main__")
    said = capsys.readouterr().out
    assert "This release satisfies (0.8, 1e-05)-differential privacy." in said
    assert f"{out.stat().st_size} bytes" in said
    exact = scorer.transform([X])[0, 0]
    assert scorer.score_summaries([out])[0, 0] == pytest.approx(exact, abs=0.1)
    assert not Summary.from_json(out.read_text()).seeded


def command(*words):
    return main([str(word) for word in words])


def test_command_says_what_is_wrong(folder, tmp_path, capsys):
    rows, out = tmp_path / "rows.csv", tmp_path / "out.json"
    np.savetxt(rows, np.zeros((10, 4)), delimiter=",")
    np.save(tmp_path / "rows.npy", np.zeros((10, 4)))
    ask = ["--epsilon", 0.8, "--delta", 1e-5, "-o", out]
    good = ["summarize", folder[1], rows, *ask]
    for words, message in [
        ([*good, "--relation", "near"], "'relation' parameter"),
        (["summarize", tmp_path / "x", rows, *ask], "No such file"),
        (
            ["summarize", folder[1], tmp_path / "rows.xls", *ask],
            "rows must be an .npz, .npy or",
        ),
        ([*good, "--ledger", "l.db"], "must be given together"),
        (
            [*good, "--ledger", tmp_path / "none.db", "--dataset-name", "rows"],
            "--ledger must be",
        ),
        (
            [*good, "--ledger", tmp_path, "--dataset-name", "rows"],
            "--ledger must be the file",
        ),
        (["check", rows], "rows.csv: text must be JSON"),
        (["check", tmp_path / "rows.npy"], "summary must be a file"),
    ]:
        assert command(*words) == 2
        assert message in capsys.readouterr().err
    assert not out.exists()
    assert command(*good) == 0
    assert command(*good) == 2
    assert "--output must be a new file" in capsys.readouterr().err
    assert command("check", out) == 0
    assert "10 rows, 4 dimensions" in capsys.readouterr().out


def test_command_charges_a_ledger_for_what_it_can_write(folder, tmp_path, capsys):
    np.save(tmp_path / "rows.npy", np.zeros((10, 4)))
    ledger = Ledger(tmp_path / "ledger.db", "rows", epsilon=1.0, delta=1e-5)
    words = [
        "summarize",
        folder[1],
        tmp_path / "rows.npy",
        "--epsilon",
        0.8,
        "--delta",
        1e-5,
    ]
    words += ["--ledger", tmp_path / "ledger.db", "--dataset-name", "rows", "-o"]
    assert command(*words, tmp_path / "no folder" / "a.json") == 2
    assert "No such file or directory" in capsys.readouterr().err
    assert ledger.spent == 0
    assert command(*words, tmp_path / "a.json") == 0
    assert ledger.spent == pytest.approx(0.8)
    assert command(*words, tmp_path / "b.json") == 2
    assert "the release must fit what is left of the budget" in capsys.readouterr().err
    assert not (tmp_path / "b.json").exists()


def test_a_full_disk_costs_no_budget(tmp_path, capsys, monkeypatch):
    """The space is taken before the charge; what cannot be written then is printed."""
    maps = [Identity().fit(np.zeros((2, 50))) for _ in range(2)]
    BuyerModel(*maps, np.zeros(50), 1.0).save(tmp_path / "model")
    np.save(tmp_path / "rows.npy", np.zeros((10, 50)))
    ledger = Ledger(tmp_path / "ledger", "rows", epsilon=1.0, delta=1e-5)
    words = ["summarize", tmp_path / "model", tmp_path / "rows.npy", "--epsilon", 0.4]
    words += [
        "--delta",
        1e-6,
        "--ledger",
        tmp_path / "ledger",
        "--dataset-name",
        "rows",
        "-o",
    ]
    out = tmp_path / "summary.json"
    with full_disk(20_000):  # enough for the ledger
        assert command(*words, out) == 2
    assert "File too large); nothing was released" in capsys.readouterr().err
    assert ledger.n_charges == 0
    assert not out.exists()
    out.touch()  # as a process that is killed may leave it
    assert command(*words, out) == 0
    assert ledger.n_charges == 1
    assert out.stat().st_size <= max_file_size(50)
    capsys.readouterr()

    def full(*paths):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert command(*words, tmp_path / "lost.json") == 2
    said = capsys.readouterr()
    assert (
        "No space left on device); the summary was released and is printed" in said.err
    )
    assert Summary.from_json(said.out).n_samples == 10
    assert ledger.n_charges == 2
    assert {path.name for path in tmp_path.iterdir()} == {
        "model",
        "rows.npy",
        "ledger",
        out.name,
    }


@pytest.mark.parametrize("name", ["config.json", "weights.npz"])
def test_a_folder_is_exported_whole_or_not_at_all(name, folder, tmp_path):
    model = folder[0].model_
    size = (folder[1] / name).stat().st_size
    with full_disk(size - 1), pytest.raises(OSError):
        model.save(tmp_path / "new")
    assert os.listdir(tmp_path / "new") == []
    model.save(tmp_path / "new")
    assert BuyerModel.load(tmp_path / "new").fingerprint == model.fingerprint


def test_files_of_rows(tmp_path):
    np.savez(tmp_path / "one.npz", b=np.ones(2))
    assert read_rows(tmp_path / "one.npz").tolist() == [1, 1]
    np.savez(tmp_path / "two.npz", a=np.zeros(2), b=np.ones(2))
    np.savez(tmp_path / "none.npz")
    np.save(tmp_path / "evil.npy", np.array([{}], dtype=object))
    np.save(tmp_path / "array.npy", np.zeros(2))
    (tmp_path / "part.npz").write_bytes((tmp_path / "two.npz").read_bytes()[:99])
    (tmp_path / "part.npy").write_bytes(b"")
    (tmp_path / "one.npz").rename(tmp_path / "other.npy")
    (tmp_path / "array.npy").rename(tmp_path / "other.npz")
    (tmp_path / "named.csv").write_text("a,b\n1,2\n")
    for name, message in (
        ("two.npz", "one array"), ("none.npz", "one array"), ("evil.npy", "allow_pickle=False"),
        ("part.npz", "a whole .npz"), ("part.npy", "a whole .npy"), ("other.npy", "another kind"),
        ("other.npz", "another kind"), ("named.csv", "without a header"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=f"(?s)rows .*{message}") as raised:
            read_rows(tmp_path / name)
        assert name in str(raised.value)


def test_rows_in_damaged_files_are_refused(tmp_path):
    np.savez_compressed(tmp_path / "whole.npz", np.arange(600.0))
    np.savez(tmp_path / "plain.npz", np.arange(9.0))
    whole, plain = (
        (tmp_path / f"{word}.npz").read_bytes() for word in ("whole", "plain")
    )
    method, flags = bytearray(plain), bytearray(plain)
    local, central = plain.index(b"PK\x03\x04"), plain.index(b"PK\x01\x02")
    method[local + 8] = method[central + 10] = 99  # of compression
    flags[local + 6] = flags[central + 8] = 1  # encrypted
    bits = whole[:100] + bytes([whole[100] ^ 255]) + whole[101:]
    messages = ("Error -3 while decompressing", "compression method", "is encrypted")
    for content, message in zip((bits, method, flags), messages):
        (tmp_path / "bad.npz").write_bytes(content)
        with pytest.raises(
            ValueError, match=f"a whole .npz file .* Got .*bad.npz: .*{message}"
        ):
            read_rows(tmp_path / "bad.npz")
    head = b"{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000000, 2), }"
    (tmp_path / "long.npy").write_bytes(
        b"\x93NUMPY\x01\x00v\x00" + head.ljust(117) + b"\n" + head
    )
    with pytest.raises(ValueError, match="a whole .npy file .*long.npy: "):
        read_rows(tmp_path / "long.npy")


@pytest.mark.parametrize(
    "array",
    [np.array(3.0), np.ones(3, complex), np.array(["1", "2"]), np.zeros(2, "M8[s]")],
    ids=str,
)
def test_rows_are_real_numbers(array, tmp_path):
    np.save(tmp_path / "rows.npy", array)
    with pytest.raises(ValueError, match="real numbers. Got .*rows.npy, which holds "):
        read_rows(tmp_path / "rows.npy")
