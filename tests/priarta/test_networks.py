"""The networks: shapes, sizes, and the images that they refuse."""

import pytest

torch = pytest.importorskip("torch")

from skvalue.priarta.maps import make_backbone


@pytest.mark.parametrize(
    ("shape", "n_outputs"),
    [
        ((5,), 128),
        ((1, 8, 8), 64),
        ((3, 28, 60), 64),
        ((3, 32, 32), 512),
        ((1, 40, 56), 512),
        ((3, 96, 96), 512),
    ],
    ids=str,
)
def test_backbone_has_the_stated_number_of_outputs(shape, n_outputs):
    with torch.device("meta"):
        network, stated = make_backbone(shape)
        assert stated == n_outputs
        outputs = network.eval()(torch.zeros(2, *shape))
        assert outputs.shape == (2, n_outputs)


def test_resnet18_is_the_one_of_the_paper():
    # 11,689,512 weights with a stem of 7 x 7 (9,408) and a head for 1000 classes
    # (513,000); the stem of 3 x 3 has 1,728. There are 17 convolutions and the head,
    # and 3 shortcuts of 1 x 1.
    with torch.device("meta"):
        network, _ = make_backbone((3, 32, 32))
    n_weights = sum(weight.numel() for weight in network.parameters())
    assert n_weights == 11_689_512 - 513_000 - 9_408 + 1_728
    convolutions = [m for m in network.modules() if isinstance(m, torch.nn.Conv2d)]
    assert sorted(c.kernel_size[0] for c in convolutions) == [1] * 3 + [3] * 17


@pytest.mark.parametrize(("side", "stride"), [(32, 1), (96, 2)])
def test_first_convolution_keeps_the_size_of_images_of_32_pixels(side, stride):
    with torch.device("meta"):
        network, _ = make_backbone((3, side, side))
    assert network[0].stride == (stride, stride)


@pytest.mark.parametrize("shape", [(3, 224, 224), (3, 4, 90), (1, 7, 9)], ids=str)
def test_images_of_other_sizes_are_refused(shape):
    with pytest.raises(
        ValueError, match=f"8 to 96 pixels. Got {shape[1]} x {shape[2]} pixels"
    ):
        make_backbone(shape)
