"""Certificates: TLS works by them, with the federation's own authority and no other, until they expire."""

from __future__ import annotations

import datetime as dt
import ssl
import stat
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from tacit.errors import AuthenticationError, ParameterError
from tacit.federation.network.certificates import (
    Credential,
    ServiceKey,
    check_certificate,
    client_context,
    make_authority,
    save_certificate,
    server_context,
)
from tacit.federation.network.keys import SigningKey

NOW = dt.datetime.now(dt.UTC)  # OpenSSL compares with the clock of the machine
DAY = dt.timedelta(days=1)


def saved(folder: Path, credential: Credential, name: str) -> tuple[Path, Path]:
    paths = folder / f"{name}.pem", folder / f"{name}.key"
    credential.save(*paths)
    return paths


def shake_hands(client: ssl.SSLContext, server: ssl.SSLContext, host: str) -> None:
    """Run a whole handshake in memory; raises what the client finds wrong."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends: list[Any] = [
        client.wrap_bio(to_client, to_server, server_hostname=host),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    waiting = list(ends)
    for _ in range(10):
        for end in list(waiting):
            try:
                end.do_handshake()
                waiting.remove(end)
            except ssl.SSLWantReadError:
                continue
    assert not waiting


@pytest.mark.parametrize("host", ["server.example.org", "localhost", "127.0.0.1", "::1"])
def test_a_handshake_works_under_every_name_of_a_service(tmp_path: Path, host: str) -> None:
    authority = make_authority("lab", now=NOW)
    ca, _ = saved(tmp_path, authority, "ca")
    service = authority.issue(["server.example.org", "localhost", "127.0.0.1", "::1"], now=NOW)
    shake_hands(client_context(ca), server_context(*saved(tmp_path, service, "server")), host)


def test_a_handshake_fails_for_another_name_authority_or_time(tmp_path: Path) -> None:
    authority, other = make_authority("lab", now=NOW), make_authority("lab", now=NOW)
    ca, _ = saved(tmp_path, authority, "ca")
    strange, _ = saved(tmp_path, other, "strange")
    service = server_context(*saved(tmp_path, authority.issue(["localhost"], now=NOW), "server"))
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        shake_hands(client_context(ca), service, "127.0.0.1")
    with pytest.raises(ssl.SSLCertVerificationError, match="verify failed"):
        shake_hands(client_context(strange), service, "localhost")
    past = make_authority("lab", now=NOW - 9 * DAY)
    old_ca, _ = saved(tmp_path, past, "past")
    old = server_context(*saved(tmp_path, past.issue(["localhost"], now=NOW - 9 * DAY, days=2), "old"))
    with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
        shake_hands(client_context(old_ca), old, "localhost")


def test_a_service_cannot_issue_certificates(tmp_path: Path) -> None:
    authority = make_authority("lab", now=NOW)
    ca, _ = saved(tmp_path, authority, "ca")
    service = authority.issue(["localhost"], now=NOW)
    forged = service.issue(["localhost"], now=NOW)
    paths = saved(tmp_path, forged, "forged")
    with paths[0].open("ab") as chain:
        chain.write((saved(tmp_path, service, "server")[0]).read_bytes())
    with pytest.raises(ssl.SSLCertVerificationError, match="verify failed"):
        shake_hands(client_context(ca), server_context(*paths), "localhost")


def test_what_stands_in_a_certificate() -> None:
    authority = make_authority("lab", now=NOW, days=30)
    usage = authority.certificate.extensions.get_extension_for_class(x509.KeyUsage)
    assert usage.critical
    assert usage.value.key_cert_sign
    service = authority.issue(["a.org", "10.0.0.1"], now=NOW, days=365)
    names = service.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["a.org"]
    assert [str(one) for one in names.get_values_for_type(x509.IPAddress)] == ["10.0.0.1"]
    # Not longer than the authority itself.
    assert service.certificate.not_valid_after_utc == authority.certificate.not_valid_after_utc


def test_files_are_read_back_and_never_overwritten(tmp_path: Path) -> None:
    authority = make_authority("lab", now=NOW)
    paths = saved(tmp_path, authority, "ca")
    assert [stat.S_IMODE(path.stat().st_mode) for path in paths] == [0o644, 0o600]
    back = Credential.load(*paths)
    assert back.certificate == authority.certificate
    assert back.issue(["localhost"], now=NOW).certificate.issuer == authority.certificate.subject
    before = [path.read_bytes() for path in paths]
    for changed in (paths, (tmp_path / "new.pem", paths[1]), (paths[0], tmp_path / "new.key")):
        with pytest.raises(ParameterError, match="is there already, and is never overwritten"):
            authority.save(*changed)
    assert [path.read_bytes() for path in paths] == before
    assert len(list(tmp_path.iterdir())) == 2


def test_expiry_is_said_with_its_date(tmp_path: Path) -> None:
    now = dt.datetime(2026, 6, 1, 12, tzinfo=dt.UTC)
    path, _ = saved(tmp_path, make_authority("lab", now=now, days=2), "ca")
    assert check_certificate(path, now=now) == now + 2 * DAY
    with pytest.raises(AuthenticationError, match=r"ca.pem has expired on 2026-06-03 12:00 UTC: have a new"):
        check_certificate(path, now=now + 3 * DAY)
    with pytest.raises(
        AuthenticationError, match=r"ca.pem is valid from 2026-06-01 11:00 UTC on: is the clock"
    ):
        check_certificate(path, now=now - DAY)
    authority = make_authority("lab", now=now, days=2)
    with pytest.raises(AuthenticationError, match="the authority has expired on"):
        authority.issue(["localhost"], now=now + 3 * DAY)


def test_a_key_of_another_certificate_or_that_others_can_read_is_refused(tmp_path: Path) -> None:
    one = saved(tmp_path, make_authority("lab", now=NOW), "one")
    two = saved(tmp_path, make_authority("lab", now=NOW), "two")
    with pytest.raises(
        AuthenticationError, match=r"the key .*two.key is not that of the certificate .*one.pem"
    ):
        server_context(one[0], two[1])
    one[1].chmod(0o640)
    with pytest.raises(AuthenticationError, match="chmod 600"):
        Credential.load(*one)
    SigningKey.make().save(tmp_path / "sign.key")
    with pytest.raises(ParameterError, match="must hold a key of an elliptic curve"):
        Credential.load(two[0], tmp_path / "sign.key")
    (tmp_path / "no.key").write_text("no key")
    (tmp_path / "no.key").chmod(0o600)
    with pytest.raises(ParameterError, match=r"no.key must hold a private key as PEM \(PKCS8\), without"):
        Credential.load(two[0], tmp_path / "no.key")


def test_files_that_hold_no_certificate_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"none.pem cannot be read: No such file or directory"):
        check_certificate(tmp_path / "none.pem", now=NOW)
    (tmp_path / "a.pem").write_text("hello")
    with pytest.raises(ParameterError, match=r"a.pem must hold a certificate as PEM"):
        client_context(tmp_path / "a.pem")


@pytest.mark.parametrize(
    ("hosts", "why"),
    [
        ([], "the number of hosts must be a whole number from 1 to 100, got 0"),
        ([""], "host must be a printable text of 1 to 253 characters"),
        (["a b"], "host must be a name such as"),
        (["*.example.org"], "host must be a name such as"),
        (["localhost:8443"], "without a port, got 'localhost:8443'"),
        (["https://localhost"], "host must be a name such as"),
        (["300.1.1.1"], "host must be a name such as"),
        (["-a.org"], "host must be a name such as"),
        (["bücher.org"], "host must be a name such as"),
    ],
)
def test_a_host_that_is_none_is_refused(hosts: list[str], why: str) -> None:
    with pytest.raises(ParameterError, match=why):
        make_authority("lab", now=NOW).issue(hosts, now=NOW)


def test_other_bad_arguments() -> None:
    with pytest.raises(ParameterError, match="days must be a whole number from 1 to 36500, got 0"):
        make_authority("lab", now=NOW, days=0)
    with pytest.raises(ParameterError, match="name must be a printable text of 1 to 64 characters"):
        make_authority("x" * 65, now=NOW)
    with pytest.raises(ParameterError, match="now must be a time with its zone"):
        make_authority("lab", now=NOW.replace(tzinfo=None))


def test_a_service_that_made_its_own_key_is_certified_and_renewed(tmp_path: Path) -> None:
    """Its private key is never at the authority; a renewed certificate goes with the same key and hosts."""
    authority = make_authority("lab", now=NOW - 9 * DAY)
    ca, _ = saved(tmp_path, authority, "ca")
    key = ServiceKey.make()
    key.save(tmp_path / "tls.key")
    hosts = ["server.example.org", "127.0.0.1"]
    save_certificate(tmp_path / "1.pem", authority.certify(key.public, hosts, now=NOW - 9 * DAY, days=2))
    assert stat.S_IMODE((tmp_path / "1.pem").stat().st_mode) == 0o644
    assert stat.S_IMODE((tmp_path / "tls.key").stat().st_mode) == 0o600
    with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
        shake_hands(client_context(ca), server_context(tmp_path / "1.pem", tmp_path / "tls.key"), hosts[0])
    save_certificate(tmp_path / "2.pem", authority.renew(tmp_path / "1.pem", now=NOW, days=30))
    assert check_certificate(tmp_path / "2.pem", now=NOW).date() == (NOW + 30 * DAY).date()
    for host in hosts:
        shake_hands(client_context(ca), server_context(tmp_path / "2.pem", tmp_path / "tls.key"), host)
    with pytest.raises(ParameterError, match="never overwritten"):
        save_certificate(tmp_path / "2.pem", authority.renew(tmp_path / "1.pem", now=NOW))


def test_what_no_authority_certifies_or_renews(tmp_path: Path) -> None:
    authority, other = make_authority("lab", now=NOW), make_authority("lab", now=NOW)
    ca, _ = saved(tmp_path, authority, "ca")
    strange, _ = saved(tmp_path, other.issue(["localhost"], now=NOW), "strange")
    with pytest.raises(AuthenticationError, match="was not issued by this authority"):
        authority.renew(strange, now=NOW)
    with pytest.raises(ParameterError, match="must be the certificate of a service"):
        authority.renew(ca, now=NOW)
    with pytest.raises(ParameterError, match="public must be the base64 of a compressed point"):
        authority.certify("AAAA", ["localhost"], now=NOW)
    with pytest.raises(ParameterError, match="host must be"):
        authority.certify(ServiceKey.make().public, ["a b"], now=NOW)
    with pytest.raises(AuthenticationError, match="the authority has expired"):
        other.renew(strange, now=NOW + 4000 * DAY)
