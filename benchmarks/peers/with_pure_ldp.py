"""As a user of pure-ldp writes it: a client answers and a server counts, one item after the other."""

import numpy as np
from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer
from pure_ldp.frequency_oracles.hadamard_response import HadamardResponseClient, HadamardResponseServer
from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer
from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer


def frequencies(values, k, epsilon, mechanism):
    if mechanism == "krr":
        client, server = DEClient(epsilon, k), DEServer(epsilon, k)
    elif mechanism == "hr":
        server = HadamardResponseServer(epsilon, k)
        client = HadamardResponseClient(epsilon, k, server.get_hash_funcs())
    elif mechanism == "short":
        client, server = LHClient(epsilon, k, use_olh=True), LHServer(epsilon, k, use_olh=True)
    else:
        optimised = mechanism == "oue"
        client, server = UEClient(epsilon, k, use_oue=optimised), UEServer(epsilon, k, use_oue=optimised)
    for value in values.tolist():
        server.aggregate(client.privatise(value + 1))
    found = server.estimate_all(range(1, k + 1), suppress_warnings=True, normalization=2)
    return np.asarray(found) / len(values), (epsilon, 0.0)
