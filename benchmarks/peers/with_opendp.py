"""As a user of OpenDP writes it: the number of records is public, and one of them is changed."""

import numpy as np
import opendp.prelude as dp

dp.enable_features("contrib")


def mean(X, lower, upper, epsilon):
    context = dp.Context.compositor(
        data=X[:, 0].tolist(),
        privacy_unit=dp.unit_of(contributions=2),  # one is taken out, another put in
        privacy_loss=dp.loss_of(epsilon=epsilon),
        split_evenly_over=1,
        domain=dp.vector_domain(dp.atom_domain(T=float, nan=False), size=len(X)),
    )
    found = context.query().clamp((float(lower[0]), float(upper[0]))).mean().laplace().release()
    return np.array([found]), (epsilon, 0.0)


def mean_of_rows(X, upper, epsilon, delta):
    apart = float(np.linalg.norm(upper)) / len(
        X
    )  # the mean is taken outside, so that this is the user's own claim
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)

    def meets(scale):
        return (
            dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale)).map(apart).epsilon(delta) <= epsilon
        )

    scale = dp.binary_search(meets, bounds=(apart / 10, apart * 100))
    return np.array(dp.m.make_gaussian(*space, scale)(X.mean(axis=0).tolist())), (epsilon, delta)
