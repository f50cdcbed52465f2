"""Files of parties and mediators: what they hold, and what is refused by name."""

import json

import numpy as np
import pytest

from skvalue import BayesianSurpriseScorer, PredictiveValueScorer
from skvalue.collaborative import (
    BayesianLinear,
    BayesianLogistic,
    BetaBernoulli,
    GammaPoisson,
    GaussianMean,
    GramRelease,
    LogisticRelease,
    MediatorModel,
    NamedRelease,
    NamedReward,
    NoisyStatistic,
    PartyScores,
    PosteriorClassifier,
    PosteriorDraws,
    PosteriorRegressor,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 2)) * [1.0, 1000.0] + [5.0, 0.0]
LABELS = np.where(X[:, 0] + RNG.normal(size=200) > 5.5, "yes", "no")
TARGETS = 3.0 * X[:, 0] + RNG.normal(size=200)
COLUMNS = ["dose", "metres"]


def logistic_model(**fields):
    return MediatorModel.from_points(X, LABELS, columns=COLUMNS, target="t", **fields)


def linear_model(**fields):
    return MediatorModel.from_points(X, TARGETS, columns=COLUMNS, target="t", **fields)


MODELS = {"logistic": logistic_model(), "linear": linear_model()}
Y = {"logistic": LABELS, "linear": TARGETS}


def named_release(model, epsilon=None, party="clinic"):
    y = model.transform_target(Y[model.kind])
    fitted = model.make_party(epsilon).fit(model.transform(X), y)
    columns = (*model.columns, model.target)
    return NamedRelease(party, model.fingerprint, columns, fitted.release_)


RELEASES = {kind: named_release(model) for kind, model in MODELS.items()}
kinds = pytest.mark.parametrize("kind", MODELS)


class TestScaling:
    def test_all_but_a_twentieth_of_public_rows_are_within_the_bound(self):
        model = MODELS["logistic"]
        norms = np.linalg.norm(model.transform(X), axis=1)
        assert np.mean(norms <= model.x_bound) == pytest.approx(0.95)

    def test_weights_have_a_weak_prior_in_the_units_of_the_columns(self):
        model = logistic_model()
        weights = 1 / np.sqrt(model.precision[1:])
        np.testing.assert_allclose(weights * X.std(axis=0) / model.scale, 2.5)
        assert model.precision[0] == 1
        assert logistic_model(precision=(1.0, 2.0, 3.0)).precision == (1.0, 2.0, 3.0)

    def test_units_of_columns_do_not_matter(self):
        other = MediatorModel.from_points(
            X / [1.0, 1e6], LABELS, columns=COLUMNS, target="t"
        )
        rows = MODELS["logistic"].transform(X)
        np.testing.assert_allclose(other.transform(X / [1.0, 1e6]), rows)

    def test_each_row_is_scaled_by_itself(self):
        model = MODELS["logistic"]
        rows = model.transform(X)
        assert np.array_equal(rows[:3], model.transform(X[:3]))

    def test_prior_of_classes_predicts_their_frequencies(self):
        model = MODELS["logistic"]
        probability = 1 / (1 + np.exp(-model.mean[0]))
        assert probability == pytest.approx(np.mean(LABELS == "yes"), abs=0.01)

    def test_targets_are_scaled(self):
        scaled = MODELS["linear"].transform_target(TARGETS)
        assert np.mean(np.abs(scaled) <= 1) == pytest.approx(0.99)

    def test_constant_column_is_refused_by_its_name(self):
        with pytest.raises(ValueError, match="constant column.*'metres'"):
            MediatorModel.from_points(X * [1, 0], LABELS, columns=COLUMNS, target="t")


@kinds
def test_a_model_is_read_as_it_was_written(kind):
    model = MODELS[kind]
    read = MediatorModel.from_json(model.to_json())
    assert read == model
    assert read.fingerprint == model.fingerprint


@kinds
def test_a_release_is_read_as_it_was_written_and_fits_its_model(kind):
    named = NamedRelease.from_json(RELEASES[kind].to_json())
    assert named == RELEASES[kind]
    MODELS[kind].check_release(named)


@kinds
def test_a_party_of_a_model_has_its_bounds_and_prior(kind):
    model = MODELS[kind]
    release = RELEASES[kind].release
    assert release.bounds[0] == model.x_bound
    assert release.prior == model.make_model().prior_statement()


# What differs -> a release that was made otherwise.
OTHERS = {
    "columns": lambda model: named_release(
        MediatorModel.from_points(X[:, ::-1], LABELS, columns=COLUMNS[::-1], target="t")
    ),
    "bounds": lambda model: named_release(logistic_model(x_bound=3.0)),
    "intercept": lambda model: named_release(logistic_model(intercept=False)),
    "classes": lambda model: named_release(logistic_model(classes=("yes", "no"))),
    "prior": lambda model: named_release(logistic_model(precision=(9.0, 1.0, 1.0))),
    "kind": lambda model: RELEASES["linear"],
    "scaling": lambda model: named_release(logistic_model(scale=(1.0, 1.0))),
}


@pytest.mark.parametrize("what", OTHERS)
def test_a_release_for_another_model_is_refused_by_what_differs(what):
    model = MODELS["logistic"]
    with pytest.raises(ValueError, match=rf"\b{what}\b.*Got"):
        model.check_release(OTHERS[what](model))


# Field of a record -> values that are refused by the name of the field.
BAD_MODELS = {
    "kind": ["x", 1, None],
    "columns": [[], ["a"], ["a", "a"], ["a", 3], ["a", ""], ["a", "x\n"], "ab"],
    "target": ["dose", "", 3, "x" * 201],
    "centre": [[1.0], [1.0, "2"], [1.0, 1e60], [1.0, True], 3],
    "scale": [[1.0, 0.0], [1.0, -1.0], [1.0, 1e60]],
    "classes": [[], ["no"], ["no", "no"], ["no", None], ["no", True], "ab"],
    "x_bound": [0, -1.0, 1e60, "1", None],
    "intercept": [1, "true"],
    "mean": [[0.0], [0.0, 0.0, 1e60], 3],
    "precision": [[1.0, 1.0, 0.0], [1.0]],
    "value": ["x", 1],
    "semivalue": ["x"],
    "separator": ["ab", '"', ""],
    "decimal": [",", "x"],
    "a0": [0, -1.0],
}
BAD_FIELDS = [(name, bad) for name, values in BAD_MODELS.items() for bad in values]


@pytest.mark.parametrize(("name", "bad"), BAD_FIELDS)
def test_a_bad_field_of_a_model_is_refused_by_its_name(name, bad):
    record = json.loads(MODELS["logistic"].to_json())
    record[name] = bad
    with pytest.raises(ValueError, match=rf"^({name}|columns|centre)\b.*Got"):
        MediatorModel.from_json(json.dumps(record))


def reward_of(kind):
    model = MODELS[kind].make_model().bind([RELEASES[kind].release])
    rng = np.random.default_rng(0)
    draws = model.sample_prior(20, rng)
    make = PosteriorClassifier if kind == "logistic" else PosteriorRegressor
    return make(model, draws)


def scores_of(kind):
    scorer = PredictiveValueScorer(MODELS[kind].make_model(), n_particles=60)
    named = RELEASES[kind]
    scorer.fit(
        {"clinic": named.release},
        X_val=MODELS[kind].transform(X[:50]),
        y_val=MODELS[kind].transform_target(Y[kind][:50]),
    )
    return PartyScores.from_scorer(scorer, MODELS[kind].fingerprint, 50)


WRITTEN = {
    "model": (MediatorModel, MODELS["logistic"].to_json()),
    "release": (NamedRelease, RELEASES["logistic"].to_json()),
    "scores": (PartyScores, scores_of("logistic").to_json()),
    "reward": (
        NamedReward,
        NamedReward("clinic", "0" * 64, reward_of("logistic")).to_json(),
    ),
    "posterior": (PosteriorDraws, reward_of("linear").to_json()),
}


def _with(text, **fields):
    return json.dumps(json.loads(text) | fields)


def _without_last(text):
    record = json.loads(text)
    record.popitem()
    return json.dumps(record)


# What is wrong -> the text, and a part of the message.
HOSTILE = {
    "older version": (lambda text: _with(text, version=0), r"version 1\. Got .*0"),
    "version true": (lambda text: _with(text, version=True), "version 1"),
    "another format": (lambda text: _with(text, format="x"), "of format"),
    "unknown field": (lambda text: _with(text, odd=1), "exactly the fields .*odd"),
    "missing field": (_without_last, "exactly the fields"),
    "NaN": (lambda text: text.replace("{", '{"x": NaN, ', 1), "finite numbers. Got Na"),
    "a field twice": (
        lambda text: text.replace("{", '{"version": 1, ', 1),
        "every field once",
    ),
    "no object": (lambda text: "[1]", "a JSON object"),
    "no JSON": (lambda text: text[:-9], "must be JSON"),
    "nested too deeply": (lambda text: "[" * 100_000, "must be JSON"),
}


@pytest.mark.parametrize("what", HOSTILE)
@pytest.mark.parametrize("file", WRITTEN)
def test_a_hostile_text_is_refused_by_what_is_wrong(file, what):
    record_class, text = WRITTEN[file]
    change, message = HOSTILE[what]
    with pytest.raises(ValueError, match=message):
        record_class.from_json(change(text))


@pytest.mark.parametrize("file", WRITTEN)
def test_a_text_larger_than_allowed_is_refused_before_it_is_parsed(file):
    record_class, _ = WRITTEN[file]
    with pytest.raises(ValueError, match="a string of at most"):
        record_class.from_json(" " * 100_020_000)


BAD_RELEASES = {
    "party": ["", "a/b", "../a", ".a", "a" * 65, 3, None, "a\n"],
    "model": ["", "0" * 63, "G" * 64, None],
    "columns": [[], ["dose"], ["dose", "metres", 3], "abc", ["a", "b", "c" * 201]],
    "release": [None, [], {}, {"format": "x"}],
}


@pytest.mark.parametrize(
    ("name", "bad"),
    [(name, bad) for name, values in BAD_RELEASES.items() for bad in values],
)
def test_a_bad_field_of_a_release_is_refused(name, bad):
    text = _with(RELEASES["logistic"].to_json(), **{name: bad})
    with pytest.raises(ValueError, match="Got"):
        NamedRelease.from_json(text)


def test_a_statistic_within_a_release_is_checked_too():
    record = json.loads(RELEASES["logistic"].to_json())
    record["release"]["statistic"][0] = 1e9
    with pytest.raises(ValueError, match="statistic must be of numbers within"):
        NamedRelease.from_json(json.dumps(record))


class TestRewards:
    @kinds
    def test_a_reward_predicts_the_same_after_it_was_read(self, kind):
        reward = reward_of(kind)
        text = NamedReward("clinic", MODELS[kind].fingerprint, reward).to_json()
        read = NamedReward.from_json(text)
        rows = MODELS[kind].transform(X[:20])
        assert type(read.posterior) is type(reward)
        if kind == "linear":  # means of draws may be added up in another order
            np.testing.assert_allclose(
                read.posterior.predict(rows), reward.predict(rows), atol=1e-12
            )
        y = MODELS[kind].transform_target(Y[kind][:20])
        np.testing.assert_allclose(
            read.posterior.log_density(rows, y), reward.log_density(rows, y)
        )
        statement = reward.model.prior_statement()
        assert read.posterior.model.prior_statement() == statement

    def test_a_reward_has_no_release_of_another_party(self):
        text = reward_of("logistic").to_json()
        assert "statistic" not in text
        assert set(json.loads(text)) == {
            *("format", "version", "model", "n_draws", "samples")
        }

    @pytest.mark.parametrize(
        ("model", "y"),
        [
            (GaussianMean(variance=0.3), [0.1, 0.4]),
            (BetaBernoulli(2.0, 3.0), [0, 1]),
            (GammaPoisson(2.0, 1.0), [0, 4]),
            (BayesianLinear(precision=np.diag([1.0, 2.0])), None),
            (BayesianLogistic(classes=("a", "b"), moments="hierarchical"), None),
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_every_model_is_read_with_its_parameters(self, model, y):
        rows = None
        if isinstance(model, BayesianLinear):
            rows = np.ones((2, 2))
            y = [0.3, 0.1]
            model = model.bind(
                [GramRelease(None).fit(np.ones((60, 2)), np.ones(60)).release_]
            )
        if isinstance(model, BayesianLogistic):
            rows = np.ones((2, 2))
            y = ["a", "b"]
            party = LogisticRelease(None, classes=("a", "b"))
            model = model.bind([party.fit(np.ones((60, 2)), ["a", "b"] * 30).release_])
        draws = model.sample_prior(9, np.random.default_rng(0))
        posterior = PosteriorDraws(model, draws)
        read = PosteriorDraws.from_json(posterior.to_json())
        np.testing.assert_allclose(
            read.log_density(rows, y), posterior.log_density(rows, y)
        )

    def test_a_model_of_a_user_is_refused(self):
        class Own(GaussianMean):
            pass

        posterior = PosteriorDraws(Own(), np.zeros((3, 1)))
        with pytest.raises(TypeError, match="model must be one of .* Got Own"):
            posterior.to_json()

    @pytest.mark.parametrize(
        ("field", "bad"),
        [
            ("name", "os.system"),
            ("name", None),
            ("parameters", {}),
            ("parameters", {"precision": "x"}),
            ("parameters", [1]),
            ("n_features", -1),
            ("n_features", 10**9),
            ("intercept", 1),
        ],
    )
    def test_a_bad_model_of_a_reward_is_refused(self, field, bad):
        record = json.loads(reward_of("linear").to_json())
        record["model"][field] = bad
        with pytest.raises(ValueError, match="must be"):
            PosteriorDraws.from_json(json.dumps(record))

    @pytest.mark.parametrize(
        ("field", "bad"),
        [
            ("n_draws", 0),
            ("n_draws", 10**9),
            ("n_draws", 7),
            ("samples", "!"),
            ("samples", "AAA="),
            ("samples", 3),
            ("samples", "AAAAAAAA+H8="),
        ],
    )
    def test_bad_draws_of_a_reward_are_refused(self, field, bad):
        record = json.loads(reward_of("linear").to_json())
        record[field] = bad
        with pytest.raises(ValueError, match=r"(n_draws|samples) must "):
            PosteriorDraws.from_json(json.dumps(record))


class TestScores:
    def test_scores_are_read_as_they_were_written(self):
        scores = scores_of("linear")
        assert PartyScores.from_json(scores.to_json()) == scores

    def test_shares_are_those_of_values_above_zero(self):
        releases = {
            name: NoisyStatistic("gaussian", 100, (mean,), 0.5, 2.0, (-1.0, 1.0))
            for name, mean in [("a", 40.0), ("b", 35.0), ("false", -40.0)]
        }
        scorer = PredictiveValueScorer(GaussianMean(variance=0.1))
        scorer.fit(releases, y_val=[0.3, 0.7, 0.2, 0.4])
        scores = PartyScores.from_scorer(scorer, "0" * 64, 4)
        shared = {party["party"]: party["share"] for party in scores.parties}
        assert shared["false"] == 0
        assert sum(shared.values()) == pytest.approx(1)
        assert shared["a"] > shared["b"] > 0

    @pytest.mark.filterwarnings("ignore:The prior outweighs")
    def test_scores_without_errors_of_the_noise_are_refused(self, rng):
        X = rng.normal(size=(60, 2)) / 3
        release = GramRelease(1.0).fit(X, X[:, 0]).release_
        unaware = BayesianSurpriseScorer(BayesianLinear(noise_aware=False))
        with pytest.raises(ValueError, match="scorer must state the errors.* Got Baye"):
            PartyScores.from_scorer(unaware.fit([release]), "0" * 64)

    def test_scores_of_surprise_have_no_validation_error(self):
        release = NoisyStatistic("gaussian", 100, (40.0,), 0.5, 2.0, (-1.0, 1.0))
        scorer = BayesianSurpriseScorer(GaussianMean()).fit({"a": release})
        scores = PartyScores.from_scorer(scorer, "0" * 64)
        assert scores.value == "surprise"
        assert scores.parties[0]["validation_error"] == 0

    @pytest.mark.parametrize(
        ("field", "bad"),
        [
            ("party", "a/b"),
            ("value", "1"),
            ("value", 1e200),
            ("error", -1.0),
            ("share", 1.5),
            ("n_samples", -1),
        ],
    )
    def test_a_bad_field_of_a_party_is_refused(self, field, bad):
        record = json.loads(scores_of("linear").to_json())
        record["parties"][0][field] = bad
        with pytest.raises(ValueError, match=field):
            PartyScores.from_json(json.dumps(record))
