"""Certificates for TLS: an authority of the federation's own, and what it issues to server and shuffler.

Silos trust this authority only, so that no public one can issue a certificate that passes for the server's.
Extensions are those that strict verification asks for (RFC 5280, section 4.2; `ssl.VERIFY_X509_STRICT`).
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import os
import re
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tacit.errors import AuthenticationError, ParameterError, check_count, check_text, shown
from tacit.federation.network.keys import read_private, write_private

__all__ = ["Credential", "check_certificate", "client_context", "make_authority", "server_context"]

_SKEW: Final = dt.timedelta(hours=1)
"""How far back a new certificate is valid: clocks differ."""
_MOST_DAYS: Final = 36_500
_LONGEST_COMMON_NAME: Final = 64  # RFC 5280, ub-common-name
_LABEL: Final = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)")
_LONGEST_HOST: Final = 253
_LONGEST_FILE: Final = 2**20


@dataclass(frozen=True)
class Credential:
    """A certificate with its private key; `make_authority` makes the first, and its `issue` the others.

    Attributes:
        certificate: What everybody may see.
        key: On the curve P-256.
    """

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    def issue(self, hosts: Sequence[str], *, now: dt.datetime, days: int = 397) -> Credential:
        """Return a certificate for a service, signed by this authority, with a new key.

        Args:
            hosts: Names and IP addresses by which the service is reached.
            now: The time, with its zone.
            days: How long it is valid, at most as long as the authority.

        Raises:
            ParameterError: No host, one that is neither a name nor an address, or too many days.
            AuthenticationError: The authority is not valid at this time.
        """
        ends = _checked_ends(now, days)
        check_count("the number of hosts", len(hosts), high=100)
        names = [_host(host) for host in hosts]
        _check_dates("the authority", self.certificate, now)
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            _builder(hosts[0], key, now, min(ends, self.certificate.not_valid_after_utc))
            .issuer_name(self.certificate.subject)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False
            )
            .sign(self.key, hashes.SHA256())
        )
        return Credential(certificate, key)

    def save(self, certificate: Path | str, key: Path | str) -> None:
        """Write both as PEM to new files, the key first, which only its owner can read.

        Raises:
            ParameterError: One of them is there already, or cannot be written.
        """
        if Path(certificate).exists():
            raise ParameterError(f"{certificate} is there already, and is never overwritten.")
        write_private(key, self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        write_private(certificate, self.certificate.public_bytes(Encoding.PEM))
        os.chmod(certificate, 0o644)  # everybody may read what everybody is shown

    @classmethod
    def load(cls, certificate: Path | str, key: Path | str) -> Self:
        """Read what `save` wrote.

        Raises:
            ParameterError: A file cannot be read, or is none of a certificate or a key of this kind.
            AuthenticationError: Others can read the key, or it is not that of the certificate.
        """
        read = _read(certificate)
        try:
            private = load_pem_private_key(read_private(key), password=None)
        except ParameterError:
            raise
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise ParameterError(
                f"{key} must hold a private key as PEM (PKCS8), without a password."
            ) from None
        if not isinstance(private, ec.EllipticCurvePrivateKey):
            raise ParameterError(f"{key} must hold a key of an elliptic curve, as certificates here have.")
        if private.public_key() != read.public_key():
            raise AuthenticationError(f"the key {key} is not that of the certificate {certificate}.")
        return cls(read, private)


def make_authority(name: str, *, now: dt.datetime, days: int = 3650) -> Credential:
    """Return a new authority, which can issue certificates of services and none of other authorities.

    Args:
        name: Of the federation.
        now: The time, with its zone.
        days: How long it is valid.

    Raises:
        ParameterError: A value that is not allowed.
    """
    check_text("name", name, low=1, high=_LONGEST_COMMON_NAME)
    ends = _checked_ends(now, days)
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(name, key, now, ends)
    certificate = (
        builder.issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Credential(certificate, key)


def check_certificate(path: Path | str, *, now: dt.datetime) -> dt.datetime:
    """Return until when a certificate is valid.

    Raises:
        ParameterError: The file cannot be read, or holds no certificate.
        AuthenticationError: It has expired, or is not valid yet.
    """
    certificate = _read(path)
    _check_dates(f"the certificate {path}", certificate, now)
    return certificate.not_valid_after_utc


def client_context(authority: Path | str) -> ssl.SSLContext:
    """Return how to reach a service whose certificate this authority issued, and no other.

    Raises:
        ParameterError: The file cannot be read, or holds no certificate.
    """
    text = _read(authority).public_bytes(Encoding.PEM).decode()
    context = ssl.create_default_context(cadata=text)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    return context


def server_context(certificate: Path | str, key: Path | str) -> ssl.SSLContext:
    """Return how a service shows its certificate; errors as `Credential.load`."""
    Credential.load(certificate, key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(certificate, key)
    return context


def _builder(
    name: str, key: ec.EllipticCurvePrivateKey, now: dt.datetime, ends: dt.datetime
) -> x509.CertificateBuilder:
    """Return what all certificates have."""
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:_LONGEST_COMMON_NAME])]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(ends)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    """Return what a key is for: to sign certificates, or to be shown in a handshake."""
    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _host(host: str) -> x509.GeneralName:
    """Return a host as a certificate names it."""
    check_text("host", host, low=1, high=_LONGEST_HOST)
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    # A name of digits and dots is an address with a mistake in it.
    if all(_LABEL.fullmatch(label) for label in host.split(".")) and not host.replace(".", "").isdigit():
        return x509.DNSName(host)
    raise ParameterError(
        f"host must be a name such as server.example.org or an IP address, without a port, got {shown(host)}."
    )


def _checked_ends(now: dt.datetime, days: int) -> dt.datetime:
    """Return when a new certificate expires."""
    if now.tzinfo is None:
        raise ParameterError(f"now must be a time with its zone, got {now.isoformat()}.")
    return now + dt.timedelta(days=check_count("days", days, high=_MOST_DAYS))


def _check_dates(what: str, certificate: x509.Certificate, now: dt.datetime) -> None:
    """Refuse a certificate outside of its time."""
    if now > certificate.not_valid_after_utc:
        ended = f"{certificate.not_valid_after_utc:%Y-%m-%d %H:%M} UTC"
        raise AuthenticationError(f"{what} has expired on {ended}: have a new one issued.")
    if now < certificate.not_valid_before_utc:
        begins = f"{certificate.not_valid_before_utc:%Y-%m-%d %H:%M} UTC"
        raise AuthenticationError(f"{what} is valid from {begins} on: is the clock of this machine right?")


def _read(path: Path | str) -> x509.Certificate:
    """Return the certificate in a file."""
    try:
        with Path(path).open("rb") as file:
            return x509.load_pem_x509_certificate(file.read(_LONGEST_FILE))
    except OSError as error:
        raise ParameterError(f"the certificate {path} cannot be read: {error.strerror}.") from error
    except ValueError:
        raise ParameterError(f"{path} must hold a certificate as PEM.") from None
