"""Sentences that the reports of several methods share."""

# What is not protected.
PUBLIC_POINTS = "the validation points X_val and y_val, which are public"
OWN_VALUE = "a row from its own value, which is for its owner (values_for)"
RUNNING_TIMES = "running times and error messages"
GROUPS = "groups as wholes: the unit is one row of a group"

# What is assumed.
NOT_A_POINT = "no row to value is also a validation point"
PREPARATION = "so was the preparation of the columns (scaling, selection, embeddings)"
OTHER_RELEASES = (
    "other releases on the same rows are accounted for together with this one (Ledger)"
)
NO_COPIES = (
    "no other {} holds a copy of a row: for copies, the costs of all releases add up"
)
