"""Draw the pictures of the pages and of the README: `python doc/images/draw.py [NAME
...]`.

`private_methods` and `sampler_times` are drawn from the json files beside them, which
the scripts of these names in examples/reproductions write.
"""

import json
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from skvalue import (
    DataShapleyValuer,
    InfluenceValuer,
    KNNShapleyValuer,
    LeaveOneOutValuer,
    TKNNShapleyValuer,
)
from skvalue.datasets import flip_labels
from skvalue.inspection import noisy_label_auc
from skvalue.valuers import public_baseline

FOLDER = Path(__file__).resolve().parent
EXAMPLES = FOLDER.parents[1] / "examples"
BLUE, RED, BAR = (
    "#30638e",
    "#d1495b",
    "#4a8fc7",
)  # the bars of the logo are seen in the dark


def digits(n_val, odd_or_even=False):
    """Training digits with 10 % wrong labels, validation digits, and which labels are
    wrong."""
    X, y = load_digits(return_X_y=True)
    y = y % 2 if odd_or_even else y
    X, X_val, y, y_val = train_test_split(
        X, y, test_size=n_val, stratify=y, random_state=0
    )
    y_noisy, flipped = flip_labels(y, 0.1, random_state=0)
    return X, y_noisy, {"X_val": X_val, "y_val": y_val}, flipped, y


def draw_clean():
    """The digits of lowest value, with their given and true labels."""
    X, y, validation, flipped, y_true = digits(100)
    values = KNNShapleyValuer().fit(X, y, **validation).values_
    figure, panels = plt.subplots(2, 6, figsize=(6, 2.7), layout="constrained")
    for axes, row in zip(panels.flat, values.argsort(kind="stable")):
        color = RED if flipped[row] else BLUE
        axes.imshow(X[row].reshape(8, 8), cmap="gray_r")
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set(color=color, linewidth=2)
        axes.set_title(f"{y[row]} → {y_true[row]}", color=color, fontsize=11, pad=4)
    return figure


def draw_parties():
    """Values of five parties, one of which has wrong labels in a third of its rows."""
    X, _, validation, _, y = digits(100)
    parties = np.array(list("ABCDE"))[np.arange(len(y)) % 5]
    wrong = np.flatnonzero(parties == "D")
    y[wrong] = flip_labels(y[wrong], 0.33, random_state=0)[0]
    valuer = DataShapleyValuer(LogisticRegression(max_iter=500), random_state=0)
    X, validation["X_val"] = X / 16, validation["X_val"] / 16
    valuer.fit(X, y, groups=parties, **validation)
    figure, axes = plt.subplots(figsize=(6, 2.7), layout="constrained")
    colors = [RED if name == "D" else BLUE for name in valuer.groups_]
    axes.bar(valuer.groups_, valuer.values_, color=colors, width=0.65)
    axes.set(xlabel="party (D has wrong labels)", ylabel="Shapley value of accuracy")
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def draw_influence():
    """Influence of rows, and their values by refits of the model without them."""
    X, y, validation, flipped, _ = digits(200, odd_or_even=True)
    X, y, flipped = X[:200] / 16, y[:200], flipped[:200]
    validation["X_val"] = validation["X_val"] / 16
    influence = InfluenceValuer(LogisticRegression()).fit(X, y, **validation)
    model = LogisticRegression(tol=1e-8, max_iter=1000)
    refits = LeaveOneOutValuer(model, scoring="neg_log_loss", method="refit")
    refits.fit(X, y, **validation)
    figure, axes = plt.subplots(figsize=(6, 2.7), layout="constrained")
    axes.axline((0, 0), slope=1, color="0.7", linewidth=1)
    for rows, color, label in (
        (~flipped, BLUE, "label is right"),
        (flipped, RED, "wrong label"),
    ):
        axes.plot(
            refits.values_[rows], influence.values_[rows], "o", color=color, label=label
        )
    axes.set(xlabel="value of the row by a refit without it", ylabel="influence")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    return figure


def draw_privacy():
    """How well private values find wrong labels, by epsilon."""
    X, y, validation, flipped, _ = digits(200, odd_or_even=True)
    exact = TKNNShapleyValuer(radius=0.2).fit(X, y, **validation).values_
    baseline = public_baseline(X, y, **validation, radius=0.2)
    epsilons = np.geomspace(0.03, 30, 10)
    figure, axes = plt.subplots(figsize=(6, 2.7), layout="constrained")
    for denoise, color, label in (
        (True, BLUE, "denoised (default)"),
        (False, RED, "noisy counts"),
    ):
        private = TKNNShapleyValuer(radius=0.2, delta=1e-4, denoise=denoise)
        found = np.empty((len(epsilons), 5))
        for (i, seed), _ in np.ndenumerate(found):
            private.set_params(epsilon=epsilons[i], noise_random_state=seed)
            found[i, seed] = noisy_label_auc(
                private.fit(X, y, **validation).values_, flipped
            )
        axes.plot(
            epsilons,
            found.mean(axis=1),
            color=color,
            linewidth=2,
            marker="o",
            label=label,
        )
        axes.fill_between(
            epsilons, found.min(axis=1), found.max(axis=1), color=color, alpha=0.15
        )
    for values, style, label in (
        (exact, "-", "no privacy"),
        (baseline, "--", "public baseline"),
    ):
        score = noisy_label_auc(values, flipped)
        axes.axhline(score, color="0.3", linestyle=style, linewidth=1.2, label=label)
    axes.set(xscale="log", xlabel="epsilon", ylabel="AUROC of wrong labels")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="lower right")
    return figure


def draw_large():
    """Seconds of a fit by the number of rows, with 500 validation points and 32
    columns."""
    rng = np.random.default_rng(0)
    sizes = [1_000, 3_000, 10_000, 30_000, 100_000, 300_000]
    X = rng.normal(size=(sizes[-1], 32)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int)
    validation = {"X_val": X[:500] + np.float32(0.1), "y_val": y[:500]}
    figure, axes = plt.subplots(figsize=(6, 2.7), layout="constrained")
    for valuer, color, label in (
        (KNNShapleyValuer(), BLUE, "KNN-Shapley"),
        (TKNNShapleyValuer(radius=0.3), RED, "TKNN-Shapley"),
    ):
        valuer.fit(X[:100], y[:100], **validation)  # compiles the loops
        seconds = []
        for n in sizes:
            start = perf_counter()
            valuer.fit(X[:n], y[:n], **validation)
            seconds.append(perf_counter() - start)
        print(label, dict(zip(sizes, np.round(seconds, 3).tolist())))
        axes.loglog(sizes, seconds, color=color, marker="o", linewidth=2, label=label)
    axes.set(xlabel="rows", ylabel="seconds")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    return figure


def draw_lines(axes, curves, **labels):
    """A line for each name of curves, of x and y, and a legend below."""
    for number, (name, (x, y)) in enumerate(curves.items()):
        style = {
            "color": f"C{number}",
            "marker": "osv^D<>"[number % 7],
            "markersize": 5,
        }
        axes.plot(x, y, linewidth=1.8, label=name, **style)
    axes.set(**labels)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.16), "ncols": 2}
    axes.legend(frameon=False, fontsize=9, **below)


def draw_private_methods():
    """Utility by epsilon, of every private method."""
    found = json.loads((FOLDER / "private_methods.json").read_text())
    epsilons = found["epsilons"]
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 5), layout="constrained")
    rows = {name: (epsilons, cells[:-1]) for name, cells in found["rows"].items()}
    draw_lines(left, rows, title="Values of rows", ylabel="AUROC of wrong labels")
    for number, cells in enumerate(
        found["rows"].values()
    ):  # without noise, at the right edge
        left.plot(
            [1.02],
            [cells[-1]],
            "<",
            color=f"C{number}",
            clip_on=False,
            transform=left.get_yaxis_transform(),
        )
    left.axhline(found["free"], color="0.3", linestyle="--", linewidth=1.2)
    left.annotate(
        "public baseline",
        (epsilons[-1], found["free"]),
        ha="right",
        va="top",
        fontsize=9,
    )
    parties = {name: (epsilons, cells) for name, cells in found["parties"].items()}
    label = "rank correlation with values without noise"
    draw_lines(right, parties, title="Values of parties", ylabel=label)
    for axes in (left, right):
        axes.set(xscale="log", xlabel="epsilon, delta = 1e-5")
    return figure


def draw_sampler_times():
    """Errors of Shapley values by CPU time, of every sampler."""
    curves = json.loads((FOLDER / "sampler_times.json").read_text())["curves"]
    figure, panels = plt.subplots(1, len(curves), figsize=(10, 5), layout="constrained")
    for axes, (title, of_game) in zip(panels, curves.items()):
        lines = {name: zip(*cells) for name, cells in of_game.items() if cells}
        draw_lines(
            axes,
            lines,
            title=title,
            xlabel="CPU seconds of a fit",
            ylabel="error of a value",
        )
        axes.set(xscale="log", yscale="log")
    return figure


def draw_example(name):
    """The first figure of a script of the gallery."""
    runpy.run_path(str(EXAMPLES / name))
    return plt.figure(plt.get_fignums()[0])


def shoot_audit(path, height):
    """A picture of the page of an audit, by the browser Chromium."""
    report = runpy.run_path(str(EXAMPLES / "audit" / "plot_audit_table.py"))["report"]
    browser = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome")))
    )
    with TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        report.to_html(page)
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        options += [f"--window-size=1000,{height}", f"--screenshot={path}"]
        subprocess.run(
            [browser, *options, page.as_uri()], check=True, capture_output=True
        )


def write_logo(path):
    """Values of five rows, in order: the last is negative."""
    bars = [(36, BAR), (26, BAR), (17, BAR), (9, BAR), (-13, RED)]
    shapes = [
        f'<rect x="{5 + 11 * i}" y="{46 - max(height, 0)}" width="9" '
        f'height="{abs(height)}" '
        f'rx="1.5" fill="{color}"/>'
        for i, (height, color) in enumerate(bars)
    ]
    box = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64">'
    path.write_text("\n".join([box, *shapes, "</svg>", ""]), encoding="utf-8")


PICTURES = {
    "card_clean": draw_clean,
    "card_parties": draw_parties,
    "card_influence": draw_influence,
    "card_privacy": draw_privacy,
    "card_large": draw_large,
    "mislabelled_digits": lambda: draw_example("cleaning/plot_mislabelled_digits.py"),
    "private_methods": draw_private_methods,
    "sampler_times": draw_sampler_times,
}

if __name__ == "__main__":
    plt.switch_backend("Agg")
    wanted = sys.argv[1:] or ["logo", "audit", "card_audit", *PICTURES]
    for name in wanted:
        plt.close("all")
        if name == "logo":
            write_logo(FOLDER / "logo.svg")
        elif name.endswith("audit"):
            shoot_audit(FOLDER / f"{name}.png", 450 if name.startswith("card") else 760)
        else:
            PICTURES[name]().savefig(FOLDER / f"{name}.png", dpi=110)
