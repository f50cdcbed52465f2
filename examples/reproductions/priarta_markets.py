"""
Markets of texts and of tables
==============================

A buyer ranks sellers of news texts (AG News, by sentence embeddings) and of people
(Adult, by age) from private summaries, and the ranking is compared with what each
purchase does for a classifier:

    python examples/reproductions/priarta_markets.py --data FOLDER

FOLDER holds agnews_minilm.npz and adult.npz, or one of them, with arrays X and y.
Scores are 2-Wasserstein distances of 8 principal components; private ones are at (0.8,
1e-5), mean and standard deviation over fresh releases.
"""

import argparse
from pathlib import Path

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skvalue.priarta import PriArTaScorer, PrincipalComponents

EPSILON = 0.8
DELTA = 1e-5


def text_market(X, y, rng):
    """The buyer has World and Sports; Business and Science are new."""
    rows = rng.permutation(len(X))
    test = rows[:600]
    rows = rows[600:]
    kind = [rows[y[rows] == label] for label in range(4)]
    buyer = np.concatenate([kind[0][:300], kind[1][:300]])
    new = np.concatenate([kind[2], kind[3]])
    sellers = {
        "1 new topics": new,
        "2 half new": np.concatenate(
            [kind[0][300:], kind[1][300:], kind[2][:300], kind[3][:300]]
        ),
        "3 same topics": np.concatenate([kind[0][300:], kind[1][300:]]),
        "4 copy of the buyer": buyer,
        "5 most of seller 1": rng.permutation(new)[: int(0.8 * len(new))],
    }
    data = {name: (X[chosen], y[chosen]) for name, chosen in sellers.items()}
    noise = rng.normal(size=(900, X.shape[1]))
    noise /= np.linalg.norm(noise, axis=1, keepdims=True)
    data["6 random vectors"] = noise, rng.integers(4, size=900)
    return (X[buyer], y[buyer]), data, (X[test], y[test])


def table_market(X, y, rng):
    """The buyer has people below 30; older ones are new."""
    rows = rng.permutation(len(X))
    test = rows[:4000]
    rows = rows[4000:]
    age = X[rows, 0]
    young = rows[age < 30]
    buyer = young[:2000]
    others = young[2000:]
    old = rows[age >= 50]
    middle = rows[(age >= 30) & (age < 40)]
    sellers = {
        "1 people of 50 and more": old[:2000],
        "2 people of 30 to 39": middle[:2000],
        "3 people below 30": others[:2000],
        "4 copy of the buyer": buyer,
        "5 half of seller 1": np.concatenate([old[:1000], others[:1000]]),
    }
    data = {name: (X[chosen], y[chosen]) for name, chosen in sellers.items()}
    shuffled = np.stack(
        [rng.permutation(column) for column in X[rows[:2000]].T], axis=1
    )
    data["6 columns shuffled"] = shuffled, y[rows[:2000]]
    return (X[buyer], y[buyer]), data, (X[test], y[test])


def columns(is_cat):
    """Numbers standardised, categories one-hot: a map that treats every row by
    itself."""
    return make_column_transformer(
        (StandardScaler(), np.flatnonzero(~is_cat)),
        (
            OneHotEncoder(handle_unknown="ignore", sparse_output=False),
            np.flatnonzero(is_cat),
        ),
    )


def report(title, market, representation, model, n_releases):
    """Print a table of the market."""
    (X, y), sellers, (X_test, y_test) = market
    latent = PrincipalComponents(8)
    rows = [part[0] for part in sellers.values()]
    own_rows = X
    if not isinstance(representation, str):
        # Once, whatever is released: a private release maps each row by itself.
        representation.fit(X)
        own_rows = representation.transform(X)
        rows = [representation.transform(X_more) for X_more in rows]
    scorer = PriArTaScorer(latent=latent, epsilon=EPSILON, delta=DELTA).fit(own_rows)
    without_noise = PriArTaScorer(latent=latent).fit(own_rows)
    exact = without_noise.transform(rows)[:, 0]
    releases = [scorer.summarize(rows) for _ in range(n_releases)]
    private = np.array(
        [scorer.score_summaries(summaries)[:, 0] for summaries in releases]
    )
    floors = scorer.noise_floor(releases[0])
    errors = scorer.score_errors(releases[0])
    before = model.fit(X, y).score(X_test, y_test)
    print(
        f"\n{title}: {len(X)} rows of the buyer, accuracy {before:.3f} with these alone"
    )
    print(
        f"{'seller':<24} {'n':>5} {'exact':>6} {'private':>13} {'error':>6} "
        f"{'floor':>6} gain"
    )
    for i, (name, (X_more, y_more)) in enumerate(sellers.items()):
        after = model.fit(np.concatenate([X, X_more]), np.concatenate([y, y_more]))
        gain = after.score(X_test, y_test) - before
        spread = f"{private[:, i].mean():.3f} ({private[:, i].std():.3f})"
        print(
            f"{name:<24} {len(X_more):5} {exact[i]:6.3f} {spread:>13} {errors[i]:6.3f} "
            f"{floors[i]:6.3f} {gain:+.3f}"
        )
    order = np.argsort(-exact)
    same = np.mean([(np.argsort(-scores) == order).all() for scores in private])
    honest = np.mean([scores[:5].argmax() in (0, 4) for scores in private])
    unit = (exact - exact.min()) / np.ptp(exact)
    print(f"min-max, exact: {np.round(unit, 2).tolist()}")
    print(
        f"Of {n_releases} releases {same:.0%} have the order of exact scores, "
        f"{honest:.0%} have "
        "seller 1 or 5 first of the five who sell data."
    )
    pairs = scorer.pairwise_distances(releases[0])
    print(
        f"Sellers 1 and 5 are {pairs[0, 4]:.3f} apart, the nearest others of seller 1 "
        f"{np.delete(pairs[0], [0, 4]).min():.3f}."
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[2])
    parser.add_argument(
        "--data", type=Path, required=True, help="folder of the npz files"
    )
    parser.add_argument(
        "--releases", type=int, default=20, help="fresh releases of each seller"
    )
    arguments = parser.parse_args()
    paths = {
        name: arguments.data / f"{name}.npz" for name in ("agnews_minilm", "adult")
    }
    if not any(path.is_file() for path in paths.values()):
        parser.error(
            f"--data must hold agnews_minilm.npz or adult.npz. Got {arguments.data}."
        )
    rng = np.random.default_rng(0)
    if paths["agnews_minilm"].is_file():
        with np.load(paths["agnews_minilm"]) as file:
            X = file["X"].astype(np.float64)
            y = file["y"]
        model = LogisticRegression(max_iter=1000)
        report(
            "News texts", text_market(X, y, rng), "identity", model, arguments.releases
        )
    if paths["adult"].is_file():
        with np.load(paths["adult"]) as file:
            X = file["X"].astype(np.float64)
            y = file["y"]
            is_cat = file["is_cat"]
        model = make_pipeline(columns(is_cat), LogisticRegression(max_iter=1000))
        report(
            "People",
            table_market(X, y, rng),
            columns(is_cat),
            model,
            arguments.releases,
        )


if __name__ == "__main__":
    main()
