"""The networks: shapes, sizes, and what they refuse."""

import pytest

torch = pytest.importorskip("torch")

from skvalue.priarta.maps import (
    choose_backbone,
    make_backbone,
    mlp,
    projection_head,
    resnet18,
    small_cnn,
)


def n_weights(network):
    return sum(weight.numel() for weight in network.parameters())


@pytest.mark.parametrize(
    ("network", "shape", "n_outputs"),
    [
        (resnet18(3, 32), (3, 32, 32), 512),
        (resnet18(3, 96), (3, 96, 96), 512),
        (resnet18(1, 40), (1, 40, 56), 512),
        (small_cnn(1, 8), (1, 8, 8), 64),
        (small_cnn(3, 28, width=8), (3, 28, 20), 32),
        (mlp(7), (7,), 128),
        (projection_head(7, 5), (7,), 5),
    ],
)
def test_shapes(network, shape, n_outputs):
    network.eval()
    with torch.no_grad():
        assert network(torch.zeros(2, *shape)).shape == (2, n_outputs)


def test_resnet18_is_the_one_of_the_paper():
    # 11,689,512 weights with a stem of 7 x 7 (9,408) and a head for 1000 classes (513,000); the
    # stem of 3 x 3 has 1,728. There are 17 convolutions and the head, and 3 shortcuts of 1 x 1.
    network = resnet18()
    assert n_weights(network) == 11_689_512 - 513_000 - 9_408 + 1_728
    convolutions = [m for m in network.modules() if isinstance(m, torch.nn.Conv2d)]
    assert sorted(c.kernel_size[0] for c in convolutions) == [1] * 3 + [3] * 17


def test_images_of_32_pixels_keep_their_size_in_the_stem():
    stem = resnet18(3, 32)[0], resnet18(3, 96)[0]
    assert [layer.stride for layer in stem] == [(1, 1), (2, 2)]


@pytest.mark.parametrize(
    ("shape", "name"),
    [
        ((5,), "mlp"),
        ((1, 8, 8), "small_cnn"),
        ((3, 28, 60), "small_cnn"),
        ((3, 32, 32), "resnet18"),
        ((3, 96, 96), "resnet18"),
    ],
)
def test_auto(shape, name):
    assert choose_backbone(shape) == name
    with torch.device("meta"):
        network, n_outputs = make_backbone(name, shape)
        assert network(torch.zeros(2, *shape)).shape == (2, n_outputs)


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("auto", (3, 224, 224), "backbone='auto' .*Got 224 x 224"),
        ("auto", (3, 4, 90), "backbone='auto' .*Got 4 x 90"),
        ("vgg", (3, 32, 32), "backbone must be one of mlp, resnet18, small_cnn"),
        ("mlp", (3, 32, 32), "backbone='mlp' .*leave image_shape"),
        ("resnet18", (30,), "backbone='resnet18' .*pass image_shape"),
        ("small_cnn", (1, 7, 9), "backbone='small_cnn' .*Got 7 x 9"),
    ],
)
def test_refusals(name, shape, message):
    with pytest.raises(ValueError, match=message):
        make_backbone(choose_backbone(shape) if name == "auto" else name, shape)
