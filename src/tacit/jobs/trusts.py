"""Who may be trusted under a job, and why not others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.errors import ParameterError, check_count
from tacit.learning.algorithms import traits_of
from tacit.learning.algorithms.named import check_noise_kind
from tacit.privacy import TrustModel

if TYPE_CHECKING:
    from tacit.jobs.config import JobConfig

__all__ = ["check_parties", "trusts_of", "why_not_shuffled", "why_not_summed"]


def check_parties(job: JobConfig) -> None:
    """Refuse what neither a shuffler nor a sum can hide, and their numbers where there is neither."""
    check_noise_kind(job.noise, job.trust, job.algorithm)
    for trust, reason in (("shuffle", why_not_shuffled(job)), ("aggregate", why_not_summed(job))):
        if job.trust == trust and reason:
            raise ParameterError(f"trust must be another than {trust!r}: {reason}.")
    if job.n_min is not None:
        check_count("n_min", job.n_min, low=2)
    check_count("colluding", job.colluding, low=0)
    if job.n_min is not None and job.colluding >= job.n_min:
        raise ParameterError(f"colluding must be below n_min ({job.n_min}), got {job.colluding}.")
    if (job.n_min, job.colluding) != (None, 0) and not {"shuffle", "aggregate"} & {*job.trusts}:
        raise ParameterError(
            "n_min and colluding are for trust='shuffle' or trust='aggregate', got "
            f"{job.n_min!r} and {job.colluding} with trust={job.trust!r}."
        )
    if job.recover and "aggregate" not in job.trusts:
        raise ParameterError(f"recover is for trust='aggregate', got {job.recover} with trust={job.trust!r}.")


def trusts_of(job: JobConfig) -> tuple[str, ...]:
    """Return the trust models under which a job's algorithm can run, the least cautious one first."""
    central = () if job.leaves_out_central else ("central",)
    summed = () if why_not_summed(job) else ("aggregate",)
    shuffled = () if why_not_shuffled(job) else ("shuffle",)
    alone = ("local",) if TrustModel.LOCAL in job.chosen.trusts else ()
    return ("none", *central, *summed, *shuffled, *alone)


def why_not_shuffled(job: JobConfig) -> str:
    """Return why nothing can be shuffled under a job, as a clause; empty where it can."""
    if not job.automatic and TrustModel.SHUFFLE not in job.chosen.trusts:
        return f"the noise of {job.algorithm!r} has no price behind a shuffler"
    if job.neighbours != "replace-one":
        return f"messages can be counted, which {job.neighbours} does not allow"
    if job.weights != "records":
        return "a shuffled batch counts records, not silos"
    if job.sampling == "poisson" and job.batch not in (None, "full"):
        return "messages can be counted, and Poisson batches differ in size"
    return ""


def why_not_summed(job: JobConfig) -> str:
    """Return why more than sums must be seen of a job, as a clause; empty where they are enough."""
    if not job.automatic and TrustModel.AGGREGATE not in job.chosen.trusts:
        known = traits_of(job.chosen).why_no_sums
        return f"under {job.algorithm!r} {known or 'more than sums is asked for'}"
    if job.participants is not None:
        return f"every silo takes part in every sum, and participants={job.participants} draws some"
    if job.weights != "records":
        return "a sum counts records, and weights='silos' counts silos"
    if job.noise == "gaussian":
        return "shares of noise are whole numbers, and noise='gaussian' is continuous"
    return ""
