"""`replay`: a version made again from what its manifest says, to see that the same id comes out.

Every operation is repeated by one function of `REPEATED`, which turns the manifest's arguments back into the verb's
configuration and calls the verb on the manifest's parents. Verbs without a model give the same id on every machine; `collect`
does so on the same machine and library versions with the engine `transformers`, and is refused with others; `import` needs
its source, unchanged. Arguments that this cobalt does not know, or a source, model, template or parent that is not what or
where it was, are one clear line.

Nothing is written unless another dataset is named to write to. An id that differs is told with what differs.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

from cobalt_data.against import Against, load_against, problems_of
from cobalt_data.check_solutions import check_solutions
from cobalt_data.collection import RECOLLECT, CollectConfig, collect
from cobalt_data.commit import PLACES, Change, commit, foresee
from cobalt_data.console import moment
from cobalt_data.cut import CutConfig, cut
from cobalt_data.dataset import Version, open_version, version_ids
from cobalt_data.decontaminate import AGAINST_VERSION, DecontaminateConfig, decontaminate
from cobalt_data.dedup import DedupConfig, dedup
from cobalt_data.engines import open_engine
from cobalt_data.errors import CobaltError, InputError
from cobalt_data.ids import canonical_json
from cobalt_data.importers import ImportConfig, import_problems
from cobalt_data.manifest import Manifest, version_id
from cobalt_data.merge import MergeConfig, merge
from cobalt_data.perturb import PerturbConfig, perturb
from cobalt_data.recollection import RecollectConfig, draw_lies
from cobalt_data.references import HUB_PREFIX, parse_target
from cobalt_data.sources import source_digest
from cobalt_data.split import SplitConfig, split
from cobalt_data.templates import Template
from cobalt_data.tokens import token_counter
from cobalt_data.unperturb import unperturb
from sandbox import Pool

Config = TypeVar("Config")
EMBEDDED = "embedded"
SAY_WHERE = "say with --source where it is"


@dataclass(frozen=True, slots=True)
class Replay:
    """An operation that is being repeated: the version that it made, that version's parents, and what it may use."""

    version: Version
    parents: tuple[Version, ...]
    backend: str = "auto"
    source: str | None = None  # where what was imported, or compared with, lies now, if not where it lay
    progress: Callable[[int, int, str], None] = lambda done, total, note: None
    held: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)  # what is closed when the replay has ended

    @property
    def manifest(self) -> Manifest:
        return self.version.manifest

    @property
    def parent(self) -> Version:
        if not self.parents:
            raise InputError(
                f"{self.version.reference} has no parents, which {self.manifest.operation} needs: restore it"
            )
        return self.parents[0]

    def config(self, kind: Callable[..., Config]) -> Config:
        """The verb's configuration, from the arguments of the manifest."""
        try:
            return kind(**self.manifest.arguments)
        except TypeError as error:
            raise InputError(
                f"{self.version.reference}: this cobalt ({metadata.version('cobalt-rl')}) does not understand the arguments "
                f"of its {self.manifest.operation} ({error}): install the one that made it ({self.manifest.code_version})"
            ) from None

    def pool(self) -> Pool:
        return self.held.enter_context(Pool(backend=self.backend))


def replay(
    version: Version,
    output: str | Path | None = None,
    *,
    backend: str = "auto",
    source: str | None = None,
    progress: Callable[[int, int, str], None] = lambda done, total, note: None,
) -> Version:
    """Repeats what made `version`; returns it, or with `output` what was written there. Both have the same id.

    Raises InputError where the operation cannot be repeated here, CobaltError where another id comes out, and what the
    operation itself raises.
    """
    manifest = version.manifest
    if output is not None:
        parse_target(output)
    if manifest.operation not in REPEATED:
        raise InputError(
            f"{version.reference}: this cobalt cannot repeat the operation {manifest.operation!r}: "
            f"install the one that made it ({manifest.code_version})"
        )
    parents = tuple(_elder(version, parent, "made from", "restore or pull it") for parent in manifest.parents)
    with contextlib.ExitStack() as held:
        change = REPEATED[manifest.operation](Replay(version, parents, backend, source, progress, held))
        _compare(manifest, change, parents)
        return version if output is None else commit(change, parents, output)


def _split(again: Replay) -> Change:
    return split(again.parent, again.config(SplitConfig))


def _cut(again: Replay) -> Change:
    config = again.config(CutConfig)
    return cut(again.parent, config, token_counter(config.tokenizer))


def _augment(again: Replay) -> Change:
    config, template = again.config(PerturbConfig), again.manifest.recorded.get("template")
    return perturb(
        again.parent,
        config,
        again.pool(),
        token_counter(config.tokenizer),
        Template.load(template) if template else None,
        progress=lambda done, total: again.progress(done, total, ""),
    )


def _dedup(again: Replay) -> Change:
    return dedup(again.parent, again.config(DedupConfig))


def _decontaminate(again: Replay) -> Change:
    config, against = again.config(DecontaminateConfig), None
    if config.against is not None:
        against = _against(again)
        if against.hash != config.against:
            raise InputError(
                f"{against.name} is not what {again.version.reference} was compared with: say with --source where that is"
            )
    return decontaminate(again.parent, config, against).change


def _against(again: Replay) -> Against:
    """What was compared with, where `--source` says, or else what the manifest names."""
    if again.source:
        return load_against(again.source)
    name, wanted = str(again.manifest.recorded.get("against")), again.manifest.recorded.get(AGAINST_VERSION)
    if wanted is not None:
        return problems_of(_elder(again.version, str(wanted), "compared with", SAY_WHERE))
    try:
        return load_against(name)
    except InputError as error:
        raise InputError(f"{again.version.reference} was compared with {name}: {error}, or {SAY_WHERE}") from None


def _merge(again: Replay) -> Change:
    return merge(again.parents, again.config(MergeConfig))


def _import(again: Replay) -> Change:
    arguments = dict(again.manifest.arguments)
    source = _source(again)
    settings: dict[str, Any] = {setting.name: arguments.get(setting.name) for setting in fields(ImportConfig)}
    imported = import_problems(None if source == EMBEDDED else source, skip_bad_rows=True, **settings)
    if arguments.get("difficulty") is not None:
        imported = imported.of_difficulty(arguments["difficulty"])
    if arguments.get("check_solutions"):
        imported = replace(imported, problems=check_solutions(imported.problems, again.pool()).problems)
    return imported.as_change(source, **arguments)


def _source(again: Replay) -> str:
    recorded = again.manifest.recorded
    if again.manifest.arguments.get("format") == EMBEDDED:
        return EMBEDDED
    source, wanted = again.source or str(recorded.get("source")), recorded.get("source_sha256")
    if source.startswith(HUB_PREFIX):
        return source
    found = source_digest(source)
    if found is None:
        raise InputError(
            f"{source}, which {again.version.reference} was imported from, is not here: say with --source where"
        )
    if wanted not in (None, found):
        raise InputError(
            f"{source} is not what {again.version.reference} was imported from: its sha256 is {found}, that was {wanted}"
        )
    return source


def _collect(again: Replay) -> Change:
    arguments, where = again.manifest.arguments, again.version.reference
    config = again.config(lambda **given: CollectConfig.from_arguments(given))
    if arguments["engine"] != "transformers":
        raise InputError(
            f"{where} was collected by the engine {arguments['engine']}, which may answer otherwise this time"
        )
    if Template.load(config.template).hash != arguments["template_hash"]:
        raise InputError(f"template {config.template} is not what it was when {where} was collected: restore it")
    engine = open_engine(arguments["engine"], arguments["model"])
    again.held.callback(engine.close)
    if engine.model_revision != arguments["model_revision"]:
        raise InputError(
            f"model {engine.model} has the revision {engine.model_revision}; "
            f"{where} was collected with {arguments['model_revision']}: restore that"
        )
    lies = None
    if again.manifest.operation == RECOLLECT:
        lies = draw_lies(again.parent, engine.model, config, RecollectConfig(**arguments["perturb"]))
    collecting = collect(
        again.parent, engine, again.pool(), config, lies=lies, progress=lambda at: again.progress(*moment(at))
    )
    return again.held.enter_context(collecting).change


REPEATED: Mapping[str, Callable[[Replay], Change]] = {
    "import": _import,
    "merge": _merge,
    "split": _split,
    "collect": _collect,
    "cut": _cut,
    "augment": _augment,
    "recollect": _collect,
    "unperturb": lambda again: unperturb(again.parent),
    "dedup": _dedup,
    "decontaminate": _decontaminate,
}


def _elder(version: Version, wanted: str, relation: str, remedy: str) -> Version:
    """A version that `version` was made of, by its id, from its own dataset or from where it was when it was read."""
    if wanted in version_ids(version.dataset):
        return open_version(f"{version.dataset}@{wanted}")
    places = version.manifest.recorded.get(PLACES)
    place = places.get(wanted) if isinstance(places, Mapping) else None
    if isinstance(place, str) and place.startswith(HUB_PREFIX):
        return open_version(place)
    elsewhere = Path(os.path.normpath(version.dataset / str(place)))
    if place is not None and wanted in version_ids(elsewhere):
        return open_version(f"{elsewhere}@{wanted}")
    where = f"{version.dataset}" + ("" if place is None else f" nor in {elsewhere}")
    raise InputError(f"{version.reference} was {relation} version {wanted}, which is not in {where}: {remedy}")


def _compare(manifest: Manifest, change: Change, parents: Sequence[Version]) -> None:
    """Raises CobaltError, saying what differs, where `change` does not make the version of `manifest`."""
    content, before = foresee(change, parents), manifest.content
    found = version_id(content, change.operation, change.arguments, change.seed, manifest.parents)
    if found == manifest.id:
        return
    differing = [name for name in {**before, **content} if list(before.get(name, ())) != list(content.get(name, ()))]
    arguments = {**manifest.arguments, **change.arguments}
    differing += [
        f"argument {name}"
        for name in sorted(arguments)
        if manifest.arguments.get(name) != json.loads(canonical_json(change.arguments.get(name)))
    ]
    raise CobaltError(
        f"version {manifest.id}, repeated, is {found}: other {', '.join(differing) or 'seed'}; it was made by cobalt "
        f"{manifest.code_version}, this is {metadata.version('cobalt-rl')}"
    )
