"""The `cobalt` command: parses, calls, prints. What it calls is imported when it is called, so that `--help` is instant."""

from __future__ import annotations

import sys

import typer

from cobalt_data.commands import data
from cobalt_data.errors import CobaltError

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Make, share and learn from multi-turn code-generation trajectories.",
)
app.add_typer(data, name="data")


def main() -> None:
    """Runs the command line. A mistake of the user is one line on standard error and an exit status, never a traceback."""
    try:
        app()
    except CobaltError as error:
        sys.stderr.write(f"cobalt: {error}\n")
        sys.exit(error.exit_status)
    except BrokenPipeError:  # the reader of our output went away, as `head` does
        sys.stderr.close()
        sys.exit(0)


if __name__ == "__main__":
    main()
