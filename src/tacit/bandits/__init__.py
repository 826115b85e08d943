"""Private linear bandits: learn which action is best without seeing a reward."""

from tacit.bandits.actions import check_actions
from tacit.bandits.answers import reward_message, round_rewards
from tacit.bandits.baselines import phased_elimination
from tacit.bandits.contextual import ContextualReduction, contextual_gap, reduce_contexts
from tacit.bandits.design import Design, g_optimal_design, uniform_design
from tacit.bandits.elimination import Batch, Decision, Elimination, begin, decide, next_batch
from tacit.bandits.environment import LinearEnvironment, RewardModel, random_circle
from tacit.bandits.federated import SLOTS, FederatedBandit, bandit_rounds, federated_bandit
from tacit.bandits.live import LiveBandit
from tacit.bandits.nets import MOST_ACTIONS, sphere_net, thin_actions
from tacit.bandits.plan import BanditPlan, Tail
from tacit.bandits.players import (
    DEALT_REWARDS,
    OWN_REWARDS,
    DealtRewards,
    OwnRewards,
    Play,
    Players,
)
from tacit.bandits.radius import RadiusMode
from tacit.bandits.regret import PlannedBatch, RegretBound, regret_bound
from tacit.bandits.reward_privacy import (
    Amplification,
    Anonymity,
    RewardNoise,
    RewardPrivacy,
    amplified_level,
)
from tacit.bandits.schedule import LEAST_HORIZON, BatchSchedule
from tacit.bandits.simulation import BanditResult, BatchReport, simulate_bandit
from tacit.bandits.tails import laplace_sum_radius

__all__ = [
    "DEALT_REWARDS",
    "LEAST_HORIZON",
    "MOST_ACTIONS",
    "OWN_REWARDS",
    "SLOTS",
    "Amplification",
    "Anonymity",
    "BanditPlan",
    "BanditResult",
    "Batch",
    "BatchReport",
    "BatchSchedule",
    "ContextualReduction",
    "DealtRewards",
    "Decision",
    "Design",
    "Elimination",
    "FederatedBandit",
    "LinearEnvironment",
    "LiveBandit",
    "OwnRewards",
    "PlannedBatch",
    "Play",
    "Players",
    "RadiusMode",
    "RegretBound",
    "RewardModel",
    "RewardNoise",
    "RewardPrivacy",
    "Tail",
    "amplified_level",
    "bandit_rounds",
    "begin",
    "check_actions",
    "contextual_gap",
    "decide",
    "federated_bandit",
    "g_optimal_design",
    "laplace_sum_radius",
    "next_batch",
    "phased_elimination",
    "random_circle",
    "reduce_contexts",
    "regret_bound",
    "reward_message",
    "round_rewards",
    "simulate_bandit",
    "sphere_net",
    "thin_actions",
    "uniform_design",
]
