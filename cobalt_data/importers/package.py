"""Problem packages in the format of Kattis: a directory or a zip archive with `problem.yaml`, or a directory that
holds such, directories at any depth.

Samples are public, secret data hidden; accepted submissions in Python are the solutions. The default output validator with
its flags becomes a checker: a tolerance `float:EPS`, `space_change_sensitive` is `exact`, otherwise `tokens`. That validator
ignores case unless told otherwise, the checkers here never do. A problem with a validator of its own, or an interactive one,
is left out and counted: nothing here could judge it.

Where several data groups give different tolerances the largest counts, as a problem has one checker.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from cobalt_data.errors import InputError
from cobalt_data.importers.archives import Files, open_files, refuse_folder_link
from cobalt_data.importers.fields import BadRow, Fields, UnusableRow, as_text, identifier, wrong_type
from cobalt_data.importers.markup import html_to_text
from cobalt_data.importers.public import choose_public
from cobalt_data.importers.reader import SourceRow, refuse_special_files
from cobalt_data.importers.stdin_tests import stdin_test
from cobalt_data.rows import Problem
from sandbox import Judge, Test

FIELDS = ("name", "files")  # of the row that stands for a package
CONFIG = "problem.yaml"
STATEMENT = re.compile(r"(?:problem_)?statement/problem(?:\.(\w\w))?\.(md|html|tex)")
GROUP_CONFIG = re.compile(r"data/(?:.*/)?(?:testdata|test_group)\.yaml")
SOLUTION = re.compile(r"submissions/accepted/[^/]+\.py3?")
FLAGS = ("validator_flags", "output_validator_flags", "output_validator_args")  # the format's versions differ
TOLERANCES = ("float_tolerance", "float_relative_tolerance", "float_absolute_tolerance")
MAX_CONFIG_CHARS, MAX_BRACKETS = 100_000, 500  # the time that YAML takes grows with the square of its nesting
SECONDS, MEMORY_MB = 10.0, 2048  # Kattis's default memory; its time limit comes from running solutions


def _package_paths(source: Path) -> Iterator[Path]:
    """The packages that `source` is or holds. Raises InputError where there are none."""
    refuse_special_files(source)
    if not source.is_dir() or (source / CONFIG).is_file():
        yield source
        return
    links = (path for path in source.rglob("*") if path.is_symlink() and (path / CONFIG).is_file())
    inner = sorted([*source.glob("*.zip"), *(config.parent for config in source.rglob(CONFIG)), *links])
    if not inner:
        raise InputError(f"{source} holds no {CONFIG}, and no packages: name a problem package or a directory of them")
    yield from inner


def package_rows(source: Path) -> Iterator[SourceRow]:
    """One row per package, whose files can be read until the next row is asked for."""
    for path in _package_paths(source):
        try:
            if path != source:
                refuse_folder_link(path, source)
            with open_files(path) as files:
                yield SourceRow(str(path), {"name": path.resolve().name.removesuffix(".zip"), "files": files})
        except BadRow as error:
            yield SourceRow(str(path), error)


def to_problem(row: Fields, public: int | None) -> Problem:
    """`public` counts only where the package has no samples."""
    name, files = identifier(row, "name"), row["files"]
    config = _config(files, CONFIG)
    flags = _flags(config, files)
    _refuse_what_nothing_judges(config, files)
    samples, secrets = _tests(files, "sample", True), _tests(files, "secret", False)
    if not samples and not secrets:
        raise BadRow("no tests", "data/ holds no .in files: nothing could judge a program")
    sources = (_text(files, path) for path in files.names if SOLUTION.fullmatch(path))
    return Problem(
        problem_id=f"package/{name}",
        source="package",
        title=_title(config, name),
        difficulty=None,
        statement=_statement(files, samples),
        starter_code="",
        tests=(*samples, *secrets) if samples else choose_public(secrets, public),
        judge=Judge(_checker(flags), time_limit_s=_seconds(config, files), memory_mb=_memory(config)),
        solutions=tuple(sources),
        metadata={
            "origin_id": name,
            "contest": _plain(config.get("source")),
            "license": _plain(config.get("license")),
            "author": _plain(config.get("author")),
        },
    )


def _config(files: Files, name: str) -> Mapping[str, Any]:
    if name not in files.names:
        raise BadRow("missing file", f"{name} is missing: this is no problem package")
    content = _text(files, name)
    if len(content) > MAX_CONFIG_CHARS or content.count("[") + content.count("{") > MAX_BRACKETS:
        bounds = f"{MAX_CONFIG_CHARS} characters or {MAX_BRACKETS} brackets"
        raise BadRow("too long", f"{name} has more than {bounds}: it is no configuration")
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(content, yaml.SafeLoader)):
            raise ValueError("it uses aliases, which can stand for more than any memory holds")
        config = yaml.safe_load(content)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())[:120]
        raise BadRow("not YAML", f"{name} is no YAML ({reason}): correct it") from None
    if not isinstance(config, dict | None):
        raise wrong_type(name, config, "a mapping")
    return config or {}


def _text(files: Files, name: str) -> str:
    try:
        return files.read(name).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadRow("not UTF-8", f"{name} is not UTF-8 (byte {error.start}): save it as UTF-8") from None


def _refuse_what_nothing_judges(config: Mapping[str, Any], files: Files) -> None:
    kind = f"{config.get('validation', 'default')} {config.get('type', 'pass-fail')}"
    own = "custom" in kind or any(name.startswith("output_validator/") for name in files.names)
    if own or any(word in kind for word in ("interactive", "multi-pass", "submit-answer")):
        raise UnusableRow("validator of its own", f"{CONFIG} asks for a validator of its own ({kind}): left out")


def _flags(config: Mapping[str, Any], files: Files) -> list[str]:
    """The words of all validator flags, of the package and of its data groups."""
    flags = []
    for part in (config, *(_config(files, name) for name in files.names if GROUP_CONFIG.fullmatch(name))):
        flags += [part.get(key) for key in FLAGS]
    words: list[str] = []
    for given in flags:
        words += map(str, given) if isinstance(given, list) else str(given or "").split()
    return words


def _checker(flags: list[str]) -> str:
    tolerances = []
    for flag, value in pairwise([*flags, ""]):
        if flag in TOLERANCES:
            try:
                tolerances.append(float(value))
            except ValueError:
                raise BadRow("bad tolerance", f"{flag} of the validator flags is {value[:40]!r}: no number") from None
    if tolerances:
        eps = max(tolerances)
        if not 0 <= eps < 1:
            raise BadRow("bad tolerance", f"the validator flags ask for a tolerance of {eps:g}: it must lie in [0, 1)")
        return f"float:{eps:g}"
    return "exact" if "space_change_sensitive" in flags else "tokens"


def _tests(files: Files, group: str, public: bool) -> list[Test]:
    inputs = [name for name in files.names if name.startswith(f"data/{group}/") and name.endswith(".in")]
    for name in inputs:
        if _answer(name) not in files.names:
            raise BadRow("unpaired tests", f"{name} has no {PurePosixPath(_answer(name)).name} beside it: add it")
    return [stdin_test(_text(files, name), _text(files, _answer(name)), public) for name in inputs]


def _answer(name: str) -> str:
    return name.removesuffix(".in") + ".ans"


def _statement(files: Files, samples: list[Test]) -> str:
    """The English statement where there is one; Markdown before HTML before LaTeX. What Kattis adds, the samples, follows."""
    found = [match for match in map(STATEMENT.fullmatch, files.names) if match]
    if not found:
        raise BadRow("no statement", "has no statement in Markdown, HTML or LaTeX: add one")
    best = min(found, key=lambda match: (match[1] not in ("en", None), ("md", "html", "tex").index(match[2]), match[0]))
    text = _text(files, best[0])
    if best[2] == "html":
        text = html_to_text(text)
    text = re.sub(r"\\problemname\{[^{}]*\}", "", text).replace("\r\n", "\n").strip()
    if not text:
        raise BadRow("empty field", f"{best[0]} is empty: fill it in")
    shown = enumerate((sample for sample in samples if sample["input"].strip() not in text), start=1)
    parts = [
        f"Sample Input {n}\n{test['input'].rstrip()}\n\nSample Output {n}\n{test['output'].rstrip()}"
        for n, test in shown
    ]
    return "\n\n".join([text, *parts])


def _title(config: Mapping[str, Any], name: str) -> str:
    title = config.get("name")
    if isinstance(title, dict):
        title = title.get("en") or next(iter(title.values()), None)
    return _plain(title) or name


def _seconds(config: Mapping[str, Any], files: Files) -> float:
    """As the package says, never less than what a program in Python may need."""
    limits = config.get("limits")
    stated = limits.get("time_limit") if isinstance(limits, dict) else None
    if stated is None and ".timelimit" in files.names:
        stated = _text(files, ".timelimit").strip()
    try:
        return min(max(SECONDS, float(stated or 0)), 3600.0)
    except (TypeError, ValueError, OverflowError):
        raise BadRow("bad limit", f"the time limit is {str(stated)[:40]!r}: it must be a number of seconds") from None


def _memory(config: Mapping[str, Any]) -> int:
    limits = config.get("limits")
    stated = limits.get("memory", MEMORY_MB) if isinstance(limits, dict) else MEMORY_MB
    if not isinstance(stated, int) or not 16 <= stated <= 2**20:
        raise wrong_type("limits.memory", stated, "a number of MiB, at least 16")
    return stated


def _plain(value: Any) -> str | None:
    """One line of text of what YAML took for text or a number; None for anything else."""
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        return None
    return " ".join(as_text(str(value), CONFIG).split()) or None
