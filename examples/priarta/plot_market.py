"""
A market where nobody shows data
================================

A buyer has images of the digits 0 to 4 and looks for more. Sellers do not show theirs: each sends
a summary of a kilobyte, with noise, and the buyer ranks the summaries. Then some sellers cheat.
"""

# %%
# The buyer
# ---------
# Its model is the first six principal components of its own images. It ships the model as a folder
# of numbers, without code. The buyer itself is not protected: whoever has the folder can learn from
# it about the buyer's images.
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
images, digits = images[order] / 16, digits[order]
low, high = images[digits < 5], images[digits >= 5]

buyer = low[:450]
scorer = PriArTaScorer("identity", latent=PrincipalComponents(6), epsilon=0.8, delta=1e-5)
scorer.fit(buyer)
folder = Path(tempfile.mkdtemp())
scorer.export(folder / "model")
print("The model takes", sum(f.stat().st_size for f in (folder / "model").iterdir()), "bytes.")

# %%
# A seller
# --------
# On its own machine a seller runs ``python -m skvalue.priarta summarize model/ rows.npz --epsilon
# 0.8 --delta 1e-5 -o summary.json``, or in Python the same:
from skvalue.priarta import SellerRelease

seller = SellerRelease(scorer.model_, epsilon=0.8, delta=1e-5).fit(high)
print(seller.privacy_)
print("The summary takes", len(seller.summary_.to_json()), "bytes.")

# %%
# Seven sellers
# -------------
# Two are honest and new to some degree, one has more of what the buyer has. One sells the buyer its
# own images, one the same shifted by a pixel, one another seller's images, and one rubbish.
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

from skvalue.priarta import DirectionsDisplay, PairwiseDistancesDisplay, SellerScoresDisplay

figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
SellerScoresDisplay.from_summaries(scorer, summaries, names=sellers, ax=axes[0])
PairwiseDistancesDisplay.from_summaries(scorer, summaries, names=sellers, ax=axes[1])
figure.savefig("market.png")

# %%
# New digits are far from the buyer's; more of the same and the copy are at the noise floor. On the
# right the copy of the first seller's images gives itself away: the two are closer to each other
# than either is to anybody else.
#
# Two sellers are far who should not be. Principal components of pixels do not know that a shifted
# digit is the same digit; a representation that was trained to forget shifts does
# (``representation="simclr"``). And random pixels are far: **a distance does not tell what is new
# from what is worthless.** Where a seller is far helps to judge: along the buyer's own main
# directions random pixels have lost their spread.
DirectionsDisplay.from_summaries(scorer, summaries, names=sellers).figure_.savefig("directions.png")

# %%
# A seller who wants to look new by noise
# ---------------------------------------
# A smaller epsilon is more noise, and plain distances grow with noise. The scorer takes off what
# the noise is known to add, and says below which score nothing can be seen.
print("epsilon  score  score as it came  noise floor")
plain = clone(scorer).set_params(shrink=False, mean_weight=scorer.model_.mean_weight).fit(buyer)
for epsilon in (3.0, 0.8, 0.2):
    loud = SellerRelease(scorer.model_, epsilon=epsilon).fit(low[450:]).summary_
    scores = [s.score_summaries([loud])[0, 0] for s in (scorer, plain)]
    print(f"{epsilon:7} {scores[0]:6.2f} {scores[1]:17.2f} {scorer.noise_floor([loud])[0]:12.2f}")

# %%
# A poisoned file
# ---------------
# A file is read as untrusted: its size first, then every field. What no rows could have given is
# refused, and so is a guarantee that the noise does not back. A file that lies within these bounds
# is a seller that lies about its data, which no check of a summary can find.
record = json.loads(summaries[0].to_json())
for field, value in [("epsilon", 0.01), ("mean", record["moment"]), ("max_norm", 1e9)]:
    poisoned = folder / "poisoned.json"
    poisoned.write_text(json.dumps({**record, field: value}))
    try:
        scorer.score_summaries([poisoned])
    except ValueError as error:
        print(f"{field}:", str(error).partition("used: ")[2] or error)

# %%
# What an attacker learns about one row
# -------------------------------------
# The strongest attacker knows every image but one, and which two images that one may be. The area
# under its ROC curve has a ceiling that follows from epsilon and delta alone.
from skvalue.priarta import membership_attack

for epsilon in (0.8, 8.0):
    attack = membership_attack(SellerRelease(scorer.model_, epsilon=epsilon), high, n_runs=300)
    print(f"epsilon {epsilon}: AUROC {attack.auroc:.2f}, ceiling {attack.ceiling:.2f}")
