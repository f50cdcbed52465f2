"""
skvalue and other libraries of data valuation
=============================================

Values of the same problems by skvalue and by pyDVL, OpenDataVal, shapiq, cleanlab,
dattri and datascope, whichever are there, in five parts:

games
    Nearest-neighbour games of 11 rows against the enumeration of all 2^11 coalitions.
balls
    Threshold-KNN-Shapley of many rows against the paper's formula in whole numbers.
weights
    KNN-Shapley of a majority vote of weighted neighbours: values and CPU seconds.
speed
    CPU seconds and memory for exact KNN-Shapley, how well low values find flipped
    labels, and how the values compare with the exact ones.
users
    What users of scikit-learn expect, tried.

The libraries ask for versions of NumPy that exclude each other, so each may live in an
environment of its own:

    python other_libraries.py --with pydvl=pydvl/bin/python --with
    shapiq=shapiq/bin/python

What is not named is taken from this environment, and left out with a line that says so
if it is not there. Every library runs in a process of its own
(other_libraries_worker.py) with its documented call and one job; where a setting may
make it faster, several are measured and the fastest counts. With `--results FOLDER`
measurements are kept there, and those found there are not repeated.
"""

import argparse
import re
import tempfile
import textwrap

import numpy as np
from other_libraries_exact import (
    exact_ball_values,
    exact_knn_values,
    game_values,
    least_frequent,
    values_by_each_other,
)
from other_libraries_processes import (
    Libraries,
    add_arguments,
    print_table,
    read_pythons,
)
from other_libraries_worker import METHODS
from scipy.spatial.distance import cdist
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

NAMES = np.array(["ant", "bee", "cat"])
NEIGHBOURS = [1, 3, 10, 20]
RADIUS = 1.5
WANTED = ["clone", "Pipeline", "GridSearchCV", "pandas, strings", "sparse", "n_jobs"]

# What may make a library's call faster.
SETTINGS = {"opendataval": [{"batch_size": 32}, {"batch_size": 1024}]}


class Notes:
    """Exceptions, numbered in the order in which the tables meet them."""

    def __init__(self):
        self.texts = []

    def mark(self, text):
        text = re.sub(r" object at 0x\w+", "", text)
        if text not in self.texts:
            self.texts.append(text)
        return f"{text.split(':')[0]} [{self.texts.index(text) + 1}]"

    def print(self):
        for number, text in enumerate(self.texts, 1):
            print(textwrap.fill(f"[{number}] {text}", 98, subsequent_indent="    "))
        print()


def draw(n, m, columns, seed, spread=0.0):
    """Three classes, all of which are there."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % 3)
    y_val = rng.integers(0, 3, m)
    centres = spread * rng.normal(size=(3, columns))
    return (
        rng.normal(size=(n, columns)) + centres[y],
        y,
        rng.normal(size=(m, columns)) + centres[y_val],
        y_val,
    )


def save(libraries, name, X, y, X_val, y_val):
    return libraries.save(name, X=X, y=y, X_val=X_val, y_val=y_val)


def played(name):
    """The games that a library plays: title, method, game of the enumeration,
    parameters."""
    tknn = [("ball", "tknn", "ball", {})]
    others = {
        "skvalue": [
            ("original", "knn", "original", {}),
            ("soft", "knn", "soft", {"utility": "soft"}),
            ("original, leave-one-out", "by each other", "original", {}),
            *tknn,
        ],
        "cleanlab": [("original, leave-one-out", "by each other", "original", {})],
        "datascope": [("majority", "knn", "majority", {})],
        "shapiq": [("original", "knn", "original", {}), *tknn],
    }
    return others.get(name, [("original", "knn", "original", {})])


def print_games(libraries, args, notes):
    problems = [draw(11, 6, 3, seed) for seed in range(args.games)]
    paths = {}
    for seed, (X, y, X_val, y_val) in enumerate(problems):
        paths[seed, "codes"] = save(libraries, f"game{seed}", X, y, X_val, y_val)
        paths[seed, "strings"] = save(
            libraries, f"spelt{seed}", X, NAMES[y], X_val, NAMES[y_val]
        )
    rows = []
    for name in libraries.pythons:
        games = {
            (title, parameter): (method, kind, {**parameters, letter: parameter})
            for title, method, kind, parameters in played(name)
            for letter, parameter in (
                [("radius", RADIUS)]
                if kind == "ball"
                else [("k", k) for k in NEIGHBOURS]
            )
        }
        jobs = [
            {
                "key": f"game{seed}-{labels}-{title}-{parameter}",
                "method": method,
                "problem": paths[seed, labels],
                "parameters": parameters,
                "warm_up": False,
            }
            for (title, parameter), (method, _, parameters) in games.items()
            for seed, labels in paths
        ]
        reports = iter(libraries.answers(name, jobs))
        cells = {}
        strings = {}
        for (title, parameter), (method, kind, _) in games.items():
            codes, spelt = zip(*((next(reports), next(reports)) for _ in problems))
            if "values" in codes[0] and "error" in spelt[0]:
                strings[title] = notes.mark(spelt[0]["error"])
            else:
                codes = spelt
            cells.setdefault(title, [])
            if "values" in codes[0]:
                expected = [
                    values_by_each_other((kind, parameter), *p[:2])
                    if method == "by each other"
                    else game_values((kind, parameter), *p)
                    for p in problems
                ]
                # over the largest of all: in one game alone all values may be near zero
                found = {"values": np.array([report["values"] for report in codes])}
                cells[title].append(f"{relative_error(found, np.array(expected)):.0e}")
            else:
                cells[title].append(missing(codes[0], notes))
        for title, errors in cells.items():
            errors += [""] * (len(NEIGHBOURS) - len(errors))
            rows.append([name, title, strings.get(title, "yes"), *errors])
    print(
        f"Largest error over the largest value, in {args.games} games of 11 rows, 6 "
        f"points and 3\n"
        f"classes, against enumeration. The ball has the radius {RADIUS} (first "
        f"column).\n"
    )
    print_table(["library", "game", "strings", *(f"K = {k}" for k in NEIGHBOURS)], rows)


def time_cells(report):
    """CPU seconds of the calls: the median, and the quartiles."""
    low, high = report["quartiles"]
    return [f"{report['seconds']:.3g}", f"{low:.3g} to {high:.3g}"]


def relative_error(report, exact):
    """The largest error over the largest value."""
    return abs(report["values"] - exact).max() / abs(exact).max()


def missing(report, notes):
    if "stopped" in report:
        return f"> {report['stopped']:g} s"
    return notes.mark(report["error"])


# Threshold-KNN-Shapley of many rows ---------------------------------------------------


def print_balls(libraries, args, notes):
    exact = []
    jobs = []
    for n, part in [(n, part) for n in args.balls for part in (0.02, 0.5)]:
        X, y, X_val, y_val = draw(n, 5, 3, seed=0)
        X_val *= 0.3
        radius = float(
            np.quantile(cdist(0 * X_val[:1], X), part)
        )  # holds that, at the centre
        exact.append((n, *exact_ball_values(X, y, X_val, y_val, radius)))
        jobs.append(
            {
                "key": f"ball{n}-{part}",
                "method": "tknn",
                "warm_up": False,
                "problem": save(libraries, f"ball{n}-{part}", X, y, X_val, y_val),
                "parameters": {"radius": radius},
            }
        )
    rows = []
    for name in libraries.pythons:
        if "tknn" not in METHODS[name]:
            continue
        for (n, expected, held), report in zip(exact, libraries.answers(name, jobs)):
            cells = [missing(report, notes), ""] if "values" not in report else None
            if cells is None:
                worth = expected != 0
                signs = np.sign(report["values"][worth]) == np.sign(expected[worth])
                cells = [
                    f"{relative_error(report, expected):.0e}",
                    f"{signs.mean():.1%}",
                ]
            rows.append([name, f"{n:,}", f"{held.min()} to {held.max()}", *cells])
    print(
        "Threshold-KNN-Shapley at 5 points: largest error over the largest value, "
        "against the\n"
        "paper's Theorem 13 in whole numbers, and the fraction of values with the "
        "right sign.\n"
    )
    print_table(["library", "rows", "in the balls", "error", "signs"], rows)


# Weighted neighbours ------------------------------------------------------------------


def without_the_empty(X, y, X_val, y_val):
    """What the values of skvalue are more than those of the same game with utility 0
    for no rows.

    The utility of no rows is 1/C in skvalue; each row that votes on a class pair takes
    a part.
    """
    counts = np.bincount(y)
    n_classes = y.max() + 1
    extra = np.zeros(len(y))
    for label in y_val:
        for other in np.delete(np.arange(n_classes), label):
            both = (y == label) | (y == other)
            extra -= (
                both / (counts[label] + counts[other]) / (n_classes - 1) / n_classes
            )
    return extra / len(y_val)


def print_weights(libraries, args, notes):
    K = 5
    jobs = []
    problems = []
    for n in args.weighted:
        problems.append(draw(n, 4, 4, seed=0))
        jobs.append(
            {
                "key": f"weights{n}",
                "method": "weighted",
                "warm_up": True,
                "problem": save(libraries, f"weights{n}", *problems[-1]),
                "parameters": {"k": K},
            }
        )
    rows = []
    ours = {}
    for name in libraries.pythons:
        if "weighted" not in METHODS[name]:
            continue
        for p, report in zip(problems, libraries.answers(name, jobs)):
            n = len(p[1])
            cells = [
                missing(report, notes) if "values" not in report else "",
                *[""] * 3,
            ]
            if "values" in report:
                if name == "skvalue":  # the first of them
                    report["values"] = report["values"] - without_the_empty(*p)
                    ours[n] = report
                cells = [*time_cells(report), "", ""]
                if n in ours:
                    cells[2] = as_ratio(report["seconds"] / ours[n]["seconds"])
                    cells[3] = f"{relative_error(report, ours[n]['values']):.0e}"
            rows.append([name, f"{n:,}", *cells])
    print(
        f"KNN-Shapley of a majority vote of weighted neighbours, K = {K}, weights of "
        f"3 bits, 3\n"
        "classes, 4 points: CPU seconds of the call, median and quartiles; their ratio "
        "to\n"
        "skvalue's; largest difference of values from skvalue's, less the part of the "
        "empty\n"
        "coalition, over the largest value.\n"
    )
    print_table(["library", "rows", "CPU s", "quartiles", "ratio", "difference"], rows)


# Seconds, memory, quality -------------------------------------------------------------


def contestants(name, K):
    """Title, method, parameters, and what gives the exact values of the game played."""
    if name == "cleanlab":
        return [("leave-one-out", "by each other", {"k": K})]
    if name == "datascope":
        return [("K = 1", "knn", {"k": 1})]
    plain = [(f"K = {K}", "knn", {"k": K})]
    if name != "skvalue":
        return plain
    return [
        *plain,
        ("K = 1", "knn", {"k": 1}),
        ("leave-one-out", "by each other", {"k": K}),
    ]


def as_ratio(ratio):
    return f"{ratio:,.0f}" if ratio > 10 else f"{ratio:.1f}"


def print_speed(libraries, args, notes):
    K = 10
    for n, m in args.sizes:
        X, y, X_val, y_val = draw(n, m, 20, seed=0, spread=0.6)
        rng = np.random.default_rng(1)
        flipped = np.zeros(n, dtype=bool)
        flipped[rng.choice(n, n // 10, replace=False)] = True
        y = np.where(flipped, (y + rng.integers(1, 3, n)) % 3, y)
        path = save(libraries, f"speed{n}", X, y, X_val, y_val)
        null = (
            y_val == least_frequent(y, y_val)
        ).mean() / n  # of datascope's empty coalition
        exact = {
            f"K = {K}": exact_knn_values(X, y, X_val, y_val, K),
            "K = 1": exact_knn_values(X, y, X_val, y_val, 1),
            "leave-one-out": exact_knn_values(X, y, X, y, K, itself=True),
        }
        rows = []
        ours = {}
        for name in libraries.pythons:
            for title, method, parameters in contestants(name, K):
                tried = [
                    {
                        "key": f"speed{n}-{title}-{number}",
                        "method": method,
                        "problem": path,
                        "parameters": {**parameters, **setting},
                        "warm_up": True,
                    }
                    for number, setting in enumerate(SETTINGS.get(name, [{}]))
                ]
                reports = libraries.answers(name, tried, one_process_each=True)
                done = [r for r in reports if "values" in r]
                row = [name, title]
                expected = exact[title] - null * (name == "datascope")
                if not done:
                    rows.append([*row, missing(reports[0], notes), *[""] * 7])
                    continue
                best = min(done, key=lambda r: r["seconds"])
                setting = SETTINGS.get(name, [{}])[reports.index(best)]
                if name == "skvalue":  # the first of them
                    ours[title] = best["seconds"]
                rows.append(
                    [
                        *row,
                        *time_cells(best),
                        as_ratio(best["seconds"] / ours[title])
                        if title in ours
                        else "",
                        "" if best["bytes"] is None else f"{best['bytes'] / 1e6:.0f}",
                        f"{roc_auc_score(flipped, -best['values']):.3f}",
                        f"{spearmanr(best['values'], expected)[0]:.4f}",
                        f"{relative_error(best, expected):.0e}",
                        ", ".join(f"{k}={v}" for k, v in setting.items()),
                    ]
                )
        print(
            f"KNN-Shapley of {n:,} rows in 20 columns, 3 classes, one label in ten "
            f"flipped;\n"
            f"{m:,} validation points, or leave-one-out. CPU seconds of a call, median "
            "and\n"
            "quartiles; their ratio to skvalue's; MB beyond the data; AUROC of low "
            "values for the\n"
            "flipped rows; rank correlation with the exact values of the game, largest "
            "error over\n"
            "the largest; the fastest setting.\n"
        )
        header = [
            "library",
            "game",
            "CPU s",
            "quartiles",
            "ratio",
            "MB",
            "AUROC",
            "rank corr.",
            "error",
        ]
        print_table([*header, "setting"], rows)


# What users expect --------------------------------------------------------------------


def print_users(libraries, args, notes):
    rows = []
    for name in libraries.pythons:
        jobs = [
            {
                "key": f"users-{number}",
                "method": "expectation",
                "parameters": {"what": what},
            }
            for number, what in enumerate(WANTED)
        ]
        reports = libraries.answers(name, jobs)
        rows.append(
            [
                name,
                *(r["answer"] if "answer" in r else missing(r, notes) for r in reports),
            ]
        )
    print("What users of scikit-learn expect, tried.\n")
    print_table(["library", *WANTED], rows)


PARTS = {
    "games": print_games,
    "balls": print_balls,
    "weights": print_weights,
    "speed": print_speed,
    "users": print_users,
}


def parse_arguments(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_arguments(parser, METHODS)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--games", type=int, default=5, help="small games to enumerate")
    parser.add_argument(
        "--balls", nargs="+", type=int, default=[1000, 1100, 5000], metavar="N"
    )
    parser.add_argument(
        "--weighted", nargs="+", type=int, default=[50, 100], metavar="N"
    )
    parser.add_argument(
        "--sizes",
        nargs="+",
        default=["2000,200", "10000,500"],
        metavar="N,M",
        help="rows and points of the part on speed",
    )
    args = parser.parse_args(arguments)
    args.pythons = read_pythons(parser, args, METHODS)
    sizes = [re.fullmatch(r"(\d+),(\d+)", size) for size in args.sizes]
    if None in sizes:
        parser.error(
            f"--sizes must be pairs N,M of whole numbers. Got {' '.join(args.sizes)}."
        )
    args.sizes = [tuple(map(int, size.groups())) for size in sizes]
    return args


def main():
    args = parse_arguments()
    with tempfile.TemporaryDirectory() as folder:
        args.results = args.results or folder
        libraries = Libraries(args)
        notes = Notes()
        libraries.print_versions()
        for part in args.parts:
            PARTS[part](libraries, args, notes)
        notes.print()


if __name__ == "__main__":
    main()
