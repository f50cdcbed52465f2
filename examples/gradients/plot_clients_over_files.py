"""
A federated training whose clients answer by files
==================================================

Four clients hold rows that they do not show, each in a folder of its own. In every
round the server sends a file with the global model; a client trains on its side,
releases its update with noise, charges its own ledger, and sends a file back. The
server compares what each file says of itself with what was agreed on, takes a step and
values the clients. One client is absent in two rounds, and one sends an update that was
clipped otherwise.
"""

# %%
# Four folders
# ------------
# The clients have 240, 80, 20 and 100 rows; all labels of the last are wrong. What the
# parties agree on is known to all: the columns with public means and scales, the clip,
# the privacy, and the number of rounds. An update protects all rows of its client
# together, which takes much noise: this epsilon is large.
import csv
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from sklearn.datasets import load_breast_cancer

CLIENTS = {"north": 240, "south": 80, "west": 20, "east": 100}
COLUMNS = ["mean radius", "mean texture", "mean smoothness", "mean symmetry"]
AGREED = {"epsilon": 30.0, "delta": 1e-5, "clip": 1.0, "n_rounds": 8}
N_LOCAL_STEPS = 5

bunch = load_breast_cancer(as_frame=True)
order = np.random.default_rng(0).permutation(len(bunch.target))
table = bunch.data[COLUMNS].iloc[order]
labels = bunch.target.to_numpy()[order]
public = table[-100:]
labels_public = labels[-100:]

home = TemporaryDirectory()
first = 0
for client, n_rows in CLIENTS.items():
    rows = slice(first, first + n_rows)
    first += n_rows
    y = 1 - labels[rows] if client == "east" else labels[rows]
    folder = Path(home.name, client)
    folder.mkdir()
    with open(folder / "rows.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*COLUMNS, "benign"])
        writer.writerows(np.column_stack([table[rows], y]).tolist())

MEANS = public.mean().to_numpy()
SCALES = 2 * public.std().to_numpy()  # so that a row has a norm of about one

# %%
# What a client does
# ------------------
# It reads its own rows, its own ledger and the file of the server, and nothing else.
# `answer_round` refuses a round that asks for another clip, epsilon or other columns,
# and charges the ledger before it draws noise.
from skvalue import FederatedSemivalueValuer
from skvalue.privacy import Ledger
from skvalue.valuers import FederatedRound


def train(theta, X, y):
    """Parameters after a few steps of a logistic regression."""
    X = np.column_stack([X, np.ones(len(X))])
    for _ in range(N_LOCAL_STEPS):
        probabilities = 1 / (1 + np.exp(-X @ theta))
        theta = theta - X.T @ (probabilities - y) / len(y)
    return theta


def client_side(folder, **agreed):
    """Read `round.json`, and write `update.json`."""
    with open(folder / "rows.csv", newline="", encoding="utf-8") as file:
        header, *lines = csv.reader(file)
    numbers = np.array(lines, dtype=float)
    asked = FederatedRound.from_json((folder / "round.json").read_text())
    X = (numbers[:, :-1] - MEANS) / SCALES
    update = train(asked.parameters, X, numbers[:, -1]) - asked.parameters

    ledger = Ledger(
        folder / "ledger.sqlite", f"rows of {folder.name}", epsilon=30.0, delta=1e-5
    )
    party = FederatedSemivalueValuer(**agreed, ledger=ledger)
    sent = party.answer_round(
        asked, update, party=folder.name, n_samples=len(numbers), columns=header[:-1]
    )
    (folder / "update.json").write_text(sent.to_json())


# %%
# What the server does
# --------------------
# The utility is the negated loss on public points. Updates are weighted by the numbers
# of rows that clients state. A client without a file is absent: it contributes nothing
# to the round, and is worth nothing in it. The training without noise is a comparison.
X_public = np.column_stack([(public - MEANS) / SCALES, np.ones(len(public))])
signs = 2 * labels_public - 1


def utility(thetas):
    return -np.logaddexp(0, -signs * (thetas @ X_public.T)).mean(axis=1)


def run_training(**agreed):
    """A training in which west is absent in the first two rounds."""
    server = FederatedSemivalueValuer(**agreed, random_state=0)
    server.start(utility, list(CLIENTS), training="biopsies", columns=COLUMNS)
    theta = np.zeros(len(COLUMNS) + 1)
    for number in range(agreed["n_rounds"]):
        asked = server.announce_round(theta)
        files = {}
        for client in CLIENTS:
            if client == "west" and number < 2:
                continue
            folder = Path(home.name, client)
            (folder / "round.json").write_text(asked.to_json())  # the server sends it
            client_side(folder, **agreed)
            files[client] = folder / "update.json"  # the client sends it
        theta = theta + server.add_round(theta, files)
    return server, theta


free, _ = run_training(n_rounds=8, clip=1.0)
private, theta = run_training(**AGREED)
print(private.privacy_.guarantee)
for name, plain, noisy in zip(free.parties_, free.values_, private.values_):
    print(f"{name:6} {CLIENTS[name]:4} rows  {plain:7.4f} without noise  {noisy:7.4f}")

# %%
# Ledgers and files that are refused
# ----------------------------------
# Each client has a ledger of its own, in which every answer is a charge. Another round
# would exceed its budget. And a file that was made with another clip is refused by
# what it says of itself, before anything of the round is used.
for client in CLIENTS:
    path = Path(home.name, client, "ledger.sqlite")
    ledger = Ledger(path, f"rows of {client}", epsilon=30.0, delta=1e-5)
    print(f"{client:6} {ledger.n_charges} charges, {ledger.spent:.1f} of 30.0 spent")

server = FederatedSemivalueValuer(n_rounds=8, clip=1.0)
server.start(utility, list(CLIENTS), training="biopsies", columns=COLUMNS)
other = FederatedSemivalueValuer(n_rounds=8, clip=50.0)
other.start(utility, list(CLIENTS), training="biopsies", columns=COLUMNS)
folder = Path(home.name, "east")
(folder / "round.json").write_text(other.announce_round(theta).to_json())
client_side(folder, n_rounds=8, clip=50.0)
try:
    server.add_round(theta, {"east": folder / "update.json"})
except ValueError as error:
    print(error)

# %%
# Values of the clients
# ---------------------
# Without noise, values grow with numbers of rows, and wrong labels cost. The noise of a
# client hides all of its rows: what it leaves of the order depends on the draw.
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
places = np.arange(len(CLIENTS))
axes.bar(places - 0.2, free.values_, 0.4, color="#30638e", label="without noise")
axes.bar(places + 0.2, private.values_, 0.4, color="#edae49", label="epsilon 30")
names = [f"{name}\n{n_rows} rows" for name, n_rows in CLIENTS.items()]
axes.set_xticks(places, names)
axes.axhline(0, color="black", linewidth=0.8)
axes.set(ylabel="mean value of a round")
axes.spines[["top", "right"]].set_visible(False)
axes.legend(frameon=False)
plt.show()

home.cleanup()
