"""Peak memory: it is bounded, whatever the number of validation points."""

import subprocess
import sys

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc"),
]

CODE = """
import numpy as np
from skvalue import GradientSemivalueValuer, KNNShapleyValuer, TKNNShapleyValuer

rng = np.random.default_rng(0)
n, n_val, d = {n}, {n_val}, {d}
X = rng.standard_normal((n, d)).astype("{dtype}")
X_val = rng.standard_normal((n_val, d)).astype("{dtype}")
y = rng.integers(0, 2, n)
y_val = rng.integers(0, 2, n_val)
valuer = {valuer}
valuer.fit(X[:2000], y[:2000], X_val=X_val[:10], y_val=y_val[:10])  # compiles


def megabytes(name):
    for line in open("/proc/self/status"):
        if line.startswith(name):
            return int(line.split()[1]) / 1024


before = megabytes("VmRSS")
open("/proc/self/clear_refs", "w").write("5")  # the peak starts again
valuer.fit(X, y, X_val=X_val, y_val=y_val)
print(megabytes("VmHWM") - before)
"""
CODE_OF_A_FILE = """
import numpy as np
from skvalue import KNNShapleyValuer, TKNNShapleyValuer

rng = np.random.default_rng(0)
n = 100_000
shape = (5_000_000, 1024)  # 20 GB of float32, nearly all of it holes in the file
rows = rng.standard_normal((n, 64), dtype=np.float32)
with open({path!r}, "wb") as file:
    file.truncate(4 * shape[0] * shape[1])
    for i, row in enumerate(rows):
        file.seek(4 * (50 * i * shape[1] + 100))
        file.write(row.tobytes())
X = np.memmap({path!r}, dtype=np.float32, mode="r", shape=shape)[::50, 100:164]
assert X.shape == rows.shape
y = rng.integers(0, 2, n)
y_val = rng.integers(0, 2, 500)
X_val = rng.standard_normal((500, 64), dtype=np.float32)
for valuer in (
    KNNShapleyValuer(5, n_jobs=2), TKNNShapleyValuer(9.5, metric="euclidean", n_jobs=2)
):
    values = valuer.fit(X, y, X_val=X_val, y_val=y_val).values_
    expected = valuer.fit(rows, y, X_val=X_val, y_val=y_val).values_
    assert np.abs(values - expected).max() < 1e-5 * np.abs(expected).max()
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(int(peak.split()[1]) / 1024)
"""
CODE_OF_MANY_ROWS = """
import numpy as np
from sklearn import get_config
from skvalue import KNNShapleyValuer, TKNNShapleyValuer

rng = np.random.default_rng(0)
n, n_val, d = 10_000_000, {n_val}, 16
X = np.lib.format.open_memmap({path!r}, "w+", np.float32, (n, d))
for start in range(0, n, 100_000):
    X[start : start + 100_000] = rng.standard_normal((100_000, d), np.float32)
X.flush()
y = rng.integers(0, 2, n)
y_val = rng.integers(0, 2, n_val)
X_val = rng.standard_normal((n_val, d), np.float32)
X = np.load({path!r}, mmap_mode="r")
valuer = {valuer}
valuer.fit(X[:2000], y[:2000], X_val=X_val, y_val=y_val)


def bytes_in_memory(name):
    for line in open("/proc/self/status"):
        if line.startswith(name):
            return 1024 * int(line.split()[1])


# Pages of the file are few before the fit, and count during it: some MB at a time.
before = bytes_in_memory("VmRSS")
open("/proc/self/clear_refs", "w").write("5")  # the peak starts again
valuer.fit(X, y, X_val=X_val, y_val=y_val)
print((bytes_in_memory("VmHWM") - before - 2**20 * get_config()["working_memory"]) / n)
"""
TKNN = "TKNNShapleyValuer(6.8, metric='euclidean', n_jobs=2)"
KNN = "KNNShapleyValuer(n_jobs=2)"


def run(code):
    """The number that a program prints, in a process of its own."""
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(result.stdout)


def peak_memory(valuer, n, n_val, d, dtype="float32"):
    """Megabytes beyond the data at the peak of a fit."""
    peak = run(CODE.format(valuer=valuer, n=n, n_val=n_val, d=d, dtype=dtype))
    print(f"{valuer}, N={n:,}, V={n_val:,}, d={d}: {peak:.0f} MB beyond the data")
    return peak


def test_file_of_20_gb_is_valued_within_2_gb(tmp_path):
    try:
        peak = run(CODE_OF_A_FILE.format(path=str(tmp_path / "rows")))
    finally:
        (tmp_path / "rows").unlink(missing_ok=True)
    print(
        f"100,000 rows and 64 columns of a file of 20 GB: {peak:.0f} MB resident at "
        "the peak"
    )
    assert peak < 2000


@pytest.mark.parametrize(
    ("valuer", "n_val"),
    [
        ("KNNShapleyValuer(5, n_jobs=1)", 12),
        ("KNNShapleyValuer(5, n_jobs=2)", 12),
        ("KNNShapleyValuer(5, n_jobs=8)", 12),
        ("TKNNShapleyValuer(0.9, n_jobs=1)", 200),
        ("TKNNShapleyValuer(0.9, n_jobs=1, epsilon=1.0, delta=1e-8)", 200),
    ],
)
def test_many_rows_take_40_bytes_each_beyond_the_working_memory(
    valuer, n_val, tmp_path
):
    """Eight threads: as many as have room."""
    path = str(tmp_path / "rows.npy")
    peak = run(CODE_OF_MANY_ROWS.format(path=path, valuer=valuer, n_val=n_val))
    print(
        f"10,000,000 rows in a file, {valuer}: {peak:.0f} bytes a row beyond the "
        "working memory"
    )
    assert peak <= 40


def test_tknn_of_a_million_rows_takes_less_than_512_mb():
    assert peak_memory(TKNN, 1_000_000, 1000, 32) < 512


@pytest.mark.parametrize(("valuer", "n"), [(TKNN, 400_000), (KNN, 100_000)])
def test_peak_does_not_grow_with_the_validation_points(valuer, n):
    few = peak_memory(valuer, n, 1000, 32)
    many = peak_memory(valuer, n, 10_000, 32)
    assert abs(many - few) < 0.1 * few + 2


class TestPrivateGradients:
    """49 MB of rows; numbers for each pair of rows would take 30 GB."""

    def peak(self, n=64_000, d=100, n_permutations=2):
        valuer = (
            "GradientSemivalueValuer('logistic', epsilon=1.0, noise='correlated', "
            f"burn_in=0.0, learning_rate=0.1, n_permutations={n_permutations})"
        )
        return peak_memory(valuer, n, 200, d, "float64")

    def test_peak_does_not_grow_with_the_permutations(self):
        # k utilities or orders a row would take 46 MB more at k=100 than at k=10.
        # Pooled errors take some arrays of 0.5 MB, one number a row. (Two permutations
        # take an array of the size of the rows less.)
        many = self.peak(n_permutations=100)
        assert many < self.peak(n_permutations=10) + 20
        assert many < 10 * 49

    @pytest.mark.parametrize(
        "larger", [{"n": 128_000}, {"d": 200}], ids=["rows", "columns"]
    )
    def test_peak_is_proportional_to_the_rows(self, larger):
        peak = self.peak()
        assert 1.6 * peak < self.peak(**larger) < 2.4 * peak
