"""Random views: their ranges, their rows, and what they refuse."""

import sys
from importlib.metadata import version

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
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


class TestCorruptFeatures:
    @pytest.fixture
    def views(self):
        """Views of 2000 rows of zeros, of which 30 % of the entries are replaced.

        The last digit of an entry of the pool is its column, the others its row.
        """
        pool = torch.arange(3) + 10.0 * torch.arange(1, 51)[:, None]
        return corrupt_features(torch.zeros(2000, 3), pool, 0.3).numpy()

    def test_entries_are_replaced_by_entries_of_their_column(self, views):
        is_replaced = views != 0
        for column in range(3):
            digits = np.unique(views[is_replaced[:, column], column] % 10)
            assert set(digits) == {column}

    def test_rate_is_that_of_the_parameter(self, views):
        n_replaced = int((views != 0).sum())
        assert binomtest(n_replaced, views.size, 0.3).pvalue > 1e-6

    def test_columns_are_replaced_from_rows_of_their_own(self, views):
        is_replaced = views != 0
        both = is_replaced[:, 0] & is_replaced[:, 1]
        rows = views[both] // 10
        assert (rows[:, 0] == rows[:, 1]).mean() < 0.15
        assert len(np.unique(views[:, 0])) == 51


class TestImages:
    @pytest.mark.parametrize(
        ("name", "channels"), [("digits", 1), ("digits", 3), ("colour", 3)]
    )
    @pytest.mark.parametrize("side", [8, 32])
    def test_views_are_other_images_of_the_same_shape_and_range(
        self, name, channels, side
    ):
        images = torch.rand(6, channels, side, side + 3)
        before = images.clone()
        views = image_augmentations(name, (side, side + 3))(images)
        assert views.shape == images.shape
        assert views.min() >= 0
        assert views.max() <= 1 + 1e-6
        assert torch.equal(images, before)
        assert (views != images).flatten(1).any(dim=1).float().mean() > 0.6

    def test_each_image_has_its_own_transformation(self):
        image = torch.zeros(1, 1, 16, 16)
        image[:, :, 6:10, 6:10] = 1
        augment = image_augmentations("digits", (16, 16))
        views = augment(image.expand(8, -1, -1, -1)).flatten(1)
        distances = torch.cdist(views, views)
        assert (distances + 9 * torch.eye(8)).min() > 0.1

    def test_unknown_name_is_refused(self):
        with pytest.raises(ValueError, match="name must be 'colour' or 'digits'"):
            image_augmentations("table", (8, 8))

    def test_error_says_how_to_install_kornia(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "kornia.augmentation", None)
        with pytest.raises(
            ImportError, match="needs kornia: pip install 'skvalue.torch.'"
        ):
            make_augmentations("auto", (1, 8, 8), None)


class TestDrawnBefore:
    """Views from numbers that were drawn before, as those of a GPU are."""

    @pytest.mark.parametrize(
        ("name", "shape"),
        [
            ("table", (5,)),
            ("digits", (1, 8, 8)),
            ("digits", (3, 20, 25)),
            ("colour", (3, 8, 8)),
            ("colour", (3, 20, 25)),
        ],
        ids=str,
    )
    def test_are_those_of_a_call(self, name, shape):
        if name == "digits" and version("kornia").startswith("0.8."):
            pytest.skip("kornia 0.8 has another unit of places in a warp")
        batch = torch.rand(40, *shape)
        augment = make_augmentations(name, shape, torch.rand(30, *shape))
        torch.manual_seed(1)
        expected = augment(batch)
        torch.manual_seed(1)
        views = augment.draw(batch.shape)(batch)
        torch.testing.assert_close(views, expected, rtol=0, atol=1e-4)

    @pytest.mark.parametrize("name", ["digits", "colour"])
    def test_have_the_range_of_images_in_black_and_white(self, name):
        """Where no hue, and no contrast, is defined."""
        batch = (torch.rand(40, 3, 12, 12) < 0.5).float()
        batch[::2] = batch[::2, :1]
        batch[0] = 0
        views = make_augmentations(name, (3, 12, 12), None).draw(batch.shape)(batch)
        assert views.min() >= 0
        assert views.max() <= 1 + 1e-6

    def test_draw_the_next_numbers_after_those_of_the_batch(self):
        augment = make_augmentations("colour", (3, 8, 8), None)
        batch = torch.rand(6, 3, 8, 8)
        torch.manual_seed(1)
        augment(batch)
        expected = torch.rand(1)
        torch.manual_seed(1)
        augment.draw(batch.shape)
        assert torch.rand(1) == expected


class TestNames:
    def test_auto_of_a_table_replaces_entries(self):
        rows = torch.rand(4, 5)
        augment = make_augmentations("auto", (5,), rows)
        assert (augment.pool is rows, augment.rate) == (True, 0.3)

    @pytest.mark.parametrize("channels", [1, 3])
    def test_auto_of_images_flips_those_of_three_channels(self, channels):
        augment = make_augmentations("auto", (channels, 16, 16), None)
        names = {type(transform).__name__ for transform in augment.modules()}
        assert ("RandomHorizontalFlip" in names) == (channels == 3)

    @pytest.mark.parametrize(
        ("name", "shape", "message"),
        [
            ("table", (1, 8, 8), "augmentations='table' takes rows"),
            ("digits", (5,), "augmentations='digits' takes images"),
            (
                "colour",
                (1, 8, 8),
                "augmentations='colour' takes images of three channels",
            ),
        ],
        ids=["table", "digits", "colour"],
    )
    def test_examples_of_another_kind_are_refused(self, name, shape, message):
        with pytest.raises(ValueError, match=message):
            make_augmentations(name, shape, None)

    def test_tables_need_no_kornia(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "kornia.augmentation", None)
        make_augmentations("auto", (8,), torch.zeros(2, 8))
