"""Shares: any `least` of them give the secret back, and fewer fit every secret equally well."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from tacit.errors import ParameterError, RefusalError
from tacit.federation.masking.shamir import (
    DRAW_BYTES,
    FIELD,
    SECRET_BYTES,
    SHARE_BYTES,
    Interpolation,
    deal,
    share_from_bytes,
)


def draws(count: int, seed: int = 0) -> bytes:
    return np.random.default_rng(seed).bytes(DRAW_BYTES * count)


def is_prime(number: int) -> bool:
    """Miller-Rabin to 40 fixed bases: a composite passes each of them with probability below 1/4."""
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for base in (int.from_bytes(np.random.default_rng(k).bytes(31)) for k in range(40)):
        power = pow(base, odd, number)
        if power in (1, number - 1):
            continue
        for _ in range(twos - 1):
            power = power * power % number
            if power == number - 1:
                break
        else:
            return False
    return True


def test_the_field_is_the_least_prime_above_all_keys() -> None:
    assert FIELD == 2**256 + 297
    assert is_prime(FIELD)
    assert not any(is_prime(2**256 + k) for k in range(1, 297, 2))


def test_shares_are_values_of_one_polynomial_of_the_degree() -> None:
    coefficients = b"".join(k.to_bytes(DRAW_BYTES) for k in (5, 7))
    secret = (11).to_bytes(SECRET_BYTES)
    assert deal(secret, least=3, parties=4, randomness=coefficients) == (23, 49, 89, 143)  # 11 + 5 x + 7 x^2
    wide = b"".join(k.to_bytes(DRAW_BYTES) for k in (FIELD * 9 + 5, 7))
    assert deal(secret, least=3, parties=4, randomness=wide) == (23, 49, 89, 143)


@pytest.mark.parametrize(("parties", "least"), [(2, 1), (2, 2), (4, 3), (6, 4), (7, 7)])
def test_every_set_of_least_parties_gives_the_secret_back(parties: int, least: int) -> None:
    for seed, secret in enumerate((bytes(32), b"\xff" * 32, np.random.default_rng(9).bytes(32))):
        shares = deal(secret, least=least, parties=parties, randomness=draws(least - 1, seed))
        assert all(0 <= share < FIELD for share in shares)
        for chosen in combinations(range(parties), least):
            assert Interpolation(chosen).secret([shares[k] for k in chosen]) == secret
            backwards = Interpolation(chosen[::-1])
            assert backwards.secret([shares[k] for k in chosen[::-1]]) == secret


def test_fewer_shares_fit_every_secret() -> None:
    """For each secret there is one polynomial through it and the `least - 1` shares that colluders hold."""
    shares = deal(b"\1" * 32, least=3, parties=5, randomness=draws(2))
    held = {1: shares[0], 4: shares[3]}
    for other in (0, 1, FIELD - 1, int.from_bytes(b"\2" * 32)):
        # Solve x a + x^2 b = share - other at both places, and deal the other secret with a and b.
        left = {x: (share - other) * pow(x, -1, FIELD) % FIELD for x, share in held.items()}
        b = (left[4] - left[1]) * pow(3, -1, FIELD) % FIELD
        a = (left[1] - b) % FIELD
        assert {x: (other + a * x + b * x * x) % FIELD for x in held} == held
        if other < 2**256:
            randomness = b"".join(k.to_bytes(DRAW_BYTES) for k in (a, b))
            dealt = deal(other.to_bytes(32), least=3, parties=5, randomness=randomness)
            assert (dealt[0], dealt[3]) == (shares[0], shares[3])
            assert dealt[1] != shares[1]


def test_two_hundred_parties() -> None:
    secret = np.random.default_rng(1).bytes(32)
    shares = deal(secret, least=134, parties=200, randomness=draws(133))
    chosen = [int(k) for k in np.random.default_rng(2).permutation(200)[:134]]
    assert Interpolation(chosen).secret([shares[k] for k in chosen]) == secret
    changed = [shares[k] + (k == chosen[7]) for k in chosen]
    assert Interpolation(chosen).secret(changed) != secret


def test_what_no_key_is_gives_nothing_back() -> None:
    assert Interpolation([0]).secret([2**256]) is None
    assert Interpolation([0]).secret([2**256 - 1]) == b"\xff" * 32


def test_a_share_has_one_form() -> None:
    assert share_from_bytes((FIELD - 1).to_bytes(SHARE_BYTES)) == FIELD - 1
    for data in (FIELD.to_bytes(SHARE_BYTES), b"\xff" * SHARE_BYTES, bytes(32), bytes(34), b""):
        with pytest.raises(RefusalError, match="a share must be a number below"):
            share_from_bytes(data)


def test_bad_arguments() -> None:
    with pytest.raises(ParameterError, match="a secret must have 32 bytes, got 31"):
        deal(bytes(31), least=1, parties=2, randomness=b"")
    with pytest.raises(ParameterError, match="least"):
        deal(bytes(32), least=3, parties=2, randomness=draws(2))
    with pytest.raises(ParameterError, match="randomness must have 128 bytes"):
        deal(bytes(32), least=3, parties=4, randomness=draws(1))
    for parties in ([], [1, 1], [-1, 2]):
        with pytest.raises(ParameterError, match="parties must be different indices"):
            Interpolation(parties)
    with pytest.raises(ParameterError, match="shares must be 2"):
        Interpolation([0, 1]).secret([1])
