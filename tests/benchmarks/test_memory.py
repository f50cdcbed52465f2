"""Peak memory: bounded whatever the number of validation points."""

import subprocess
import sys

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc"),
]

CODE = """
import numpy as np
from skvalue import KNNShapleyValuer, TKNNShapleyValuer

rng = np.random.default_rng(0)
n, n_val, d = {n}, {n_val}, {d}
valuer = {valuer}
X, y = rng.standard_normal((n, d), dtype=np.float32), rng.integers(0, 2, n)
X_val, y_val = rng.standard_normal((n_val, d), dtype=np.float32), rng.integers(0, 2, n_val)
valuer.fit(X[:2000], y[:2000], X_val=X_val[:10], y_val=y_val[:10])  # compiles


def megabytes(what):
    for line in open("/proc/self/status"):
        if line.startswith(what):
            return int(line.split()[1]) / 1024


before = megabytes("VmRSS")
open("/proc/self/clear_refs", "w").write("5")  # the peak starts again
valuer.fit(X, y, X_val=X_val, y_val=y_val)
print(before, megabytes("VmHWM"))
"""


def memory(valuer, n, n_val, d):
    """Megabytes before and at the peak of a fit, in a process of its own."""
    code = CODE.format(valuer=valuer, n=n, n_val=n_val, d=d)
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    before, peak = map(float, result.stdout.split())
    print(f"{valuer}, N={n:,}, V={n_val:,}, d={d}: {peak - before:.0f} MB beyond the data")
    return before, peak


TKNN = "TKNNShapleyValuer(6.8, metric='euclidean', n_jobs=2)"
KNN = "KNNShapleyValuer(n_jobs=2)"


CODE_OF_A_FILE = """
import numpy as np
from skvalue import KNNShapleyValuer, TKNNShapleyValuer

rng = np.random.default_rng(0)
n, shape = 100_000, (5_000_000, 1024)  # 20 GB of float32, nearly all of it holes in the file
rows = rng.standard_normal((n, 64), dtype=np.float32)
with open({path!r}, "wb") as file:
    file.truncate(4 * shape[0] * shape[1])
    for i, row in enumerate(rows):
        file.seek(4 * (50 * i * shape[1] + 100))
        file.write(row.tobytes())
X = np.memmap({path!r}, dtype=np.float32, mode="r", shape=shape)[::50, 100:164]
assert X.shape == rows.shape
y, y_val = rng.integers(0, 2, n), rng.integers(0, 2, 500)
X_val = rng.standard_normal((500, 64), dtype=np.float32)
for valuer in (
    KNNShapleyValuer(5, n_jobs=2), TKNNShapleyValuer(9.5, metric="euclidean", n_jobs=2)
):
    values = valuer.fit(X, y, X_val=X_val, y_val=y_val).values_
    same = valuer.fit(rows, y, X_val=X_val, y_val=y_val).values_
    assert np.abs(values - same).max() < 1e-5 * np.abs(same).max()
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(int(peak.split()[1]) / 1024)
"""


def test_a_file_of_20_gb_is_valued_within_2_gb(tmp_path):
    code = CODE_OF_A_FILE.format(path=str(tmp_path / "rows"))
    try:
        result = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
    finally:
        (tmp_path / "rows").unlink(missing_ok=True)
    peak = float(result.stdout)
    print(f"100,000 rows and 64 columns of a file of 20 GB: {peak:.0f} MB resident at the peak")
    assert peak < 2000


def test_tknn_of_a_million_rows():
    before, peak = memory(TKNN, 1_000_000, 1000, 32)
    assert peak - before < 512


@pytest.mark.parametrize(("valuer", "n"), [(TKNN, 400_000), (KNN, 100_000)])
def test_peak_does_not_grow_with_the_validation_points(valuer, n):
    before, peak = memory(valuer, n, 1000, 32)
    before_more, peak_more = memory(valuer, n, 10_000, 32)
    # Ten times the validation points, which are themselves 1.2 MB more of data.
    assert abs((peak_more - before_more) - (peak - before)) < 0.1 * (peak - before) + 2


CODE_OF_GRADIENTS = """
import numpy as np
from skvalue import GradientSemivalueValuer

rng = np.random.default_rng(0)
n, d = {n}, {d}
X, y = rng.standard_normal((n, d)), rng.integers(0, 2, n)
X_val, y_val = rng.standard_normal((200, d)), rng.integers(0, 2, 200)
valuer = GradientSemivalueValuer(
    "logistic", epsilon=1.0, noise="correlated", burn_in=0.0, learning_rate=0.1, n_permutations=2
)
valuer.fit(X[:100], y[:100], X_val=X_val, y_val=y_val)  # compiles


def megabytes(what):
    for line in open("/proc/self/status"):
        if line.startswith(what):
            return int(line.split()[1]) / 1024


before = megabytes("VmRSS")
open("/proc/self/clear_refs", "w").write("5")  # the peak starts again
valuer.set_params(n_permutations={k}).fit(X, y, X_val=X_val, y_val=y_val)
print(before, megabytes("VmHWM"))
"""


def memory_of_gradients(n, d, k):
    """Megabytes that a private fit takes at the peak beyond its data."""
    result = subprocess.run(
        [sys.executable, "-c", CODE_OF_GRADIENTS.format(n=n, d=d, k=k)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    before, peak = map(float, result.stdout.split())
    rows = n * d * 8 / 2**20
    print(
        f"Private gradients, n={n:,}, d={d}, k={k}: {peak - before:.0f} MB beyond the data, "
        f"{(peak - before) / rows:.1f} times its {rows:.0f} MB"
    )
    return peak - before


def test_memory_of_private_gradients_is_that_of_a_few_copies_of_the_rows():
    # 49 MB of rows; k utilities or orders a row would be 51 MB at k=100, n^2 numbers 30 GB.
    few, many = (memory_of_gradients(64_000, 100, k) for k in (2, 100))
    assert many < few + 20  # pooled errors take some arrays of 0.5 MB, one number a row
    assert many < 10 * 49
    twice = memory_of_gradients(128_000, 100, 2)
    wide = memory_of_gradients(64_000, 200, 2)
    for larger in (twice, wide):
        assert 1.6 * few < larger < 2.4 * few
