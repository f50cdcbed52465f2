"""
Sellers who copy, augment, or bring something new (PriArTa, Figures 6 and 7)
============================================================================

Builds the market of the paper's Section 5 from MNIST (or, with `--cifar`, from
CIFAR-10), trains the buyer's representation and latent map, and prints for each seed
the distances of the sellers, without noise and with (epsilon, delta) = (0.8, 1e-5),
which statements about their order hold, and what the buyer's classifier gains from each
seller:

    python examples/reproductions/priarta_figures.py --data FOLDER

FOLDER holds mnist.npz (or cifar10.npz) with arrays X (bytes) and y. The sellers:

0. the buyer's own rows (not in the paper: what a copy is compared with);
1. new classes;
2. the buyer's classes in other proportions, other images;
3. seller 2's images, augmented;
4. to 7. the buyer's images: with mixed augmentations; flipped (digits: shifted);
   rotated; with colour jitter (digits: contrast and blur).

`--cifar` trains a ResNet-18 and is meant for a GPU; with `--mixed-precision`, one core
that multiplies bfloat16 takes a minute an epoch.
"""

import argparse
import time
import warnings
from pathlib import Path

import kornia.augmentation as kornia
import numpy as np
import torch
from sklearn.pipeline import make_pipeline
from torch import nn

from skvalue._utils.torch_device import find_device, gains_from_bfloat16
from skvalue.priarta import GaussianVAE, PriArTaScorer, SimCLR
from skvalue.priarta.maps.networks import make_backbone

EPSILON = 0.8
DELTA = 1e-5
CLOSE = 0.15  # of the range of the scores
MARKETS = {
    # Shares of classes: the buyer's, seller 2's (similar) and seller 1's (new).
    "mnist": (
        {0: 0.30, 2: 0.25, 3: 0.20, 5: 0.15, 6: 0.10},
        {0: 0.15, 2: 0.18, 3: 0.20, 5: 0.20, 6: 0.27},
        {1: 0.30, 7: 0.25, 4: 0.15, 9: 0.15, 8: 0.15},
    ),
    # Animals; vehicles are new.
    "cifar10": (
        {2: 0.30, 3: 0.25, 4: 0.15, 5: 0.15, 6: 0.15},
        {2: 0.15, 3: 0.15, 4: 0.25, 5: 0.20, 6: 0.25},
        {0: 0.25, 1: 0.25, 8: 0.25, 9: 0.25},
    ),
}
NAMES = (
    "0 the buyer's rows",
    "1 new classes",
    "2 similar classes",
    "3 augmented 2",
    "4 buyer's, mixed",
    "5 buyer's, flip/shift",
    "6 buyer's, rotation",
    "7 buyer's, jitter",
)


def transforms(colour):
    """What sellers 3 to 7 do to images."""
    if colour:
        jitter = [kornia.ColorJitter(0.4, 0.4, 0.4, 0.1, p=1.0)]
        moved = [kornia.RandomHorizontalFlip(p=0.5)]
        mixed = [
            kornia.RandomHorizontalFlip(p=0.5),
            kornia.RandomRotation(15.0, p=0.5),
            kornia.ColorJitter(0.4, 0.4, 0.4, 0.1, p=0.5),
            kornia.RandomResizedCrop((32, 32), scale=(0.6, 1.0), p=0.5),
        ]
    else:
        jitter = [
            kornia.RandomContrast((0.6, 1.4), p=1.0),
            kornia.RandomGaussianBlur((3, 3), (0.3, 1.0), p=0.5),
        ]
        moved = [kornia.RandomAffine(0.0, translate=(0.1, 0.1), p=1.0)]
        mixed = [
            kornia.RandomAffine(15.0, translate=(0.1, 0.1), scale=(0.85, 1.15), p=0.7),
            kornia.RandomGaussianBlur((3, 3), (0.3, 1.0), p=0.3),
            kornia.RandomContrast((0.6, 1.4), p=0.5),
        ]
    rotation = [kornia.RandomRotation(15.0, p=1.0)]
    return {"mixed": mixed, "moved": moved, "rotation": rotation, "jitter": jitter}


def augmented(images, parts):
    """Bytes to bytes, each image transformed on its own."""
    tensor = (
        torch.from_numpy(images.reshape(*images.shape[:3], -1)).permute(0, 3, 1, 2)
        / 255.0
    )
    with torch.no_grad():
        tensor = torch.cat(
            [kornia.AugmentationSequential(*parts)(t) for t in tensor.split(512)]
        )
    tensor = (255 * tensor).round().clamp(0, 255).to(torch.uint8)
    return tensor.permute(0, 2, 3, 1).numpy().reshape(images.shape)


def draw(free, y, fractions, n, rng):
    """Free rows, with classes in given fractions."""
    rows = []
    for label, fraction in fractions.items():
        there = np.flatnonzero(free & (y == label))
        if len(there) < round(fraction * n):
            raise SystemExit(
                f"Class {label} has {len(there)} rows left for a data set with "
                f"{fraction:.0%} of "
                f"{n}: lower --n-buyer or --n-seller."
            )
        rows.append(rng.choice(there, round(fraction * n), replace=False))
    rows = rng.permutation(np.concatenate(rows))
    free[rows] = False
    return rows


def make_market(X, y, fractions, n_buyer, n_seller, seed):
    """The buyer's rows, the sellers' and rows left for a test, each (X, y)."""
    rng = np.random.default_rng(seed)
    free = np.ones(len(y), bool)
    buyer, similar, new = (
        draw(free, y, s, n, rng)
        for s, n in zip(fractions, (n_buyer, n_seller, n_seller))
    )
    part = rng.permutation(buyer)[:n_seller]
    left = np.flatnonzero(free)
    least = min(np.bincount(y[left], minlength=10).min(), 100)
    test = np.concatenate([left[y[left] == label][:least] for label in range(10)])
    parts = transforms(X.ndim == 4)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        sellers = [(X[part], y[part]), (X[new], y[new]), (X[similar], y[similar])]
        sellers.append((augmented(X[similar], parts["mixed"]), y[similar]))
        for name in ("mixed", "moved", "rotation", "jitter"):
            sellers.append((augmented(X[part], parts[name]), y[part]))
    return (X[buyer], y[buyer]), sellers, (X[test], y[test])


def statements(scores):
    """What must hold of the scores of sellers 0 to 7.

    Parameters
    ----------
    scores : ndarray of shape (8,)

    Returns
    -------
    statements : dict
        Seller 1's lead over the next, and the largest difference between an augmented
        copy and what it copies, both in units of the range of sellers 1 to 7; and
        whether all holds.
    """
    scores = np.asarray(scores)
    spread = np.ptp(scores[1:])
    lead = (scores[1] - scores[2:].max()) / spread
    copies = (
        max(abs(scores[3] - scores[2]), np.abs(scores[4:] - scores[0]).max()) / spread
    )
    below = bool(scores[4:].max() < scores[2])
    return {
        "lead": lead,
        "copies": copies,
        "below": below,
        "holds": bool(lead >= CLOSE and copies <= CLOSE and below),
    }


def classifier(shape, seed):
    """A network for the buyer's task."""
    torch.manual_seed(seed)
    backbone, n_outputs = make_backbone(shape)
    return nn.Sequential(backbone, nn.Linear(n_outputs, 10))


def train_classifier(network, X, y, n_epochs, device, rate, mixed_precision):
    """Train a copy of nothing: the network itself, on images and labels."""
    optimizer = torch.optim.Adam(network.parameters(), lr=rate)
    network.to(device).train()
    for _ in range(n_epochs):
        for rows in torch.randperm(len(y)).split(128):
            if len(rows) > 1:
                with torch.autocast(device, torch.bfloat16, enabled=mixed_precision):
                    outputs = network(X[rows].to(device))
                loss = nn.functional.cross_entropy(outputs.float(), y[rows].to(device))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    return network


def gains(buyer, sellers, test, n_epochs, device, seed, mixed_precision=False):
    """Accuracy on the test rows before, and what fine-tuning with each seller's rows
    adds.

    The buyer then owns both data sets, and fine-tunes on both.
    """

    def tensors(X, y):
        X = torch.from_numpy(X.reshape(*X.shape[:3], -1)).permute(0, 3, 1, 2) / 255.0
        return X.contiguous(), torch.from_numpy(y)

    def accuracy(network):
        network.eval()
        with (
            torch.no_grad(),
            torch.autocast(device, torch.bfloat16, enabled=mixed_precision),
        ):
            guesses = [
                network(part.to(device)).argmax(1).cpu() for part in X_test.split(512)
            ]
        return float((torch.cat(guesses) == y_test).float().mean())

    (X_buyer, y_buyer), (X_test, y_test) = tensors(*buyer), tensors(*test)
    with torch.random.fork_rng():
        network = classifier(tuple(X_buyer.shape[1:]), seed)
        train_classifier(
            network, X_buyer, y_buyer, n_epochs, device, 1e-3, mixed_precision
        )
        before = accuracy(network)
        state = {k: v.clone() for k, v in network.state_dict().items()}
        after = []
        for X, y in sellers:
            network.load_state_dict(state)
            X, y = tensors(X, y)
            both = torch.cat([X_buyer, X]), torch.cat([y_buyer, y])
            train_classifier(
                network, *both, max(n_epochs // 2, 1), device, 3e-4, mixed_precision
            )
            after.append(accuracy(network) - before)
    return before, np.array(after)


def amplified(epsilon, delta, rate):
    """(epsilon, delta) of a release from a secret sample, such that all rows have the
    given ones.

    Secret sampling of a fixed number of rows without replacement, at a rate g, changes
    (e, d) to ``(log(1 + g (exp(e) - 1)), g d)`` under replacement of a row (Balle,
    Barthe and Gaboardi, "Privacy Amplification by Subsampling", NeurIPS 2018, Theorem
    9).
    """
    return float(np.log1p(np.expm1(epsilon) / rate)), min(delta / rate, 1 - 1e-9)


def show(title, draws):
    """One line of scores between 0 and 1, and how often all statements hold."""
    scores = draws.mean(axis=0)
    unit = (scores - scores[1:].min()) / np.ptp(scores[1:])
    said = [statements(draw) for draw in draws]
    fraction = np.mean([draw["holds"] for draw in said])
    lead, copies = (
        np.median([draw[word] for draw in said]) for word in ("lead", "copies")
    )
    print(
        f"  {title:32s}"
        + " ".join(f"{value:5.2f}" for value in unit)
        + f" | lead {lead:.2f}, copies {copies:.2f}, holds in {fraction:.0%}"
        + f" of {len(draws)}; first draw: {'holds' if said[0]['holds'] else 'fails'}",
        flush=True,
    )
    return said[0]["holds"], fraction


def train_maps(X, seed, arguments):
    """The buyer's representation and latent map."""
    simclr = SimCLR(
        output=arguments.output,
        temperature=arguments.temperature,
        n_epochs=arguments.epochs,
        device=arguments.device,
        mixed_precision=arguments.mixed_precision or "auto",
        batch_size=arguments.batch_size,
        random_state=seed,
    )
    vae = GaussianVAE(
        arguments.latent_dim,
        beta=0.3,
        n_epochs=60,
        device=arguments.device,
        random_state=seed,
    )
    return make_pipeline(simclr, vae).fit(X)


def run_seed(X, y, name, seed, arguments):
    """Everything for one seed; what holds, by setting, and the gains."""
    market = make_market(
        X, y, MARKETS[name], arguments.n_buyer, arguments.n_seller, seed
    )
    said = {} if arguments.gains_only else run_scores(*market[:2], seed, arguments)
    if not arguments.classifier_epochs:
        return said, None
    device = find_device(arguments.device)
    mixed = arguments.mixed_precision or gains_from_bfloat16(device)
    before, added = gains(*market, arguments.classifier_epochs, device, seed, mixed)
    print(
        f"seed {seed}: gain over accuracy {before:.3f}   "
        + " ".join(f"{g:6.3f}" for g in added),
        flush=True,
    )
    return said, added


def run_scores(buyer, sellers, seed, arguments):
    """Scores without noise and with; what holds, by setting."""
    start = time.perf_counter()
    cpu = time.process_time()
    maps = train_maps(buyer[0], seed, arguments)
    wall = time.perf_counter() - start
    cpu = time.process_time() - cpu
    print(f"seed {seed}: trained in {wall:.0f} s, {cpu:.0f} s of CPU time", flush=True)
    rows = [
        maps.transform(seller[0]) for seller in sellers
    ]  # once, whatever is released
    scorer = PriArTaScorer().fit(maps.transform(buyer[0]))
    said = {"no noise": show("no noise", scorer.transform(rows).T)}
    settings = {f"{n} rows": (n, 1.0) for n in arguments.private_sizes}
    smaller = [n for n in arguments.private_sizes if n < arguments.n_seller]
    secret = {
        f"secret {n} of {arguments.n_seller}": (n, n / arguments.n_seller)
        for n in smaller
    }
    for title, (n, rate) in {**settings, **secret}.items():
        epsilon, delta = amplified(EPSILON, DELTA, rate)
        draws = []
        for draw in range(arguments.draws):
            rng = np.random.default_rng((seed, draw))
            some = [part[rng.permutation(len(part))[:n]] for part in rows]
            test_seed = 1000 * seed + 100_000 * draw
            scorer.set_params(
                epsilon=epsilon, delta=delta, noise_random_state=test_seed
            )
            draws.append(scorer.transform(some)[:, 0])
        said[title] = show(f"epsilon {EPSILON}, {title}", np.array(draws))
    return said


def parse(words=None):
    """Arguments of the command, with the defaults of its data set."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[2])
    parser.add_argument("--data", type=Path, required=True, help="folder of mnist.npz")
    parser.add_argument(
        "--cifar", action="store_true", help="CIFAR-10 in place of MNIST"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--device", default="auto", choices=["auto", "cpu", "cuda"])
    parser.add_argument("--epochs", type=int, help="of SimCLR (40; CIFAR-10: 200)")
    parser.add_argument("--batch-size", type=int, default=256, help="of SimCLR")
    parser.add_argument("--mixed-precision", action="store_true", help="on a CPU too")
    parser.add_argument("--temperature", type=float, default=0.3)
    parser.add_argument(
        "--n-buyer", type=int, help="rows of the buyer (2200; CIFAR-10: 2000)"
    )
    parser.add_argument("--n-seller", type=int, default=2000)
    parser.add_argument("--private-sizes", type=int, nargs="*", default=[2000, 500])
    parser.add_argument(
        "--output", default="projection", choices=["projection", "backbone"]
    )
    parser.add_argument(
        "--draws", type=int, default=10, help="releases for each setting"
    )
    parser.add_argument("--latent-dim", type=int, help="8; CIFAR-10: 32")
    parser.add_argument("--classifier-epochs", type=int, default=10, help="0: no gains")
    parser.add_argument("--gains-only", action="store_true", help="no scores")
    arguments = parser.parse_args(words)
    name = "cifar10" if arguments.cifar else "mnist"
    path = arguments.data / f"{name}.npz"
    if not path.exists():
        parser.error(f"--data must hold {path.name}. Got {str(arguments.data)!r}.")
    arguments.epochs = arguments.epochs or (200 if arguments.cifar else 40)
    arguments.n_buyer = arguments.n_buyer or (2000 if arguments.cifar else 2200)
    arguments.latent_dim = arguments.latent_dim or (32 if arguments.cifar else 8)
    return arguments


def main():
    arguments = parse()
    name = "cifar10" if arguments.cifar else "mnist"
    with np.load(arguments.data / f"{name}.npz", allow_pickle=False) as file:
        X = file["X"]
        y = file["y"]

    warnings.simplefilter(
        "ignore"
    )  # seeded noise voids the guarantee; the data are public
    print("sellers: " + "; ".join(NAMES))
    print(
        "scores: 0 and 1 for the least and the greatest of sellers 1 to 7, mean over "
        "draws"
    )
    results = [run_seed(X, y, name, seed, arguments) for seed in arguments.seeds]
    for setting in results[0][0]:
        first, fraction = np.array([said[setting] for said, _ in results]).T
        print(
            f"{setting:20s}: first draw holds for {first.sum():.0f} of "
            f"{len(results)} seeds; "
            f"all draws: {fraction.mean():.0%}"
        )
    if arguments.classifier_epochs:
        found = np.array([added for _, added in results])
        errors = (
            found.std(axis=0, ddof=1) / len(found) ** 0.5
            if len(found) > 1
            else np.zeros(8)
        )
        print("gain in accuracy, mean over seeds and standard error")
        for name, mean, error in zip(NAMES, found.mean(axis=0), errors):
            print(f"  {name:22s} {mean:6.3f} ({error:.3f})")


if __name__ == "__main__":
    main()
