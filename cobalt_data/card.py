"""The dataset card of a version: a README.md whose YAML header tells `datasets` which files are which table and split."""

from __future__ import annotations

from pathlib import Path

from cobalt_data.manifest import Manifest


def write_card(directory: Path, manifest: Manifest) -> None:
    (directory / "README.md").write_text(render_card(manifest), encoding="utf-8")


def render_card(manifest: Manifest) -> str:
    configs = "".join(
        f"- config_name: {name}\n  data_files:\n"
        + "".join(f"  - split: {split}\n    path: {name}/{split}-*.parquet\n" for split in manifest.splits(name))
        for name in manifest.tables
        if manifest.rows(name)
    )
    sizes = "".join(
        f"| {name} | {split} | {manifest.rows(name, split)} |\n"
        for name in manifest.tables
        for split in manifest.splits(name)
    )
    return f"""---
configs:
{configs}tags:
- code
- trajectories
---
# Version {manifest.id}

Made with cobalt {manifest.code_version} by `{manifest.operation}`; parents: {", ".join(manifest.parents) or "none"}.

| table | split | rows |
|---|---|---|
{sizes}
Load a table with `datasets.load_dataset(PATH_OF_THIS_FOLDER, "prompts", split="train")`, or read its Parquet files.
"""
