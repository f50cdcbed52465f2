"""Random views: ranges, what they take from whom, and what they refuse."""

import sys

import numpy as np
import pytest
from scipy.stats import binomtest

torch = pytest.importorskip("torch")

from skvalue.priarta.maps import (
    corrupt_features,
    image_augmentations,
    make_augmentations,
)


@pytest.fixture(autouse=True)
def _seed():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


def test_corruption_keeps_columns_apart_and_its_rate():
    n, d = 2000, 3
    X = torch.zeros(n, d)
    pool = (
        torch.arange(d) + 10.0 * torch.arange(1, 51)[:, None]
    )  # the last digit is the column
    views = corrupt_features(X, pool, 0.3).numpy()
    replaced = views != 0
    for column in range(d):
        assert set(np.unique(views[replaced[:, column], column] % 10)) == {column}
    assert binomtest(int(replaced.sum()), n * d, 0.3).pvalue > 1e-6
    # Columns come from rows of their own: two entries of one view seldom from the same.
    both = replaced[:, 0] & replaced[:, 1]
    same = (views[both, 0] // 10 == views[both, 1] // 10).mean()
    assert same < 0.15
    assert len(np.unique(views[:, 0])) == 51


@pytest.mark.parametrize(
    ("name", "channels"), [("digits", 1), ("digits", 3), ("colour", 3)]
)
@pytest.mark.parametrize("side", [8, 32])
def test_images_stay_images(name, channels, side):
    images = torch.rand(6, channels, side, side + 3)
    before = images.clone()
    views = image_augmentations(name, (side, side + 3))(images)
    assert views.shape == images.shape
    assert views.min() >= 0
    assert views.max() <= 1 + 1e-6
    assert torch.equal(images, before)
    assert (views != images).flatten(1).any(dim=1).float().mean() > 0.6


def test_each_image_is_transformed_on_its_own():
    image = torch.zeros(1, 1, 16, 16)
    image[:, :, 6:10, 6:10] = 1
    views = image_augmentations("digits", (16, 16))(
        image.expand(8, -1, -1, -1)
    ).flatten(1)
    assert (torch.cdist(views, views) + 9 * torch.eye(8)).min() > 0.1


def test_auto():
    rows = torch.rand(4, 5)
    table = make_augmentations("auto", (5,), rows)
    assert table.keywords == {"pool": rows, "rate": 0.3}
    for channels in (1, 3):
        parts = make_augmentations("auto", (channels, 16, 16), None).children()
        names = {type(part).__name__ for part in parts}
        assert ("RandomHorizontalFlip" in names) == (channels == 3)


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("table", (1, 8, 8), "augmentations='table' takes rows"),
        ("digits", (5,), "augmentations='digits' takes images"),
        ("colour", (1, 8, 8), "augmentations='colour' takes images of three channels"),
    ],
)
def test_refusals(name, shape, message):
    with pytest.raises(ValueError, match=message):
        make_augmentations(name, shape, None)
    with pytest.raises(ValueError, match="name must be 'colour' or 'digits'"):
        image_augmentations("table", (8, 8))


def test_without_kornia(monkeypatch):
    monkeypatch.setitem(sys.modules, "kornia.augmentation", None)
    with pytest.raises(ImportError, match="needs kornia: pip install 'skvalue.torch.'"):
        make_augmentations("auto", (1, 8, 8), None)
    make_augmentations("auto", (8,), torch.zeros(2, 8))  # tables need none
