"""Pages about the papers: each part of a paper is somewhere, each of its names in the
index."""

import re
from pathlib import Path

import pytest

PAGES = Path(__file__).resolve().parents[1] / "doc" / "user_guide"
SECTION = "What the paper has, and where it is here"
# Parts that a reader of the paper looks for in its table.
PARTS = {
    "reproduction_layered": [
        *("Algorithm 1", "Algorithm 2", "Observation 3.1", "Definition 3.2"),
        *("Theorem 3.3", "Theorem 3.4", "Theorem 3.5", "Lemma C.1", "Theorem 2.3"),
        *("core sets", "value of a submitted subset", "Figure 1", "Table 1"),
    ],
    "reproduction_gradients": [
        *("Algorithm 1", "Propositions 5.1", "5.3", "5.4", "C.3", "C.4", "C.9"),
        *("C.10", "C.11", "Observation C.1", "Lemmas C.2", "C.5", "C.6", "C.8"),
        *("Corollary C.7", "Definitions 3.1 and 5.2", "Appendix D.5"),
        *("Figure 1", "Figure 2", "Figures 3, 8, 9", "Figure 4", "Figure 5"),
        *("Figure 6", "Figure 7", "Table 1", "Tables 2 and 6", "Table 3, top"),
        *("Table 3, bottom", "Table 4", "Table 5", "Table 7", "Table 8"),
    ],
    "reproduction_collaborative": [
        *("Definition 2.1", "Definition 2.2", "Definition 3.1", "V1 to V3"),
        *("P1 to P6", "F1 to F4", "Section 5.1", "Section 5.2", "Appendix E.3"),
        *("Algorithm 2", "Figure 1", "Figure 5", "Figures 2a to 2c, 3a to 3c"),
        *("Figures 2d to 2f, 3d to 3f", "Appendix H.5", "PASS-GLM"),
    ],
    "reproduction_priarta": ["Definition 1", "Theorem 1", "Figure 6", "Figure 7"],
    "reproduction_tknn": [
        *("Theorem 1", "Theorems 2, 7 and 8", "Theorems 5 and 13"),
        *("Theorems 6, 14 and 16", "Definition 15", "Definition 3, 4", "Theorem 9"),
        *("Theorem 10", "Theorem 11", "Theorem 12", "Algorithm 1", "D.2.3"),
        *("Figure 1", "Figures 2 and 5", "Figures 3 and 4", "Tables 2 and 8"),
        *("Table 1", "Tables 3, 9 and 10", "Tables 4, 5 and 6", "Table 7"),
        "Tables 11 to 14",
    ],
}
NAMES = [
    *("Layered Shapley", "core set", "uniform stability", "Poisson sampling"),
    *("G-Shapley", "estimation uncertainty", "correlated noise", "burn-in ratio"),
    *("dataset valuation", "federated learning", "noise multiplier"),
    *("membership inference attack", "Bayesian surprise", "sufficient statistic"),
    *("likelihood tempering", "noise addition", "rho-Shapley", "model reward"),
    *("privacy-valuation trade-off", "individual rationality", "group welfare"),
    *("Renyi differential privacy", "MNLP", "PASS-GLM", "conjugate prior"),
    *("PriArTa", "WaKA", "rank fidelity", "time-aware rewards"),
    *("TKNN-Shapley", "threshold-based nearest neighbor classifier", "KNN-Shapley"),
    *("DP-TKNN-Shapley", "DP-KNN-Shapley", "soft-label KNN-Shapley"),
    *("joint differential privacy", "collusion resistance", "global sensitivity"),
    *("privacy amplification by subsampling", "mislabeled data detection"),
    *("noisy data detection", "noisy label detection", "data selection task"),
    *("task-agnostic data valuation", "augmentation-robust valuation", "SimCLR"),
    *("data marketplace", "contrastive learning", "NT-Xent loss", "projection head"),
    *("variational autoencoder", "evidence lower bound", "2-Wasserstein distance"),
    *("diversity", "relevance", "Gaussian mechanism", "Laplace mechanism"),
    *("semivalue", "Banzhaf value", "Beta Shapley", "leave-one-out", "i.i.d. noise"),
    *("mean-adjusted variance", "perturbed gradient", "matrix factorization"),
    *("marginal contribution", "Monte Carlo sampling", "neighbouring databases"),
    *("sensitivity", "diminishing marginal gains", "regularized ERM", "mediator"),
    *("party monotonicity", "efficiency", "fairness", "information gain"),
    *("normal inverse-gamma prior", "Bayesian linear regression", "DP-feasibility"),
    *("Bayesian logistic regression", "Markov chain Monte Carlo", "grand coalition"),
    *("perturbed sufficient statistic", "noise-aware inference", "truthfulness"),
]


def rows_of_tables(text):
    """The rows of all list tables, as lists of cells."""
    rows = []
    for block in re.split(r"\n   \* - ", text)[1:]:
        block = re.split(r"\n(?=\S)", block)[0]
        rows.append([" ".join(cell.split()) for cell in re.split(r"\n     - ", block)])
    return rows


@pytest.mark.parametrize("page", PARTS)
def test_every_part_of_a_paper_is_in_its_table(page):
    text = (PAGES / f"{page}.rst").read_text(encoding="utf-8")
    table = text.split(SECTION, 1)[1].split("\n\n\n")[0]
    rows = rows_of_tables(table)
    first_cells = " ".join(row[0] for row in rows)
    missing = [part for part in PARTS[page] if part not in first_cells]
    assert not missing


@pytest.mark.parametrize("page", [*PARTS, "not_here"])
def test_no_cell_of_a_table_of_parts_is_empty(page):
    rows = rows_of_tables((PAGES / f"{page}.rst").read_text(encoding="utf-8"))
    assert len(rows) > 5
    for row in rows:
        assert len(row) == 3
        assert all(row)


def test_names_of_the_papers_are_in_the_index():
    indexed = set()
    for page in PAGES.glob("*.rst"):
        text = page.read_text(encoding="utf-8")
        for block in re.findall(r"\.\. index::((?:\n   .*)+)", text):
            entries = [line.strip(" !") for line in block.strip().splitlines()]
            indexed |= {entry.split(":", 1)[1].strip() for entry in entries}
    assert not [name for name in NAMES if name not in indexed]
