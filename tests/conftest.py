"""One hypothesis profile for all: the same examples on every run."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "tacit", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("tacit")
