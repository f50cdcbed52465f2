"""
Rank sellers by private summaries
=================================

A buyer has images of the digits 0 to 4 and wants to buy images that it does not have
yet. Sellers do not show their data: each sends a noisy summary of about a kilobyte, and
the buyer ranks the summaries. The example includes sellers that try to cheat, and
measures what an attacker can infer about a single image.
"""

# %%
# The buyer
# ---------
# The buyer's model is the first six principal components of its images. It is exported
# as a folder of numbers, without code. The buyer itself is not protected: the exported
# model contains information about the buyer's images.
import json
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_digits

from skvalue.priarta import PriArTaScorer, PrincipalComponents

images, digits = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
order = rng.permutation(len(images))
images = images[order] / 16
digits = digits[order]
low = images[digits < 5]
high = images[digits >= 5]

buyer = low[:450]
scorer = PriArTaScorer(
    "identity", latent=PrincipalComponents(6), epsilon=0.8, delta=1e-5
)
scorer.fit(buyer)
folder = Path(tempfile.mkdtemp())
scorer.export(folder / "model")
n_bytes = sum(file.stat().st_size for file in (folder / "model").iterdir())
print(f"The model takes {n_bytes} bytes.")

# %%
# A seller
# --------
# A seller computes its summary on its own machine, either from the command line, with
# ``python -m skvalue.priarta summarize model/ rows.npz --epsilon 0.8 --delta 1e-5 -o
# summary.json``, or from Python:
from skvalue.priarta import SellerRelease

seller = SellerRelease(scorer.model_, epsilon=0.8, delta=1e-5).fit(high)
print(seller.privacy_)
print("The summary takes", len(seller.summary_.to_json()), "bytes.")

# %%
# Seven sellers
# -------------
# Two sellers have new digits, and one has other images of the buyer's digits. The other
# four sell the buyer's own images, the same images shifted by one pixel, a copy of
# another seller's images, and random pixels.
sellers = {
    "new digits": high,
    "half of them new": np.concatenate([low[450:700], high[:250]]),
    "more of the same": low[450:],
    "copy of the buyer": buyer,
    "the copy, shifted": np.roll(buyer.reshape(-1, 8, 8), 1, axis=2).reshape(-1, 64),
    "copy of the first": high[rng.permutation(len(high))[:600]],
    "random pixels": rng.uniform(size=(450, 64)),
}
summaries = scorer.summarize(sellers.values())

from skvalue.priarta import (
    DirectionsDisplay,
    PairwiseDistancesDisplay,
    SellerScoresDisplay,
)

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
SellerScoresDisplay.from_summaries(scorer, summaries, names=sellers, ax=left)
PairwiseDistancesDisplay.from_summaries(scorer, summaries, names=sellers, ax=right)
plt.show()

# %%
# The new digits are far from the buyer's images; other images of the same digits, and
# the copy, are at the noise floor. The right panel reveals the copy of the first
# seller's images: these two sellers are closer to each other than to any other seller.
#
# Two sellers have a high score and nothing of use. Principal components of pixels are
# sensitive to shifts; a representation that is trained to be invariant
# (``representation="simclr"``) is not. And random pixels are far from the buyer's
# images: **a distance does not separate new data from worthless data.** The directions
# of the distance help: along the buyer's principal components, the variance of random
# pixels is small.
DirectionsDisplay.from_summaries(scorer, summaries, names=sellers)
plt.show()

# %%
# A seller that adds more noise
# -----------------------------
# Noise increases distances, so that a seller could raise its score by a smaller
# epsilon. The scorer subtracts the known contribution of the noise, and `noise_floor`
# gives the score below which a seller cannot be distinguished from the buyer's own
# data.
print("epsilon  score  not corrected  noise floor")
uncorrected = clone(scorer)
uncorrected.set_params(shrink=False, mean_weight=scorer.model_.mean_weight)
uncorrected.fit(buyer)
for epsilon in (3.0, 0.8, 0.2):
    summary = SellerRelease(scorer.model_, epsilon=epsilon).fit(low[450:]).summary_
    score = scorer.score_summaries([summary])[0, 0]
    uncorrected_score = uncorrected.score_summaries([summary])[0, 0]
    floor = scorer.noise_floor([summary])[0]
    print(f"{epsilon:7} {score:6.2f} {uncorrected_score:14.2f} {floor:12.2f}")

# %%
# A manipulated file
# ------------------
# Files from sellers are untrusted input: their size is checked first, then every field.
# A summary that no data set can have is refused, and so is an epsilon that is smaller
# than the noise allows. A manipulated summary within these bounds describes other data,
# which no check can detect.
record = json.loads(summaries[0].to_json())
for field, value in [("epsilon", 0.01), ("mean", record["moment"]), ("max_norm", 1e9)]:
    poisoned = folder / "poisoned.json"
    poisoned.write_text(json.dumps({**record, field: value}))
    try:
        scorer.score_summaries([poisoned])
    except ValueError as error:
        print(f"{field}:", str(error).partition("used: ")[2] or error)

# %%
# Membership inference
# --------------------
# The strongest attacker knows all images except one, and two candidates for that one.
# The area under the ROC curve of this attack has an upper bound that depends on epsilon
# and delta only.
from skvalue.priarta import membership_attack

for epsilon in (0.8, 8.0):
    release = SellerRelease(scorer.model_, epsilon=epsilon)
    attack = membership_attack(release, high, n_runs=300)
    print(f"epsilon {epsilon}: AUROC {attack.auroc:.2f}, ceiling {attack.ceiling:.2f}")
