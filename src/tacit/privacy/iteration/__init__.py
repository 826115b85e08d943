"""Privacy amplification by iteration: runs whose iterates stay hidden."""

from tacit.privacy.iteration.energies import Order, Placement, Release, energy_law
from tacit.privacy.iteration.event import Iteration, check_contraction
from tacit.privacy.iteration.hull import iteration_mu, touch_energy
from tacit.privacy.iteration.law import EnergyLaw
from tacit.privacy.iteration.schedule import EpochSteps, IterationSchedule

__all__ = [
    "EnergyLaw",
    "EpochSteps",
    "Iteration",
    "IterationSchedule",
    "Order",
    "Placement",
    "Release",
    "check_contraction",
    "energy_law",
    "iteration_mu",
    "touch_energy",
]
