"""Wrong labels, duplicates and other faults of tables: what is found of them."""

import re

import numpy as np
import pytest
from sklearn.datasets import make_classification

from .scripts import of


@of("label_errors")
def test_noise_of_every_kind_has_its_rate(script, rng):
    clean = rng.dirichlet([1.0, 1.0, 1.0], 300)
    y = np.arange(300) % 3
    for kind in script.KINDS:
        is_wrong = script.add_noise(y, kind, 0.1, clean, rng) != y
        assert abs(is_wrong.sum() - 30) <= 2
        perfect = -is_wrong.astype(float)
        assert script.precision_at_number(perfect, is_wrong) == 1


@of("label_errors", pytest.mark.slow)
def test_a_run_prints_its_tables(script, capsys):
    (key, *data), *_ = script.runs_of("wine", None, 0, 120, [0.1], ["symmetric"])
    runs = {key: script.one_run(key, *data, ["ranking", "rules"], False)}
    script.print_suggestions(runs)
    script.print_ranking(runs, "one")
    script.print_rules(runs, "one")
    printed = capsys.readouterr().out
    pattern = r"^(?:Label|KNN)\w+ +([\d.]+) "
    precisions = re.findall(pattern, printed, re.MULTILINE)
    assert len(precisions) == 4
    assert min(map(float, precisions)) > 0.6
    assert "fdr 0.1, confidence 0.95" in printed


@of("label_errors_confidence", pytest.mark.slow)
def test_lists_keep_the_rate_that_they_are_named_with(script, monkeypatch, run):
    monkeypatch.setattr(script, "SETTINGS", [(200, 60, 2, 50)])
    rates = re.findall(r"(?:in|draws,) (\d+\.\d+)", run())
    above_rate, n_named = map(float, rates)
    assert above_rate <= 0.08
    assert n_named > 1


@of("label_errors_regression")
def test_wrong_targets_are_planted_in_one_row_of_twenty(script, rng):
    y = rng.uniform(1, 2, 400)
    for kind in script.KINDS:
        planted, is_wrong = script.plant(y, kind, 0)
        assert 15 <= is_wrong.sum() <= 20
        assert (planted[~is_wrong] == y[~is_wrong]).all()


@of("label_errors_regression")
def test_the_spread_helps_where_noise_grows_with_the_target(run, tmp_path, rng):
    folder = tmp_path / "Ecdat"
    folder.mkdir()
    size = rng.uniform(size=200)
    price = np.exp(3 * size) * np.exp(0.2 * rng.normal(size=200))
    lines = [f"{i},{price[i]},{size[i]}" for i in range(200)]
    (folder / "Housing.csv").write_text("\n".join(["row,price,size", *lines]))
    printed = run(f"--data {tmp_path} --tables Housing --seeds 1")
    found, plain = map(float, re.findall(r"^\w+ +(0\.\d+)$", printed, re.MULTILINE))
    assert found > plain


@of("table_duplicates")
def test_equal_rows_of_a_folder_of_tables_are_counted(run, tmp_path):
    numbers = np.random.default_rng(0).normal(size=(60, 3)).round(3)
    lines = []
    for a, b, c in numbers:
        label = "yes" if a > 0 else "no"
        lines.append(f"{a},{b},{c},red,{label}\n")
    header = "a,b,c,colour,label\n"
    (tmp_path / "t.csv").write_text(header + "".join(lines + lines[:5]))
    printed = run(str(tmp_path))
    assert "t.csv: 5 equal (copies), 0 similar pairs" in printed
    assert "{'copies': 1}; 0 groups of rows that are not equal" in printed


@of("audit_cost", pytest.mark.slow)
def test_an_audit_is_timed(run):
    pytest.importorskip("jinja2")
    printed = run("--rows 150")
    ratio = re.search(r"^ratio: ([\d.]+)$", printed, re.MULTILINE)
    assert float(ratio[1]) > 0
    megabytes = re.search(r"^page: ([\d.]+) MB$", printed, re.MULTILINE)
    assert 0 < float(megabytes[1]) < 1


# Reviews ------------------------------------------------------------------------------


@of("review_queue", pytest.mark.slow)
def test_a_queue_leaves_fewer_wrong_labels_than_a_random_order(
    script, monkeypatch, run
):
    pytest.importorskip("pandas")
    monkeypatch.setattr(script, "RATES", (0.2,))
    monkeypatch.setattr(script, "N_ROWS", 200)
    lines = run("--sets breast wind").splitlines()
    assert lines[0].split()[:4] == ["random", "left", "at", "stop"]
    in_random_order, with_queue = map(float, lines[-2].split()[1:3])
    assert with_queue < 0.25 < 0.5 < in_random_order


def overlapping_classes(seed):
    """A data set like those of scikit-learn; classes overlap less with the seed."""

    def load(return_X_y):
        return make_classification(
            600,
            8 + seed,
            n_informative=4,
            n_redundant=seed,
            n_classes=2 + seed % 2,
            n_clusters_per_class=1,
            class_sep=0.8 + 0.1 * seed,
            flip_y=0.0,
            random_state=seed,
        )

    return load


@of("review_queue", pytest.mark.slow)
def test_few_wrong_labels_are_left_by_a_review(script, monkeypatch):
    """Digits, tumours and made tables, of which some have classes that overlap."""
    pd = pytest.importorskip("pandas")
    made = {f"made {seed}": overlapping_classes(seed) for seed in range(5)}
    monkeypatch.setattr(script, "IN_MEMORY", script.IN_MEMORY | made)
    results = []
    for name in script.IN_MEMORY:
        results += script.measure(name, ".", 0)
    results = pd.DataFrame(results)
    means = results.groupby("rate").mean(numeric_only=True)
    assert (means["left"] <= [0.22, 0.24, 0.34]).all()
    assert (means["at stop"] <= [0.25, 0.2, 0.2]).all()
    assert (means["random"] > 0.8).all()
    assert results["wrong"].sum() <= 0.1 * results["changed"].sum()


# Checks of tables ---------------------------------------------------------------------


@of("table_checks", pytest.mark.slow)
def test_faults_that_are_put_into_tables_are_found(run):
    pytest.importorskip("pandas")
    printed = run("--sets wine breast --parts together")
    assert "clean tables: question" in printed
    rates = dict(line.rsplit(maxsplit=1) for line in printed.splitlines()[-8:])
    for kind in ("spelling", "missing labels", "id", "leak", "equal rows"):
        assert float(rates[kind]) == 1, kind


@of("table_checks", pytest.mark.slow)
def test_rules_of_checks_find_faults_without_false_alarms(run):
    pytest.importorskip("pandas")
    rules = "spellings duplicates ids missing orders far"
    printed = run(f"--sets wine breast --parts rules --rules {rules} --runs 20")
    pattern = r"^rule (.*?): ([\d.]+) of"
    for kind, rate in re.findall(pattern, printed, re.MULTILINE):
        if kind in ("spelling: case", "id: 1 to n", "order: sorted by label"):
            assert float(rate) == 1, kind
        if "alarm" in kind:
            assert float(rate) < 0.1, kind


@of("table_checks", pytest.mark.slow)
def test_improbable_cells_are_found(run):
    pytest.importorskip("pandas")
    printed = run("--sets wine breast --parts cells --runs 20")
    pattern = r"2 tables: area (.*), average precision (.*)"
    area, precision = map(float, re.search(pattern, printed).groups())
    assert area > 0.94
    assert precision > 0.65


@of("table_checks", pytest.mark.slow)
def test_private_counts_decide_as_audits_do(run):
    pytest.importorskip("pandas")
    printed = run("--sets wine breast --parts private --runs 20")
    coverages = re.findall(r": (\S+) of the counts of 20 runs", printed)
    assert min(map(float, coverages)) > 0.95
    assert re.findall(r"the audit (\w+)", printed) == ["passes", "fails"]
