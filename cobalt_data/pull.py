"""Fetching a version from the Hub: into a dataset (`pull`) or, for a reference, into the cache (`open_from_hub`).

Everything that comes from there is a stranger's. Of the repository only the manifest is believed, as far as its own id covers
it; the shards that it names are downloaded, checked down to each row (`cobalt_data.verify`) and only then become a version. An
interrupted download stays in `runs/` and goes on where it stopped; a refused one is removed.
"""

from __future__ import annotations

import contextlib
import fcntl
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from huggingface_hub import HfApi
from huggingface_hub.hf_api import RepoFile

from cobalt_data.card import write_card
from cobalt_data.dataset import Version, latest_id, load_version, version_ids
from cobalt_data.errors import HubError, InputError
from cobalt_data.hub import DATASET, hub
from cobalt_data.manifest import LARGEST_MANIFEST, MANIFEST_NAME, VERSION_ID, Manifest, Shard
from cobalt_data.models import cache_directory
from cobalt_data.references import HubReference, parse_hub_reference, parse_target
from cobalt_data.runs import open_run
from cobalt_data.staging import clear_disk_errors, locked, make_latest, publish, staging_directory
from cobalt_data.verify import verify_directory

DOWNLOADS = 4  # at a time

Progress = Callable[[int, int], None]  # bytes of shards that have arrived, of how many


@dataclass(frozen=True, slots=True)
class _Remote:
    """What a reference means at this moment: one commit, and the manifest that lies there."""

    reference: HubReference
    commit: str
    manifest: Manifest
    tags: frozenset[str]  # of the whole repository


def pull(reference: str, dataset: str | Path, *, token: str | None = None, progress: Progress | None = None) -> Version:
    """Fetches `USER/NAME[@TAG]` (also with `hf://datasets/` before it) into `dataset`, where it becomes the latest version.

    The dataset is new, or its latest version is a parent of this one or stands in the same repository. One of its own stays
    the latest where the version was there already and not asked for by its id. Raises InputError where another dataset is in
    the way, HubError where the Hub refuses or the content is not what the manifest says.
    """
    wanted, target = parse_hub_reference(reference), parse_target(dataset)
    if wanted.tag in version_ids(target):
        return _as_latest(target, str(wanted.tag))
    remote = _resolve(wanted, token)
    pulled, latest = remote.manifest.id, latest_id(target)
    is_own_work = latest not in {None, pulled, *remote.manifest.parents, *remote.tags}
    if pulled in version_ids(target):
        return load_version(target, pulled, latest) if is_own_work else _as_latest(target, pulled)
    if is_own_work:
        raise InputError(f"{target} holds another dataset (latest version {latest}) than {wanted}; pull into a new one")
    _fetch(remote, target, token, progress)
    return load_version(target, pulled, latest_id(target))


def _as_latest(target: Path, version_id: str) -> Version:
    """A version that the dataset has already, made its latest one."""
    version = load_version(target, version_id, version_id)
    with clear_disk_errors(target):
        make_latest(target, version_id)
    return version


def open_from_hub(reference: HubReference) -> Version:
    """The version that `reference` means, from the cache or else downloaded into it. A known id needs no network."""
    manifest_id, remote = reference.tag, None
    if manifest_id is None or not VERSION_ID.fullmatch(manifest_id):
        remote = _resolve(reference, None)
        manifest_id = remote.manifest.id
    home = cache_directory() / "datasets" / reference.repository
    target = home / manifest_id
    with clear_disk_errors(home):
        home.mkdir(parents=True, exist_ok=True)
        with locked(home, fcntl.LOCK_EX):  # of several processes that need it, one downloads
            if manifest_id not in version_ids(target):
                _fetch(remote or _resolve(reference, None), target, None, None)
    return load_version(target, manifest_id, latest_id(target), str(HubReference(reference.repository, manifest_id)))


def _resolve(reference: HubReference, token: str | None) -> _Remote:
    """Finds the commit, reads its manifest and checks that both fit together, before anything large is fetched."""
    with hub(reference, token) as api, tempfile.TemporaryDirectory() as scratch:
        info = api.repo_info(reference.repository, repo_type=DATASET, revision=reference.tag)
        commit = str(info.sha)
        tree = api.list_repo_tree(reference.repository, recursive=True, revision=commit, repo_type=DATASET)
        sizes = {entry.path: entry.size for entry in tree if isinstance(entry, RepoFile)}
        if sizes.get(MANIFEST_NAME, LARGEST_MANIFEST + 1) > LARGEST_MANIFEST:
            raise HubError(
                f"{reference} has no {MANIFEST_NAME}: cobalt did not write it; fetch its files and import them"
            )
        path = api.hf_hub_download(
            reference.repository, MANIFEST_NAME, repo_type=DATASET, revision=commit, local_dir=scratch
        )
        text = Path(path).read_bytes()
        tags = frozenset(tag.name for tag in api.list_repo_refs(reference.repository, repo_type=DATASET).tags)
    try:
        manifest = Manifest.parse(text, f"{reference}: {MANIFEST_NAME}")
    except InputError as error:
        raise HubError(str(error)) from None
    if reference.tag and VERSION_ID.fullmatch(reference.tag) and manifest.id != reference.tag:
        raise HubError(f"{reference} leads to version {manifest.id}: somebody has moved the tag; do not use it")
    for shard in manifest.shards:
        if sizes.get(shard.path) != shard.bytes:
            raise HubError(f"{reference}: {shard.path} is missing or is not the file that the manifest names; refused")
    return _Remote(reference, commit, manifest, tags)


def _fetch(remote: _Remote, target: Path, token: str | None, progress: Progress | None) -> None:
    """Makes the remote version one of `target`, or leaves at most a download that can be resumed."""
    manifest, arguments = remote.manifest, {"repository": remote.reference.repository, "commit": remote.commit}
    with _unless_empty(target), open_run(target, "pull", arguments, manifest.id) as run:
        files = run.path / "files"
        _download(remote, files, token, progress)
        for finding in verify_directory(files, manifest):
            run.discard()
            raise HubError(f"{remote.reference}: {finding}; refused, nothing was kept")
        with clear_disk_errors(target), staging_directory(target) as staging:
            for name in manifest.tables:
                (staging / name).mkdir()
            for shard in manifest.shards:
                (files / shard.path).rename(staging / shard.path)
            manifest.save(staging)
            write_card(staging, manifest)
            latest = latest_id(target)
            publish(target, staging, manifest, latest, at_home=latest is not None)
        run.discard()


@contextlib.contextmanager
def _unless_empty(target: Path) -> Iterator[None]:
    """Removes the directory again where work on it came to nothing."""
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            target.rmdir()


def _download(remote: _Remote, files: Path, token: str | None, progress: Progress | None) -> None:
    shards = remote.manifest.shards
    total, arrived = sum(shard.bytes for shard in shards), 0
    with clear_disk_errors(files), hub(remote.reference, token) as api, ThreadPoolExecutor(DOWNLOADS) as pool:
        for shard in pool.map(lambda shard: _download_shard(api, remote, shard, files), shards):
            arrived += shard.bytes
            if progress is not None:
                progress(arrived, total)


def _download_shard(api: HfApi, remote: _Remote, shard: Shard, files: Path) -> Shard:
    api.hf_hub_download(
        remote.reference.repository, shard.path, repo_type=DATASET, revision=remote.commit, local_dir=files
    )
    return shard
