"""Where rows come from: a file, a directory of packages or of cobalt's tables, or the Hub.

    PATH                                      a file of JSON lines or Parquet; a package, or a directory
    hf://datasets/USER/NAME[@TAG]/FILE        one file of a repository on the Hub, in the cache of its client
    hf://datasets/USER/NAME[@TAG]             what `datasets.load_dataset` makes of the repository, row by row

Of a dataset on the Hub each row stands on the side that its split names; repositories with a loading script, which
`datasets` no longer runs, are read file by file.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from cobalt_data.errors import InputError, one_line
from cobalt_data.hub import hub
from cobalt_data.importers.own_tables import in_tables, own_rows
from cobalt_data.importers.package import package_rows
from cobalt_data.importers.reader import SourceRow, read_rows
from cobalt_data.references import HUB_PREFIX, HubReference, parse_hub_reference


def open_rows(source: str, format: str, side: str | None = None, subset: str | None = None) -> Iterator[SourceRow]:
    """The rows of `source`, those of a dataset on the Hub from split `side` and configuration `subset` alone.

    Raises InputError for a source that cannot be read to its end, HubError where the Hub refuses or is out of reach.
    """
    if source.startswith("hf://"):
        reference, file = _parse_hub_source(source)
        rows = read_rows(_download(reference, file)) if file else _loaded(reference, side, subset)
        yield from in_tables(rows) if format == "cobalt" else rows
    elif "://" in source:
        raise InputError(f"{source} is an address: download the file and name it, or name a dataset as {HUB_PREFIX}...")
    elif subset is not None:
        raise InputError(f"subset is {subset!r}, but {source} is no dataset on the Hub: leave it out")
    elif format == "package":
        yield from package_rows(Path(source))
    elif format == "cobalt":
        yield from own_rows(Path(source))
    else:
        yield from read_rows(Path(source))


def _parse_hub_source(source: str) -> tuple[HubReference, str]:
    """The repository, and the file in it, empty where none is named."""
    if not source.startswith(HUB_PREFIX):
        return parse_hub_reference(source), ""
    user, _, rest = source.removeprefix(HUB_PREFIX).partition("/")
    name, _, file = rest.partition("/")
    if ".." in PurePosixPath(file).parts:
        raise InputError(f"{source} names a file outside of the repository: check the path")
    return parse_hub_reference(f"{user}/{name}"), file


def _download(reference: HubReference, file: str) -> Path:
    with hub(reference) as api:
        found = api.hf_hub_download(reference.repository, file, repo_type="dataset", revision=reference.tag)
    return Path(found)


def _loaded(reference: HubReference, side: str | None, subset: str | None) -> Iterator[SourceRow]:
    import datasets

    with hub(reference):
        try:
            loaded = datasets.load_dataset(
                reference.repository, subset, split=side, revision=reference.tag, streaming=True
            )
        except (ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
            remedy = f"name one of its files as {reference}/FILE"
            raise InputError(f"{reference} cannot be loaded ({one_line(error)}): {remedy}") from None
    for split, rows in loaded.items() if side is None else [(side, loaded)]:
        with hub(reference):
            for number, fields in enumerate(rows, start=1):
                yield SourceRow(f"{reference}:{split} row {number}", fields, str(split))
