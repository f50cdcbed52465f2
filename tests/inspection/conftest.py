import matplotlib
import pytest
from matplotlib import pyplot as plt


@pytest.fixture(autouse=True)
def no_window():
    backend = matplotlib.get_backend()
    plt.switch_backend("agg")
    yield
    plt.close("all")
    plt.switch_backend(backend)
