"""Download the files of a data set from their public sources, checked against the registered checksums."""

from __future__ import annotations

import hashlib
import http.client
import io
import os
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

from tacit.data.info import DataFile, DatasetInfo
from tacit.data.recipes import RECIPES
from tacit.data.registry import data_home, describe
from tacit.errors import DataError, ParameterError

__all__ = ["DownloadProgress", "fetch", "verify_file"]

DownloadProgress = Callable[[int, int | None], None]
"""Called with the bytes received so far, and the bytes to come in all, if the server says."""

_CHUNK = 1 << 16
_MAX_BYTES = 1 << 28
_TIMEOUT_SECONDS = 30


def fetch(
    name: str,
    *,
    home: Path | None = None,
    base_url: str | None = None,
    progress: DownloadProgress | None = None,
) -> list[Path]:
    """Download the files of a data set that are not there yet.

    A file appears under its name only when complete and right. Two sources (credit-default, parkinsons)
    publish no file of the registered form, so these are placed by hand. Whether the others still serve the
    registered bytes cannot be known in advance; whatever differs is refused.

    Args:
        name: One of `names()`.
        home: Data home; None for `data_home()`.
        base_url: A mirror laid out like the data home (`<base_url>/<folder>/<file>`), instead of the sources.
        progress: Called after every chunk of a file.

    Returns:
        The paths of all its files; empty for an embedded data set.

    Raises:
        UnknownNameError: There is no such data set.
        ParameterError: `base_url` is not an http or https address.
        DataError: A file cannot be downloaded or written, is cut short, has another checksum, or no address.
    """
    info = describe(name)
    if base_url is not None and not base_url.startswith(("http://", "https://")):
        raise ParameterError(f"base_url must start with http:// or https://, got {base_url!r}.")
    folder = (data_home() if home is None else home) / info.folder
    paths = [folder / file.name for file in info.files]
    for file, path in zip(info.files, paths, strict=True):
        if not (path.is_file() and _checksum(path) in file.sha256):
            _fetch_file(info, file, path, base_url=base_url, progress=progress)
    return paths


def verify_file(info: DatasetInfo, file: DataFile, path: Path) -> None:
    """Refuse a file that is not the registered one.

    Raises:
        DataError: The checksum differs, or the file cannot be read.
    """
    try:
        found = _checksum(path)
    except OSError as error:
        raise DataError(f"{path} of the data set {info.name} cannot be read: {error.strerror}.") from error
    if found not in file.sha256:
        raise DataError(
            f"{path} of the data set {info.name} has SHA-256 {found}, expected {' or '.join(file.sha256)}; "
            "fetch it again, or pass verify=False to read it as it is."
        )


def _fetch_file(
    info: DatasetInfo, file: DataFile, path: Path, *, base_url: str | None, progress: DownloadProgress | None
) -> None:
    """Download one file beside its place, check it, and move it there in one step."""
    url = file.url if base_url is None else f"{base_url.rstrip('/')}/{info.folder}/{file.name}"
    if url is None:
        raise DataError(
            f"no public address serves {file.name} of {info.name} in the registered form; {_by_hand(info)}"
        )
    partial: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as target:
            partial = Path(target.name)
            digest = _download(url, target.file, progress)
        if base_url is None and (file.member is not None or file.recipe is not None):
            partial.write_bytes(_prepare(file, partial.read_bytes()))
            digest = _checksum(partial)
        if digest not in file.sha256:
            raise DataError(
                f"{url} gave a file with SHA-256 {digest}, expected {' or '.join(file.sha256)}; it was "
                f"removed. The source of {info.name} may have changed; {_by_hand(info)}"
            )
        partial.chmod(0o644)
        os.replace(partial, path)
    except (OSError, http.client.HTTPException, _BadDownloadError) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()  # it holds the connection
        raise DataError(
            f"{url} cannot be fetched for the data set {info.name}: {error}; {_by_hand(info)}"
        ) from error
    finally:
        if partial is not None:
            partial.unlink(missing_ok=True)


class _BadDownloadError(Exception):
    """What arrived is not what was announced."""


def _download(url: str, target: IO[bytes], progress: DownloadProgress | None) -> str:
    """Write the bytes at an http address, and return their checksum."""
    digest, done = hashlib.sha256(), 0
    # The scheme is http or https: registered addresses are, and `fetch` checks `base_url`.
    with urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS) as response:  # noqa: S310
        length = response.headers.get("Content-Length")
        total = int(length) if length is not None and length.isdigit() else None
        while chunk := response.read(_CHUNK):
            target.write(chunk)
            digest.update(chunk)
            done += len(chunk)
            if done > _MAX_BYTES:
                raise _BadDownloadError(f"it is larger than {_MAX_BYTES} bytes")
            if progress is not None:
                progress(done, total)
    # A connection that closes early looks like the end of the file to `read(size)`.
    if total is not None and done != total:
        raise _BadDownloadError(f"it was cut short after {done} of {total} bytes")
    return digest.hexdigest()


def _prepare(file: DataFile, raw: bytes) -> bytes:
    """Return the file as it is read, out of the bytes of the source."""
    try:
        if file.member is not None:
            with zipfile.ZipFile(io.BytesIO(raw)) as archive:
                raw = archive.read(file.member)
        return raw if file.recipe is None else RECIPES[file.recipe](raw, file.header)
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise _BadDownloadError(f"it does not have the expected form ({type(error).__name__})") from error


def _checksum(path: Path) -> str:
    """Return a file's SHA-256."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _by_hand(info: DatasetInfo) -> str:
    """Say how to do without the download."""
    files = ", ".join(file.name for file in info.files)
    return f"get it from {info.page} and place {files} in $TACIT_DATA_HOME/{info.folder}/."
