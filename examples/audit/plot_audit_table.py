"""
Audit a table
=============

`audit_table` lists the rows of a data frame whose labels are doubtful, with a
suggestion, the rows that speak for and against the label, and duplicates that
contradict each other. From verdicts on 50 rows it says which rows of the list can be
named, and how many labels are wrong. The report is one page without references to other
files: ``report.to_html("report.html")``.
"""

# %%
# A table with categories, gaps and wrong labels
# ----------------------------------------------
# Measurements of tumours, the clinic that took them, and one label in twelve replaced.
import numpy as np
from sklearn.datasets import load_breast_cancer

from skvalue.datasets import flip_labels

rng = np.random.default_rng(0)
X, y = load_breast_cancer(as_frame=True, return_X_y=True)
X = X.iloc[:, :8].assign(clinic=rng.choice(["north", "south"], len(X)))
X.loc[::25, "mean radius"] = np.nan
y, wrong = flip_labels(np.where(y, "benign", "malignant"), 1 / 12, random_state=0)
print(f"{len(X)} rows, {wrong.sum()} wrong labels")

# %%
# The report
# ----------
# In a notebook the report shows its page: click on a heading to sort, type to filter,
# open the details of a row. The page counts the verdicts that are clicked, and saves
# them as a CSV file.
from skvalue.audit import audit_table

report = audit_table(X, y, title="Tumours", target="tumour", random_state=0)
report

# %%
# Fifty verdicts
# --------------
# Whether a label is wrong can only be said by a person; here the corrupted labels are
# known. With a file of verdicts it is ``report.read_verdicts("verdicts.csv")``.
reviewed = report.review(report.to_review, wrong[report.to_review])
statement = reviewed.statement
named = statement.label_error
print(reviewed)
print(f"{named.sum()} rows are named; {wrong[named].mean():.0%} are wrong.")
rate = statement.error_rate
true_rate = wrong[report.listed].sum() / len(y)
print(
    f"Listed and wrong: {rate.rate:.1%} of all rows ({rate.low:.1%} to "
    f"{rate.high:.1%}); in truth {true_rate:.1%}."
)

# %%
# The list, and where it ends
# ---------------------------
# Values of the list, most doubtful first. The q-value of a row is the estimated
# fraction of right labels in the list up to this row; the list of `fdr` ends where it
# exceeds 0.1.
import matplotlib.pyplot as plt

BLUE = "#30638e"
RED = "#d1495b"
ranks = np.arange(1, len(report.listed) + 1)
is_wrong = wrong[report.listed]
values = report.values[report.listed]
q_values = statement.q_values[report.listed]
unseen = ~np.isin(report.listed, report.to_review)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.bar(ranks, values, width=1, color=np.where(is_wrong, RED, BLUE))
left.bar([1], [0], color=RED, label="wrong label")
left.bar([1], [0], color=BLUE, label="right label")
left.set(xlabel="rank in the list", ylabel="probability of the given label")
left.legend(frameon=False)
true_fractions = np.cumsum(~is_wrong) / ranks
right.plot(ranks, true_fractions, color="0.3", label="true fraction up to here")
right.plot(ranks[unseen], q_values[unseen], ".", color=BLUE, label="q-value")
right.axhline(0.1, color="0.6", linewidth=1, linestyle="--")
right.set(xlabel="rank in the list", ylabel="fraction of right labels", ylim=(0, None))
right.legend(frameon=False)
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# From the command line
# ---------------------
# The same for a file, and the gate of a build that fails above 5 %:
#
# .. code-block:: bash
#
#     skvalue audit tumours.csv --target tumour -o report.html --json report.json
#     skvalue review report.json verdicts.csv -o report.html --fail-on 0.05
