"""Publishing a version on the Hub: one commit that holds all of it, tagged with its id.

The commit is built on the state of the repository that was looked at; where somebody else's came first it is built again on
theirs. What a killed push has already uploaded is not sent twice. Shards that the version does not have are removed in the
same commit, so `main` is always exactly one version and every tag one more: the last commit that holds it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow.parquet as pq
from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi
from huggingface_hub.errors import HfHubHTTPError

from cobalt_data.card import CARD_NAME, PICTURE_NAME, Words, render_card
from cobalt_data.charts import stats_picture
from cobalt_data.dataset import Version
from cobalt_data.errors import InputError
from cobalt_data.history import history
from cobalt_data.hub import DATASET, hub, is_stale
from cobalt_data.manifest import MANIFEST_NAME
from cobalt_data.references import HubReference
from cobalt_data.schemas import TABLES
from cobalt_data.shard_checks import wrong_with_file
from cobalt_data.stats import stats
from cobalt_data.viewer import rows_too_large

ATTEMPTS = 5
UPLOADS = 8  # files between two reports of progress
_LABEL = re.compile(r"[A-Za-z0-9][\w.:-]{0,60}", re.ASCII)

Progress = Callable[[int, int], None]  # bytes that the Hub has, of how many


@dataclass(frozen=True, slots=True)
class Pushed:
    """Where the version can be had: `reference` is what `open_version` and `pull` take.

    `too_large`: by table, the rows that the Hub's viewer will not show (`cobalt_data.viewer`).
    """

    reference: str
    url: str
    commit: str
    private: bool
    too_large: Mapping[str, int]


def push(
    version: Version,
    repository: str,
    *,
    private: bool = True,
    token: str | None = None,
    licence: str | None = None,
    tags: Sequence[str] = (),
    progress: Progress | None = None,
) -> Pushed:
    """Publishes `version` as the newest state of `repository` (USER/NAME), which is made if it is not there.

    Raises InputError on damaged shards, a repository that holds something else or that everybody could read though `private`;
    HubError where the Hub refuses.
    """
    target = HubReference(repository)
    for label in (*tags, *([licence] if licence else [])):
        if not _LABEL.fullmatch(label):
            raise InputError(f"{label[:80]!r} is no tag or licence of the Hub; write it like `cc-by-4.0`")
    _check_shards(version)
    words = Words(repository, licence, tags)
    figures, too_large = stats(version), rows_too_large(version)
    card = render_card(version.path, version.manifest, words, history(version), figures)
    beside = {CARD_NAME: card.encode(), PICTURE_NAME: stats_picture(figures)}
    with hub(target, token) as api:
        url = api.create_repo(repository, repo_type=DATASET, private=private, exist_ok=True)
        commit, is_private = _commit(api, version, repository, beside, private, progress)
        _tag(api, repository, version.id, commit)
    return Pushed(str(HubReference(repository, version.id)), str(url), commit, is_private, too_large)


def _check_shards(version: Version) -> None:
    """What is published is what the manifest says, and what the card says of its columns is true of every shard."""
    for name, shards in version.manifest.tables.items():
        for shard in shards:
            problem = wrong_with_file(version.path / shard.path, shard)
            if problem is None and not pq.read_schema(version.path / shard.path).equals(TABLES[name]):
                problem = "has other columns than this cobalt writes; run the last verb again"
            if problem:
                raise InputError(f"{version.reference}: {shard.path} {problem}")


def _commit(
    api: HfApi, version: Version, repository: str, beside: Mapping[str, bytes], private: bool, progress: Progress | None
) -> tuple[str, bool]:
    """Returns the commit that holds the version, and whether the repository is private."""
    for _ in range(ATTEMPTS - 1):
        try:
            return _commit_once(api, version, repository, beside, private, progress)
        except HfHubHTTPError as error:
            if not is_stale(error):
                raise
    return _commit_once(api, version, repository, beside, private, progress)


def _commit_once(
    api: HfApi, version: Version, repository: str, beside: Mapping[str, bytes], private: bool, progress: Progress | None
) -> tuple[str, bool]:
    info = api.dataset_info(repository)
    if private and not info.private:
        raise InputError(f"{repository} is there already and everybody can read it; push with --public, or elsewhere")
    there = {file.rfilename for file in info.siblings or ()}
    _refuse_to_overwrite(repository, there)
    additions = _additions(version, beside)
    _upload(api, repository, additions, progress)
    done = api.create_commit(
        repository,
        [*additions, *_removals(version, there)],
        repo_type=DATASET,
        commit_message=f"Version {version.id}: {version.manifest.operation}",
        parent_commit=info.sha,
    )
    return str(done.oid), bool(info.private)


def _tag(api: HfApi, repository: str, tag: str, commit: str) -> None:
    """Puts `tag` on the commit; where it stands on another one, from an earlier push of the version, it moves."""
    api.create_tag(repository, repo_type=DATASET, tag=tag, revision=commit, exist_ok=True)
    if api.dataset_info(repository, revision=tag).sha != commit:
        api.delete_tag(repository, repo_type=DATASET, tag=tag)
        api.create_tag(repository, repo_type=DATASET, tag=tag, revision=commit)


def _refuse_to_overwrite(repository: str, there: set[str]) -> None:
    strange = sorted(there - {MANIFEST_NAME, CARD_NAME, ".gitattributes"})
    if strange and MANIFEST_NAME not in there:
        raise InputError(f"{repository} holds something that cobalt did not write ({strange[0]}); push to another name")


def _additions(version: Version, beside: Mapping[str, bytes]) -> list[CommitOperationAdd]:
    """`beside`: what the repository has in place of the version's own card, by name."""
    additions = [
        *(CommitOperationAdd(name, content) for name, content in beside.items()),
        CommitOperationAdd(MANIFEST_NAME, version.path / MANIFEST_NAME),
    ]
    for shard in version.manifest.shards:
        addition = CommitOperationAdd(shard.path, version.path / shard.path)
        addition.upload_info.sha256 = bytes.fromhex(shard.sha256)  # just checked: no need to read it all again
        additions.append(addition)
    return additions


def _upload(api: HfApi, repository: str, additions: list[CommitOperationAdd], progress: Progress | None) -> None:
    """Sends what the Hub does not have yet, ahead of the commit and a few files at a time, so that one can watch."""
    sent, total = 0, sum(addition.upload_info.size for addition in additions)
    for start in range(0, len(additions), UPLOADS):
        batch = additions[start : start + UPLOADS]
        api.preupload_lfs_files(repository, batch, repo_type=DATASET, free_memory=False)
        sent += sum(addition.upload_info.size for addition in batch)
        if progress is not None:
            progress(sent, total)


def _removals(version: Version, there: set[str]) -> list[CommitOperationDelete]:
    kept = {shard.path for shard in version.manifest.shards}
    gone = sorted(path for path in there - kept if path.split("/")[0] in TABLES)
    return [CommitOperationDelete(path) for path in gone]
