"""Options that several commands share, each spelled once."""

from __future__ import annotations

from typing import Annotated

import typer

Reference = Annotated[str, typer.Argument(metavar="DATASET", help="PATH or PATH@VERSION.")]
Model = Annotated[str, typer.Option("--model", "-m", help="A model on disk or on the Hub, or smollm2-135m.")]
EngineName = Annotated[str, typer.Option("--engine", help="auto, transformers, vllm or openai.")]
BaseUrl = Annotated[str | None, typer.Option("--base-url", help="The endpoint of the engine openai.")]
Dtype = Annotated[str, typer.Option("--dtype", help="auto, bfloat16 or float32; of a model that computes here.")]
MemoryShare = Annotated[
    float | None, typer.Option("--memory-share", help="Of the GPU's memory, or the machine's, for the engine vllm.")
]
Backend = Annotated[str, typer.Option("--backend", help="auto, docker, bubblewrap, or process (no isolation).")]
TemplateName = Annotated[str, typer.Option("--template", help="auto, the name of a prompt template, or a .toml file.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of all that is drawn.")]
Limit = Annotated[int | None, typer.Option("--limit", help="At most so many problems.")]
Tokenizer = Annotated[
    str | None,
    typer.Option("--tokenizer", help="Whose tokens to count: a model, or `estimate`. Default: the collecting model."),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no remarks.")]
Output = Annotated[str | None, typer.Option("--output", "-o", metavar="DATASET", help="Write to this dataset instead.")]
