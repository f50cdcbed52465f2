"""
News texts by their sentence embeddings
=======================================

Values 3,000 news texts of four topics by the vectors that a sentence encoder
(all-MiniLM-L6-v2) made of them, after one label in ten was replaced, and prints how
well low values point at those:

    python examples/reproductions/agnews_embeddings.py --data FOLDER

FOLDER holds agnews_minilm.npz with arrays X (vectors of unit length), y and text (UTF-8
bytes, one text a line). The texts go in and the encoder is looked up by text, so that
what is shown is the parameter `embedding` at work; with sentence-transformers
installed, `--encode` computes the vectors anew.
"""

import argparse
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.model_selection import train_test_split

from skvalue import KNNShapleyValuer, TKNNShapleyValuer
from skvalue.datasets import flip_labels
from skvalue.inspection import noisy_label_auc

N_VAL = 200
NOISY = 0.1
SEEDS = 5


def look_up(vectors, texts):
    """Vectors of texts that were encoded before."""
    return np.stack([vectors[text] for text in texts])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[2])
    parser.add_argument(
        "--data", type=Path, required=True, help="folder of agnews_minilm.npz"
    )
    parser.add_argument(
        "--encode", action="store_true", help="compute the vectors anew"
    )
    arguments = parser.parse_args()
    path = arguments.data / "agnews_minilm.npz"
    if not path.exists():
        parser.error(
            f"--data must hold agnews_minilm.npz. Got {str(arguments.data)!r}."
        )
    with np.load(path) as file:
        X = file["X"].astype(np.float32)
        y = file["y"]
        texts = np.array(bytes(file["text"]).decode().split("\n"), dtype=object)
    if arguments.encode:
        from sentence_transformers import SentenceTransformer

        embedding = SentenceTransformer("all-MiniLM-L6-v2").encode
    else:
        embedding = partial(look_up, dict(zip(texts, X)))

    scores = {"KNN, K = 5": [], "TKNN, radius chosen": []}
    for seed in range(SEEDS):
        rows, val, y_true, y_val = train_test_split(
            texts, y, test_size=N_VAL, stratify=y, random_state=seed
        )
        labels, flipped = flip_labels(y_true, NOISY, random_state=seed)
        for name, valuer in zip(
            scores,
            [
                KNNShapleyValuer(5, metric="cosine", embedding=embedding),
                TKNNShapleyValuer("auto", metric="cosine", embedding=embedding),
            ],
        ):
            valuer.fit(rows, labels, X_val=val, y_val=y_val)
            scores[name].append(noisy_label_auc(valuer.values_, flipped))
    print(
        f"{len(texts)} texts, {N_VAL} for validation, {NOISY:.0%} of the others "
        f"mislabelled"
    )
    print("| method | AUROC, mean | sd over draws |\n|---|---|---|")
    for name, values in scores.items():
        print(f"| {name} | {np.mean(values):.3f} | {np.std(values, ddof=1):.3f} |")
    worst = valuer.values_.argsort(kind="stable")[:5]
    print("\nLowest values of the last draw:")
    for row in worst:
        mark = f"topic {y_true[row]}" if flipped[row] else "right"
        print(
            f"{valuer.values_[row]:8.5f}  given {labels[row]}, {mark}: {rows[row][:70]}"
        )


if __name__ == "__main__":
    main()
