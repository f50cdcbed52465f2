"""Text shared by docstrings of semivalue valuers, under names in brackets.

[model]
estimator : estimator, default=None
    The model trained on coalitions; None means `LogisticRegression()` or `Ridge()`. If
    its `random_state` is None, 0 is used, so that the utility of a coalition is
    deterministic. X may be of any kind that it takes: a data frame, texts, sparse rows,
    missing values.

[utility]
scoring : str or callable, default=None
    Scorer of the utility; None means the score of the estimator (accuracy or R2).
empty_utility : float or "prior", default=None
    Utility of the empty coalition. "prior" is the score of the constant prediction:
    `DummyClassifier(strategy="prior")` or `DummyRegressor()` fitted on the validation
    targets, so that rows are not paid for class frequencies that the buyer knows. None
    is the same, but 1/C for accuracy and balanced accuracy.
error_score : "empty", "raise" or float, default="empty"
    Utility of a coalition whose fit or score fails. "empty" uses that of the empty
    coalition, "raise" raises the error. It is an error in any case if all rows together
    fail.

[sampling]
sampler : {"auto", "process", "stratified", "subsets", "marginals", "permutation", \
        "antithetic", "exact"}, default="auto"
    How coalitions are drawn. "process": at most 4,096 different coalitions of at most
    32 players in each split, to which a Gaussian process is fitted, whose posterior
    mean of the semivalue is the value: of a few hundred coalitions the most precise by
    far, but not unbiased (:ref:`few_players`). "stratified": subsets of all sizes, each
    used for all rows, with more subsets of the sizes whose utilities vary most; few
    coalitions draw values to one another
    (:ref:`how much <strata_without_coalitions>`). "subsets": the same without strata;
    for Banzhaf values uniform subsets. "permutation",
    "antithetic": prefixes of random permutations, of permutations and their reverses,
    whose values are unbiased for any number of coalitions. "marginals": subsets of all
    sizes, from the one fit of each of which the contributions of all rows follow by a
    Newton step each, of second order; small subsets are trained with every row, and
    steps are corrected by models trained for some rows, so that values are unbiased. It
    needs `LogisticRegression`, `Ridge` or `LinearRegression` on dense numbers, and as
    `scoring` "neg_log_loss", "neg_brier_score", "accuracy" (the default of
    classifiers), "neg_mean_squared_error" or "r2"; see :ref:`marginal_contributions`.
    "exact": all coalitions. "auto" is "exact" if there are few coalitions; "process"
    for at most 32 players and 4,096 coalitions a split of an estimator that is trained
    one model at a time, unless `adjust` is True, `truncation` set or
    group_values="faithful"; "subsets" for Banzhaf values and "stratified" otherwise.
    With at least 200 players that "marginals" can value, a `scoring` other than
    accuracy, and defaults of `adjust` and `group_values`, a pilot of four coalitions of
    each range of sizes decides whether it is "marginals": where the squared errors that
    it promises, times the operations of the fits (with `max_evaluations`: their
    number), are less than a third of those of subsets. The pilot's fits are not
    counted; it reads no clock, so that the choice does not depend on the machine. See
    `sampler_`.
group_values : {"players", "faithful"}, default="players"
    With `groups`: what the value of a group is. "players": groups play, and the value
    is that of the group as one player. A group gains by splitting itself up.
    "faithful": rows play, and the value is the sum of those of its rows, which does not
    depend on how they are divided into groups (Lee et al. 2025); parts of a group of
    rows have exactly its value with the same `random_state`. It pays by rows, so that
    copies are paid, and takes many more coalitions: a standard error of 1 % of the
    total, for 100 of 500 rows and the accuracy of a logistic regression, took 15,000 to
    46,000 on three data sets, where the game of five groups has 32. It needs
    "stratified", "subsets" or "exact".
adjust : {"auto"} or bool, default="auto"
    Whether values are adjusted by control variates, which makes their standard errors
    smaller at the same number of coalitions: a linear surrogate of the utility (of
    size, class counts, nearest neighbours, products of means and members of a
    coalition) is fitted on other coalitions, and its exact expectation replaces its
    mean. Values stay unbiased; those of sampler="process", which this does not change,
    are not. Rows without numbers, such as texts, have sizes, class counts and members
    only. "auto": with at least 1,024 coalitions per split from "stratified" or
    "subsets", if that decreases the errors by a twentieth; off for naive Bayes and
    centroids in batches. True: always, or an error. See `adjustment_` and
    :ref:`adjusted_values`.
truncation : float, default=None
    With a sampler of permutations: a permutation ends once the utility has stayed
    within `truncation` of the utility of all rows for a twentieth of the rows; see
    `truncation_bias_`. "auto" then means "antithetic".
max_evaluations : int, default=None
    Most coalitions to evaluate, over all splits; only complete replicates (32 subsets,
    or one or two permutations) are evaluated, of "process" any number from n + 1 for n
    players. None computes it from the size of the data, unless one of the rules below
    is set: about one minute for 10,000 rows if the models are trained one at a time,
    and four replicates of "marginals", whose small subsets count a fit per row.
max_time : float, default=None
    Seconds after which to stop. Values then depend on the machine. The first replicate
    of every split is always finished. With sampler="process" the run stops as much
    earlier as its last fit is expected to take. An enumeration that would take longer,
    as measured on a few coalitions, is not started: "exact" raises an error, "auto"
    uses "stratified" or "permutation" instead.
tol : float, default=None
    Stop when no standard error is larger than `tol`. With sampler="process" it is
    checked from about 5 coalitions a player on, at growths of their number by a
    quarter, each of which takes a fit of the process.

[data]
task : {"auto", "classification", "regression"}, default="auto"
    Kind of target; "auto" is that of the estimator or, without one, that of y: classes
    unless y is continuous.
cv : int, "leave-one-out", splitter or iterable, default=5
    Splits used when no validation set is passed: the test rows of each split are the
    validation points of its training rows. Every row must be a training row equally
    often. With fewer than 5 groups, 5 means leave-one-group-out.
class_weight : {"balanced", None}, default=None
    "balanced" weights the validation points such that each class has the same total
    weight in the utility, times any `sample_weight_val` within the class; rows held out
    by `cv` are weighted in each split. Use it for imbalanced classes. (Weights of rows
    in the fits of a model are parameters of the `estimator`.) Classification only.
batch : {"auto", "torch", "never"}, default="auto"
    Whether many coalitions are trained at once. "auto": if there is a batched solver
    for the estimator, which uses torch if device="cuda". "torch": by torch (extra
    `torch`), or an error. "never": one estimator at a time.
device : {"auto", "cpu", "cuda"}, default="auto"
    Where batches are trained. "auto" is a GPU if batch="torch" and torch finds one,
    else the CPU.

[long]
checkpoint : str or path-like, default=None
    File written about once per second. After a crash, a fit on the same data resumes
    from it, with bitwise identical results.
warm_start : bool, default=False
    Whether to resume the last fit, on the same data; no random number is used twice.
    `max_evaluations` then counts the coalitions of all fits.

[jobs]
n_jobs : int, default=None
    Number of joblib workers or threads. The values do not depend on it.

[random]
random_state : int, RandomState or None, default=None
    Seed for drawing coalitions.

[values]
values_ : ndarray of shape (n_samples,) or (n_groups,)
    Values in the order of the rows, or of `groups_`; higher is better. Rows that were
    not in `fit` need a new fit; `score_samples` of `KNNShapleyValuer`, among others,
    needs none.

[errors]
values_error_ : ndarray of shape (n_samples,) or (n_groups,)
    Standard error of every value over the draw of coalitions; infinite if there is only
    one replicate, 0 if values are exact. With sampler="process" the posterior standard
    deviation, which may be too small for very asymmetric Beta values.
values_covariance_ : ndarray of shape (n_groups, n_groups)
    With ``group_values="faithful"`` and `groups`: covariance of the values over the
    draw of coalitions.
adjustment_ : Bunch
    ``used``: whether values are adjusted. ``error_ratio``: ratio of the standard errors
    to those without adjustment, estimated. ``n_fits_saved``: number of further
    coalitions that would decrease the errors as much.
truncation_bias_ : ndarray of shape (n_samples,) or (n_groups,)
    With `truncation`: bound on the bias of every value, if the utilities of all later
    prefixes stay within `truncation` of the utility of all rows.
sampler_ : str
    The sampler used.
approximate_ : bool
    With sampler="marginals": False, because steps are corrected.
correction_ : ndarray of shape (n_samples,) or (n_groups,)
    With sampler="marginals": what the models trained for rows drawn at random added to
    the values that follow from steps. Its size, relative to `values_error_`, says how
    good the steps are.
stop_reason_ : str
    "exact", "max_evaluations", "max_time", "tol", "callback", "interrupted" or
    "error".

[counts]
n_evaluations_ : int
    Number of coalitions on which the values are based. If `max_time` or an interruption
    ends the fit within a replicate (with `truncation`, within a round of about 1,000
    coalitions), those of this replicate are not used: the permutations that end first
    would bias the values.
n_failed_ : int
    Number of coalitions evaluated whose training or score failed.
utility_, empty_utility_ : float
    Utilities of all rows and of the empty coalition, means over splits.
classes_ : ndarray of shape (n_classes,)
    Class labels, in classification.
groups_ : ndarray of shape (n_groups,)
    Group labels, if `groups` was passed.
n_features_in_ : int
    Number of features.
feature_names_in_ : ndarray of shape (`n_features_in_`,)
    Names of the features, if X has string column names.
"""

import re
from inspect import cleandoc


def documented(cls):
    """Replace ``%(name)s`` in a class's docstring by the shared text of that name."""
    if cls.__doc__ is None:  # python -OO
        return cls
    named_texts = re.findall(r"^\[(\w+)\]\n(.*?)\n(?=\n\[|\Z)", __doc__, re.M | re.S)
    cls.__doc__ = cleandoc(cls.__doc__) % dict(named_texts) + "\n"
    return cls
