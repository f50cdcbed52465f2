"""Text that the docstrings of semivalue valuers share, each part under its name in brackets.

[model]
estimator : estimator, default=None
    The model that coalitions train; None takes `LogisticRegression()` or `Ridge()`. Its
    `random_state`, where None, is 0, so that a coalition has one utility.

[utility]
scoring : str or callable, default=None
    Scorer of the utility; None takes the estimator's own score (accuracy or R2).
empty_utility : float, default=None
    Utility of the empty coalition. None is 1/C for accuracy, and what a constant prediction
    scores for ROC AUC, log-loss and R2; other scorers need a number.
error_score : "empty", "raise" or float, default="empty"
    Utility of a coalition whose fit or score fails: that of the empty one, an error, or a
    number.

[sampling]
sampler : {"auto", "stratified", "subsets", "permutation", "antithetic", \
        "latin", "orthogonal", "exact"}, default="auto"
    What coalitions are drawn. "stratified": subsets of all sizes, each used for all rows, most
    where utilities vary most. "subsets": the same without strata; for Banzhaf values uniform
    subsets. "permutation", "antithetic", "latin", "orthogonal": prefixes of random orders, of
    orders and their reverses, of shifted orders, of orders at right angles and their reverses.
    "exact": all coalitions. "auto" takes all where they are few, subsets for Banzhaf values,
    and else "stratified"; see `sampler_`.
truncation : float, default=None
    With a sampler of orders: an order ends where the utility has come within this of that of
    all rows, and stays there for a twentieth of the rows; see `truncation_bias_`. "auto" then
    takes "antithetic".
max_evaluations : int, default=None
    Coalitions to evaluate, over all splits. None computes a number from the size of the data,
    unless another rule below is set: about a minute of fits one by one for 10,000 rows.
max_time : float, default=None
    Seconds after which to stop. Values then depend on the machine. The first replicate of every
    split is finished all the same. An enumeration that would take longer, as measured on a few
    coalitions, is not begun: "exact" is refused, and "auto" takes "stratified".
tol : float, default=None
    Stop when no standard error is larger.
sign_level : float, default=None
    Stop when the sign of every value is decided at this confidence; with `tol`, of every value
    whose standard error is larger than that.
stable_bottom : int, default=None
    Stop when the rows of that many lowest values are the same, 19 in 20, as with half as many
    coalitions. Where `tol`, `sign_level` and `stable_bottom` are set, all must be reached.

[data]
task : {"auto", "classification", "regression"}, default="auto"
    Kind of target; "auto" decides by `sklearn.utils.multiclass.type_of_target`.
cv : int, "leave-one-out", splitter or iterable, default=5
    Which rows are held out to value which others when there is no validation set; every row
    must play equally often.
batch : {"auto", "torch", "never"}, default="auto"
    Whether many coalitions are trained at once: where the estimator allows it, by torch where
    device="cuda"; by torch, which the extra `torch` brings, or not at all; or never.
device : {"auto", "cpu", "cuda"}, default="auto"
    Where batches are trained. "auto" is a GPU where batch="torch" and torch sees one, else the
    CPU.
memory : str or object with the interface of `joblib.Memory`, default=None
    Keeps utilities on disk, call by call: a fit that asks for the same coalitions in the same
    order finds them, batched or not. To resume a fit take `checkpoint`.

[long]
checkpoint : str or path-like, default=None
    File that is written about every second, and from which a fit on the same data resumes, bit
    for bit, after a crash.
warm_start : bool, default=False
    Whether to resume the last fit, on the same data; no random number is used twice.
    `max_evaluations` counts all fits.

[jobs]
n_jobs : int, default=None
    Workers, of joblib or threads. They change no bit of the values.

[random]
random_state : int, RandomState or None, default=None
    Seed of the coalitions.

[values]
values_ : ndarray of shape (n_samples,) or (n_groups,)
    Values in the order of the rows, or of `groups_`; higher is better.

[errors]
values_error_ : ndarray of shape (n_samples,) or (n_groups,)
    Standard error of every value over the draw of coalitions; infinite where one replicate
    cannot tell, 0 where values are exact.
truncation_bias_ : ndarray of shape (n_samples,) or (n_groups,)
    With `truncation`: what it can have moved a value by, if the utilities of all later prefixes
    are as near to that of all rows.
sampler_ : str
    The sampler used.
stop_reason_ : str
    "exact", "max_evaluations", "max_time", goals reached, "callback", "interrupted" or
    "error".

[counts]
n_evaluations_ : int
    Coalitions asked for.
n_failed_ : int
    Coalitions that could not be trained, or hold one class.
utility_, empty_utility_ : float
    Utility of all rows and of none, means over splits.
classes_ : ndarray of shape (n_classes,)
    The labels, in a classification.
groups_ : ndarray of shape (n_groups,)
    The groups, if `groups` was passed.
n_features_in_ : int
    Number of features.
feature_names_in_ : ndarray of shape (`n_features_in_`,)
    Names of the features, where X had any.
"""

import re
from inspect import cleandoc


def documented(cls):
    """Put the shared text in the place of ``%(name)s`` in the docstring of a class."""
    if cls.__doc__ is not None:  # `python -OO` has none, and from 3.13 on they are not indented
        parts = re.findall(r"^\[(\w+)\]\n(.*?)\n(?=\n\[|\Z)", __doc__, re.M | re.S)
        cls.__doc__ = cleandoc(cls.__doc__) % dict(parts) + "\n"
    return cls
