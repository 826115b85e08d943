"""As a user of multi-freq-ldpy writes it: a list of answers, then one estimate, clipped and normalised."""

from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client
from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Aggregator_MI, LH_Client
from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Aggregator_MI, SS_Client
from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client


def frequencies(values, k, epsilon, mechanism):
    if mechanism in ("oue", "rappor"):
        optimised = mechanism == "oue"
        answers = [UE_Client(value, k, epsilon, optimised) for value in values.tolist()]
        return UE_Aggregator_MI(answers, epsilon, optimised), (epsilon, 0.0)
    client, server = {
        "krr": (GRR_Client, GRR_Aggregator_MI),
        "ss": (SS_Client, SS_Aggregator_MI),
        "short": (LH_Client, LH_Aggregator_MI),
    }[mechanism]
    answers = [client(value, k, epsilon) for value in values.tolist()]
    return server(answers, k, epsilon), (epsilon, 0.0)
