"""As a user of tacit writes it, with its defaults."""

from tacit.federation import Full, Poisson
from tacit.frequencies import FrequenciesQuery, estimate_frequencies, project
from tacit.learning import FederatedLogisticRegression, NoisyMinibatchSGD
from tacit.means import ColumnMeansQuery, column_means
from tacit.privacy import (
    Gaussian,
    Neighbours,
    PrivacyBudget,
    Relation,
    Repeat,
    Replaced,
    Sample,
    Sampled,
    Shuffled,
    epsilon_of,
)
from tacit.randomness import secure


def classify(X, y, lower, upper, classes, epsilon, delta, relation, seeded, seed):
    model = FederatedLogisticRegression(
        trust="central",
        budget=PrivacyBudget(epsilon, delta),
        neighbours=relation,
        bounds=(lower, upper),
        classes=classes,
        random_state=seed if seeded else None,
    ).fit(X, y)
    return model.predict, (model.guarantee_.epsilon, model.guarantee_.delta)


def speed(X, y, lower, upper, classes, epsilon, delta, rate, rounds, relation, seeded, seed):
    batch = Full() if rate == 1 else Poisson(rate)
    model = FederatedLogisticRegression(
        algorithm=NoisyMinibatchSGD(rounds=rounds, batch=batch),
        trust="central",
        budget=PrivacyBudget(epsilon, delta),
        neighbours=relation,
        bounds=(lower, upper),
        classes=classes,
        random_state=seed if seeded else None,
    ).fit(X, y)
    return model.guarantee_.epsilon, model.guarantee_.delta


def mean(X, lower, upper, epsilon, delta):
    query = ColumnMeansQuery.calibrated(
        n=len(X), lower=lower, upper=upper, budget=PrivacyBudget(epsilon, delta)
    )
    found = column_means(X, query, rng=secure())
    return found.mean, (found.guarantee.epsilon, found.guarantee.delta)


def price_gaussian(sigma, times, delta):
    return epsilon_of(Repeat(Gaussian(sigma, Neighbours(Relation.ADD_REMOVE)), times), delta)


def price_sampled(sigma, rate, times, delta, relation):
    if relation == "replace-one":
        event = Replaced(Gaussian(sigma, Neighbours(Relation.ZERO_OUT)), rate)
    else:
        event = Sampled(Gaussian(sigma, Neighbours(Relation.ADD_REMOVE)), rate, Sample.POISSON)
    return epsilon_of(Repeat(event, times), delta)


def price_shuffled(local_epsilon, parties, delta):
    return epsilon_of(Shuffled(local_epsilon, parties, "krr:16"), delta)


def frequencies(values, k, epsilon, mechanism):
    short = mechanism == "short"
    query = FrequenciesQuery.calibrated(
        k=k,
        n=len(values),
        budget=PrivacyBudget(epsilon),
        mechanism=None if short else mechanism,
        max_message_bits=65 if short else None,
    )
    found = estimate_frequencies(values, query, rng=secure())
    return project(found.estimates), (found.guarantee.epsilon, found.guarantee.delta)
