"""What a shuffler that cannot read costs: sealing, uploads over TLS on loopback, and sums instead of bits."""

from __future__ import annotations

import datetime as dt
import math
import multiprocessing
import resource
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import msgspec
import numpy as np
import uvicorn

from benchmarks.case import Case, best_seconds
from tacit.federation import Measure, Plan, Query, Step, with_honest
from tacit.federation.answers import digest_of_run, encode_answer
from tacit.federation.network.certificates import client_context, make_authority
from tacit.federation.network.descriptor import RoundOrder, RunOrder, SignedDescriptor, about_upload
from tacit.federation.network.keys import OpeningKey, SigningKey
from tacit.federation.network.parcels import ParcelForm, make_parcel, parcel_form
from tacit.federation.network.roster import Roster, ServerEntry, ShufflerEntry, SiloEntry
from tacit.federation.network.sealing import SEALED_OVERHEAD, open_sealed, seal_padded
from tacit.federation.network.shuffler_app import packed, shuffler_config
from tacit.federation.network.shuffler_client import LocalShuffler, RemoteShuffler, ShufflerDoor
from tacit.federation.network.shuffling import Shuffling
from tacit.means import BinomialMean, Estimator, Round, ShuffledGaussianMean
from tacit.privacy import TrustModel

MESSAGE = 200
REPORTS = ShuffledGaussianMean(dim=37, noise_multiplier=2.0)
"""Whose sealed messages have 198 bytes: 37 numbers of 32 bits, the number of a slot, what sealing adds."""
SUMS = BinomialMean(dim=785, noise_bits=11, resolution=29)
ROWS = 320
QUERY = Query(0, {"w": np.zeros(1)}, (1.0,))
START_SECONDS = 30.0


class Lab:
    """A federation of silos of one size, with all keys in one place."""

    def __init__(self, silos: int, rows: int, mean: Estimator, folder: Path) -> None:
        self.folder = folder
        self.server, self.opening, self.shuffler = SigningKey.make(), OpeningKey.make(), SigningKey.make()
        self.keys = {f"silo-{k}": SigningKey.make() for k in range(silos)}
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        now = dt.datetime.now(dt.UTC)
        authority = make_authority("bench", now=now)
        authority.save(folder / "ca.pem", folder / "ca.key")
        authority.issue(["127.0.0.1"], now=now).save(folder / "shuffler.pem", folder / "shuffler.tls")
        self.shuffler.save(folder / "shuffler.key")
        self.roster = Roster(
            federation="bench",
            server=ServerEntry(
                verify=self.server.public.to_text(),
                seal=self.opening.public.to_text(),
                url="https://127.0.0.1",
            ),
            shuffler=ShufflerEntry(verify=self.shuffler.public.to_text(), url="https://127.0.0.1"),
            silos=tuple(
                SiloEntry(name=name, size=rows, verify=key.public.to_text())
                for name, key in self.keys.items()
            ),
        )
        self.roster.save(folder / "roster.toml")
        self.step = Step(measures=(Measure(statistic="row", estimator=mean, max_radius=1.0),))
        kinds = with_honest(((self.step, 8),), (rows,) * silos, n_min=silos, colluding=0)
        self.plan = Plan(steps=kinds, parties=silos, trust=TrustModel.SHUFFLE, delta=1e-6, n_min=silos)
        self.form = parcel_form(self.step, rows)

    def open(self, door: ShufflerDoor, step: int) -> SignedDescriptor:
        """Open a round of all silos."""
        silos = range(len(self.keys))
        door.open_run(RunOrder(plan=self.plan.to_toml(), run="run"), key=self.server, deadline=START_SECONDS)
        order = RoundOrder(
            run=digest_of_run(self.plan, "run"),
            step=step,
            query=QUERY.digest(),
            parties=tuple(silos),
            accounts=(None,) * len(silos),
            seconds=600.0,
        )
        return door.open_round(order, key=self.server)


def serve(folder: str, port: int) -> None:
    """Run a shuffler in a process of its own, as it is deployed."""
    at = Path(folder)
    shuffling = Shuffling(
        at / "memory" / "shuffler.sqlite",
        roster=Roster.load(at / "roster.toml"),
        key=SigningKey.load(at / "shuffler.key"),
    )
    config = shuffler_config(
        shuffling,
        host="127.0.0.1",
        port=port,
        certificate=str(at / "shuffler.pem"),
        key=str(at / "shuffler.tls"),
    )
    uvicorn.Server(config).run()


@contextmanager
def running(silos: int, rows: int, mean: Estimator) -> Iterator[tuple[Lab, RemoteShuffler, httpx.Client]]:
    """A shuffler on loopback, with a client that believes the federation's authority only."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o700)
        lab = Lab(silos, rows, mean, folder)
        process = multiprocessing.get_context("spawn").Process(target=serve, args=(name, lab.port))
        process.start()
        try:
            url = f"https://127.0.0.1:{lab.port}"
            with httpx.Client(
                base_url=url, verify=client_context(folder / "ca.pem"), trust_env=False, timeout=60.0
            ) as client:
                yield lab, RemoteShuffler(url, client=client), client
        finally:
            process.terminate()
            process.join(20)
            if process.is_alive():
                process.kill()
                process.join()


def _parcel(form: ParcelForm, rng: np.random.Generator) -> bytes:
    """A parcel that nobody will open: the shuffler cannot tell."""
    return rng.bytes(form.size)


def _sealing(smoke: bool) -> dict[str, float]:
    count, key, info = (50 if smoke else 4000), OpeningKey.make(), bytes(32)
    length = MESSAGE - SEALED_OVERHEAD
    plain = bytes(length)
    sealed = [seal_padded(plain, length=length, key=key.public, info=info) for _ in range(count)]
    repeats = 1 if smoke else 3
    sealing = best_seconds(
        lambda: [seal_padded(plain, length=length, key=key.public, info=info) for _ in range(count)], repeats
    )
    opening = best_seconds(lambda: [open_sealed(one, key=key, info=info) for one in sealed], repeats)
    party = SigningKey.make()
    signature = party.sign("upload", b"".join(sealed[:1]))
    signing = best_seconds(lambda: [party.sign("upload", sealed[0]) for _ in range(count)], repeats)
    verifying = best_seconds(
        lambda: [party.public.verify("upload", sealed[0], signature) for _ in range(count)], repeats
    )
    return {
        "sealed_per_second": count / sealing,
        "opened_per_second": count / opening,
        "signed_per_second": count / signing,
        "verified_per_second": count / verifying,
    }


def _batched(smoke: bool) -> dict[str, float]:
    """A thousand messages an upload; then also many parcels of one message in one request."""
    silos, rows, rounds = (4, 10, 1) if smoke else (20, 1000, 4)
    rng, best, fetch = np.random.default_rng(0), math.inf, math.inf
    with running(silos, rows, REPORTS) as (lab, door, _):
        form = lab.form
        for step in range(rounds):
            signed = lab.open(door, step)
            parcels = {name: _parcel(form, rng) for name in lab.keys}
            start = time.perf_counter()
            for name, parcel in parcels.items():
                door.upload(signed.round_id, parcel, silo=name, key=lab.keys[name])
            best = min(best, time.perf_counter() - start)
            start = time.perf_counter()
            door.batch(signed.round_id, key=lab.server, deadline=60)
            fetch = min(fetch, time.perf_counter() - start)
    return {
        "message_bytes": form.blob_bytes,
        "messages_per_upload": rows,
        "messages_per_second": silos * rows / best,
        "fetched_per_second": silos * rows / fetch,
    }


def _alone(smoke: bool) -> dict[str, float]:
    """One message of one party a request, beside requests that ask for nothing; then all of them in one."""
    silos, rounds, few = (8, 2, 4) if smoke else (1000, 4, 100)
    rng, best, nothing, together = np.random.default_rng(0), math.inf, math.inf, math.inf
    with running(silos, 1, REPORTS) as (lab, door, client):
        for step in range(rounds):
            signed = lab.open(door, step)
            parcels = {name: _parcel(lab.form, rng) for name in lab.keys}
            if step % 2:
                signatures = {
                    name: key.sign("upload", about_upload(signed.round_id, parcels[name]))
                    for name, key in lab.keys.items()
                }
                start = time.perf_counter()
                body = packed((name, signatures[name], parcel) for name, parcel in parcels.items())
                reply = client.post(f"/rounds/{signed.round_id}/parcels", content=body)
                together = min(together, time.perf_counter() - start)
                if reply.json()["taken"] != silos:
                    raise RuntimeError(reply.text)
            else:
                names = list(lab.keys)
                for at in range(0, silos, few):  # in turn: what else the machine does slows down both
                    start = time.perf_counter()
                    for name in names[at : at + few]:
                        door.upload(signed.round_id, parcels[name], silo=name, key=lab.keys[name])
                    middle = time.perf_counter()
                    for _ in range(few):
                        client.get("/health")
                    best = min(best, middle - start)
                    nothing = min(nothing, time.perf_counter() - middle)
            door.batch(signed.round_id, key=lab.server, deadline=60)
    return {
        "message_bytes": lab.form.blob_bytes,
        "one_by_one_per_second": few / best,
        "empty_per_second": few / nothing,
        "ratio": nothing / best,
        "relayed_per_second": silos / together,
    }


def _lanes(smoke: bool) -> dict[str, float]:
    """One answer of a silo to a binomial sum: masked, beside what its bits would take one by one."""
    mean, rows, repeats = (msgspec.structs.replace(SUMS, dim=20), 4, 1) if smoke else (SUMS, ROWS, 3)
    rng, key, bound = np.random.default_rng(0), OpeningKey.make(), bytes(15) + b"1"
    sent = mean.encode(np.zeros((rows, mean.dim)), Round(n=rows, radius=1.0), party=0, rng=rng)
    answer = encode_answer((tuple(message.to_bytes() for message in sent),), bound)
    step = Step(measures=(Measure(statistic="row", estimator=mean, max_radius=1.0),), honest=rows)
    form = parcel_form(step, rows)
    masking = best_seconds(
        lambda: make_parcel(answer, form=form, party=0, bound=bound, info=bytes(32), key=key.public), repeats
    )
    length, count = 3, (50 if smoke else 2000)
    one = best_seconds(
        lambda: [seal_padded(b"\0\0\1", length=length, key=key.public, info=bytes(32)) for _ in range(count)],
        repeats,
    )
    bits = mean.dim * sum(form.symbols)
    return {
        "bits": bits,
        "masked_seconds": masking,
        "masked_bytes": form.size,
        "sealed_seconds": bits * one / count,
        "sealed_bytes": bits * (length + SEALED_OVERHEAD),
        "ratio_seconds": bits * one / count / masking,
        "ratio_bytes": bits * (length + SEALED_OVERHEAD) / form.size,
    }


def _mixing(smoke: bool) -> dict[str, float]:
    """A round in this process, from the last parcel to the batch on disk."""
    silos, rows = (4, 10) if smoke else (20, 10_000)
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name:
        lab = Lab(silos, rows, REPORTS, Path(name))
        shuffling = Shuffling(Path(name) / "m" / "s", roster=lab.roster, key=lab.shuffler)
        signed = lab.open(LocalShuffler(shuffling), 0)
        taking = 0.0
        for one, key in lab.keys.items():
            parcel = bytearray(_parcel(lab.form, rng))
            signature = key.sign("upload", about_upload(signed.round_id, parcel))
            start = time.perf_counter()
            shuffling.take(signed.round_id, one, parcel, signature)
            taking += time.perf_counter() - start
        start = time.perf_counter()
        shuffling.settle()
        mixing = time.perf_counter() - start
        shuffling.close()
    return {
        "messages": silos * rows,
        "taken_per_second": silos * rows / taking,
        "mixed_seconds": mixing,
        "mixed_per_second": silos * rows / mixing,
        "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


CASES = (
    Case(
        "sealed/one-core",
        "messages of 200 bytes that a silo seals and the server opens, of 48 bytes sealing each",
        _sealing,
        lambda m: (
            f"{m['sealed_per_second']:,.0f} sealed, {m['opened_per_second']:,.0f} opened; "
            f"{m['signed_per_second']:,.0f} signed, {m['verified_per_second']:,.0f} verified a second"
        ),
    ),
    Case(
        "sealed/batched-upload",
        "a shuffler behind TLS takes at least 50,000 messages of 200 bytes a second in batched uploads",
        _batched,
        lambda m: (
            f"{m['messages_per_second']:,.0f} messages of {m['message_bytes']:.0f} bytes a second, "
            f"{m['messages_per_upload']:,.0f} an upload; "
            f"fetched mixed at {m['fetched_per_second']:,.0f} a second"
        ),
    ),
    Case(
        "sealed/one-by-one",
        "and at least 800 a second of as many parties, one by one",
        _alone,
        lambda m: (
            f"{m['one_by_one_per_second']:,.0f} a second one by one ({m['ratio']:.2f} x as many as requests "
            f"that ask for nothing), {m['relayed_per_second']:,.0f} where a relay brings all in one request, "
            f"each signed by its party"
        ),
    ),
    Case(
        "sealed/mixing",
        "the pack is mixed and on disk in a few seconds",
        _mixing,
        lambda m: (
            f"{m['messages']:,.0f} messages: {m['taken_per_second']:,.0f} taken a second, mixed and stored "
            f"in {m['mixed_seconds']:.2f} s; {m['peak_megabytes']:.0f} MB at most"
        ),
    ),
    Case(
        "sealed/sum-lane",
        "masked sums cost next to nothing beside bits that are sealed one by one",
        _lanes,
        lambda m: (
            f"{m['bits']:,.0f} bits of a silo: {1e3 * m['masked_seconds']:.2f} ms and "
            f"{m['masked_bytes'] / 1e3:.1f} kB masked; sealed one by one they would take "
            f"{m['sealed_seconds']:,.0f} s and {m['sealed_bytes'] / 1e6:,.0f} MB: "
            f"{m['ratio_seconds']:,.0f} x and {m['ratio_bytes']:,.0f} x"
        ),
    ),
)
