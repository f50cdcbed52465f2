"""PriArTa: mechanisms of its noise, and markets."""

import re

import numpy as np
import pytest

from skvalue.priarta import PriArTaScorer

from .scripts import ROOT, of


@of("priarta_mechanisms")
def test_the_published_noise_on_rows_hardly_moves_distances(script, rng):
    buyer = script.rows(rng, 2000, 4)
    seller = script.rows(rng, 2000, 4, 0.3)
    scorer = PriArTaScorer(max_norm=1.0, mean_weight=0.6).fit(buyer)
    scores = [script.published_score(scorer.model_, buyer, seller) for _ in range(5)]
    np.testing.assert_allclose(scores, scorer.transform([seller])[0, 0], atol=0.01)
    scale = script.paper_scale(0.8, 1e-5, 2000, 1.0)
    rows = scorer.model_.transform(seller)
    noisy = rows + scale * rng.normal(size=rows.shape)
    assert 0 < np.linalg.norm(noisy.mean(axis=0) - rows.mean(axis=0)) < 0.01


@of("priarta_mechanisms")
def test_noise_on_moments_has_smaller_errors_than_on_rows(run):
    printed = run("--repeats 2 --dimensions 4")
    numbers = re.findall(r"^n = +\d+: +([\d.]+)$", printed, re.MULTILINE)
    assert numbers == ["3.4", "9.0", "13.9", "41.2"]
    rows = re.findall(r"^(.*\S)((?: +[\d.]+){3})$", printed, re.MULTILINE)
    errors = {name: np.array(cells.split(), dtype=float) for name, cells in rows}
    assert len(errors) == 4
    assert (errors["on the moments (default)"] < errors["on every row (local)"]).all()


@of("priarta_distances")
def test_scores_without_noise_are_those_of_equation_2(run):
    printed = run("--parts exact --dimensions 2 --n 100")
    (difference,) = re.findall(r"largest relative difference ([\d.e-]+)", printed)
    assert float(difference) < 1e-10


@of("priarta_distances")
@pytest.mark.slow
def test_the_cell_of_two_dimensions_is_that_of_the_page(run):
    page = (ROOT / "doc" / "user_guide" / "priarta.rst").read_text(encoding="utf-8")
    cells = re.findall(r"^of each seller, shrunk \(the default\) +(\S+)", page, re.M)
    printed = run("--parts order --dimensions 2")
    (ours,) = re.findall(r"own radius \(default\) +([\d.]+)", printed)
    assert abs(float(ours) - float(cells[0])) <= 0.002


@of("priarta_distances")
def test_the_published_noise_tells_who_is_a_member(run):
    printed = run("--parts membership --n 500")
    areas = re.findall(r"norm [\d]+: ([\d.]+)", printed)
    assert areas == ["0.903", "0.565", "0.552"]
    area, error, ceiling = map(
        float, re.search(r": ([\d.]+) \(([\d.]+)\), at most ([\d.]+)", printed).groups()
    )
    assert 0.5 - 5 * error < area <= ceiling + 5 * error


@of("priarta_markets")
def test_markets_print_scores_and_gains(run, tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(3000) % 4
    X = rng.normal(size=(3000, 12)) + 3 * np.eye(12)[y]
    np.savez(tmp_path / "agnews_minilm.npz", X=X, y=y)
    pattern = (
        r"^\d [a-z0-9 ]+? +\d+ +([\d.]+) +([\d.]+) \([\d.]+\) +[\d.]+ +([\d.]+) "
        r"([+-][\d.]+)$"
    )
    rows = re.findall(pattern, run("--data . --releases 2"), re.MULTILINE)
    exact, private, floor, gain = np.array(rows, dtype=float).T
    assert len(exact) == 6
    assert exact[3] == 0  # the copy
    assert private[3] < floor[3] < private[0]
    assert gain[0] > 0.2 > gain[3]
