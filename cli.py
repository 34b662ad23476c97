"""The `cobalt` command: parses, calls, prints. What it calls is imported when it is called, so that `--help` is instant."""

from __future__ import annotations

import sys
from dataclasses import asdict

import typer

from cobalt_data.commands import data
from cobalt_data.commands.options import Json
from cobalt_data.console import Screen
from cobalt_data.errors import CobaltError
from cobalt_train.commands import demo, evaluate, train

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Make, share and learn from multi-turn code-generation trajectories.",
)
app.command()(demo)
app.add_typer(data, name="data")
app.command()(train)
app.command("eval")(evaluate)


@app.command()
def doctor(json: Json = False) -> None:
    """What is installed, which engines and sandboxes work here, and what to do about the rest."""
    from cobalt_data.doctor import checks_table, examine, is_usable

    checks = list(examine())
    Screen(json).result({"checks": [asdict(check) for check in checks]}, checks_table(checks))
    raise typer.Exit(0 if is_usable(checks) else 3)


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
