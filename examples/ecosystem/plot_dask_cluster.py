"""
Rows on a Dask cluster
======================

Values of neighbours are sums over blocks of rows. Rows of a Dask array are read block
by block, each by the worker that holds it, so that they need not fit one machine's
memory, and the values have the same bits as those of rows in memory.
"""

# %%
# A cluster of two workers
# ------------------------
# On one machine here; `Client("address:8786")` is one of many.
import dask.array as da
from dask.distributed import Client, LocalCluster
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

X, y = load_digits(return_X_y=True)
X, X_val, y, y_val = train_test_split(X, y, test_size=200, random_state=0)

cluster = LocalCluster(
    n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
)
client = Client(cluster)

# %%
# The same values
# ---------------
from skvalue import TKNNShapleyValuer

rows = da.from_array(X, chunks=(400, -1))
of_cluster = TKNNShapleyValuer().fit(rows, y, X_val=X_val, y_val=y_val)
in_memory = TKNNShapleyValuer().fit(X, y, X_val=X_val, y_val=y_val)
same = (of_cluster.values_ == in_memory.values_).all()
print(f"{rows.numblocks[0]} blocks of rows, the same values: {same}")

client.close()
cluster.close()

# %%
# The values
# ----------
import matplotlib.pyplot as plt

from skvalue.inspection import ValueDistributionDisplay

ValueDistributionDisplay(of_cluster.values_).plot()
plt.show()
