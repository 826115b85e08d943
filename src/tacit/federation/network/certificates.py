"""Certificates for TLS: an authority of the federation's own, and what it issues to server and shuffler.

Silos trust this authority only, so that no public one can issue a certificate that passes for the server's.
Extensions are those that strict verification asks for (RFC 5280, section 4.2; `ssl.VERIFY_X509_STRICT`).
"""

from __future__ import annotations

import base64
import binascii
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
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tacit.errors import AuthenticationError, ParameterError, check_count, check_text, shown
from tacit.federation.network.keys import read_private
from tacit.federation.public_texts import save_new

__all__ = [
    "Credential",
    "ServiceKey",
    "check_certificate",
    "client_context",
    "make_authority",
    "save_certificate",
    "server_context",
]

_SKEW: Final = dt.timedelta(hours=1)
"""How far back a new certificate is valid: clocks differ."""
_MOST_DAYS: Final = 36_500
_LONGEST_COMMON_NAME: Final = 64  # RFC 5280, ub-common-name
_LABEL: Final = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)")
_LONGEST_HOST: Final = 253
_LONGEST_FILE: Final = 2**20
_POINT_BYTES: Final = 33


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
        key = ServiceKey.make()
        return Credential(self.certify(key.public, hosts, now=now, days=days), key.key)

    def certify(
        self, public: str, hosts: Sequence[str], *, now: dt.datetime, days: int = 397
    ) -> x509.Certificate:
        """Return a certificate for a service that has made its own key.

        Args:
            public: Of the service, as `ServiceKey.public`.
            hosts: Names and IP addresses by which it is reached.
            now: The time, with its zone.
            days: How long it is valid, at most as long as the authority.

        Raises:
            ParameterError: No such key, or as `issue`.
            AuthenticationError: The authority is not valid at this time.
        """
        key = _public_key("public", public)
        ends = _checked_ends(now, days)
        check_count("the number of hosts", len(hosts), high=100)
        names = [_host(host) for host in hosts]
        return self._issued(key, hosts[0], x509.SubjectAlternativeName(names), now, ends)

    def renew(self, path: Path | str, *, now: dt.datetime, days: int = 397) -> x509.Certificate:
        """Return a certificate in the place of one that this authority issued: for the same key and hosts.

        Args:
            path: Of the old one, expired or not.
            now: The time, with its zone.
            days: How long the new one is valid, at most as long as the authority.

        Raises:
            ParameterError: The file cannot be read, is no certificate of a service, or days are too many.
            AuthenticationError: Another authority issued it, or this one is not valid at this time.
        """
        old = _read(path)
        try:
            old.verify_directly_issued_by(self.certificate)
        except (ValueError, TypeError, InvalidSignature):
            raise AuthenticationError(f"the certificate {path} was not issued by this authority.") from None
        key = old.public_key()
        try:
            hosts = old.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except x509.ExtensionNotFound:
            hosts = None
        if hosts is None or not isinstance(key, ec.EllipticCurvePublicKey):
            raise ParameterError(f"{path} must be the certificate of a service.")
        (name,) = old.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        return self._issued(key, str(name.value), hosts, now, _checked_ends(now, days))

    def _issued(
        self,
        key: ec.EllipticCurvePublicKey,
        name: str,
        hosts: x509.SubjectAlternativeName,
        now: dt.datetime,
        ends: dt.datetime,
    ) -> x509.Certificate:
        """Return a certificate of a service."""
        _check_dates("the authority", self.certificate, now)
        own = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        return (
            _builder(name, key, now, min(ends, self.certificate.not_valid_after_utc))
            .issuer_name(self.certificate.subject)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(hosts, critical=False)
            .add_extension(own, critical=False)
            .sign(self.key, hashes.SHA256())
        )

    def save(self, certificate: Path | str, key: Path | str) -> None:
        """Write both as PEM to new files, the key first, which only its owner can read.

        Raises:
            ParameterError: One of them is there already, or cannot be written.
        """
        if Path(certificate).exists():
            raise ParameterError(f"{certificate} is there already, and is never overwritten.")
        ServiceKey(self.key).save(key)
        save_certificate(certificate, self.certificate)

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


@dataclass(frozen=True)
class ServiceKey:
    """The private key of a service for TLS; `make` returns one, and the authority certifies its public half.

    Attributes:
        key: On the curve P-256.
    """

    key: ec.EllipticCurvePrivateKey

    @classmethod
    def make(cls) -> Self:
        """Return a new key, by the operating system's randomness."""
        return cls(ec.generate_private_key(ec.SECP256R1()))

    @property
    def public(self) -> str:
        """What everybody may know: the base64 of a compressed point, 44 characters."""
        point = self.key.public_key().public_bytes(Encoding.X962, PublicFormat.CompressedPoint)
        return base64.b64encode(point).decode()

    def save(self, path: Path | str) -> None:
        """Write a PEM file that only its owner can read; errors as `save_new`."""
        pem = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        save_new(pem, path, private=True)

    @staticmethod
    def check_public(name: str, text: str) -> None:
        """Refuse what `public` does not return.

        Raises:
            ParameterError: It is not the base64 of a point of the curve.
        """
        _public_key(name, text)


def save_certificate(path: Path | str, certificate: x509.Certificate) -> None:
    """Write a certificate as PEM to a new file, which everybody may read; errors as `save_new`."""
    save_new(certificate.public_bytes(Encoding.PEM), path, private=True)
    os.chmod(path, 0o644)  # everybody may read what everybody is shown


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
    builder = _builder(name, key.public_key(), now, ends)
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


def _public_key(name: str, text: str) -> ec.EllipticCurvePublicKey:
    """Return the public half of a `ServiceKey`, written in the one way to write it."""
    try:
        raw = base64.b64decode(text.encode(), validate=True)
        if len(raw) == _POINT_BYTES and base64.b64encode(raw).decode() == text:
            return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), raw)
    except (binascii.Error, ValueError):
        pass
    raise ParameterError(f"{name} must be the base64 of a compressed point of P-256, got {shown(text)}.")


def _builder(
    name: str, key: ec.EllipticCurvePublicKey, now: dt.datetime, ends: dt.datetime
) -> x509.CertificateBuilder:
    """Return what all certificates have."""
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:_LONGEST_COMMON_NAME])]))
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(ends)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
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
