"""The `cobalt` command: parses, calls, prints. What it calls is imported when it is called, so that `--help` is instant."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from cobalt_data.commands import data
from cobalt_data.commands.options import Backend, Json
from cobalt_data.console import Screen
from cobalt_data.errors import CobaltError, Interrupted, damage_in_one_line
from cobalt_train.commands import demo, evaluate, training

TERMINATED = 128 + signal.SIGTERM  # the exit status, as of a process that SIGTERM ends
UsageError = typer.BadParameter.__mro__[1]  # of which Typer shows only this child

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Make, share and learn from multi-turn code-generation trajectories.",
)
app.command()(demo)
app.add_typer(data, name="data")
sandbox = typer.Typer(no_args_is_help=True, help="Execute untrusted programs and judge their output.")
app.add_typer(sandbox, name="sandbox")
app.add_typer(training, name="train")
app.command("eval")(evaluate)


@app.command()
def doctor(json: Json = False) -> None:
    """What is installed, which engines and sandboxes work here, and what to do about the rest."""
    from cobalt_data.doctor import checks_table, examine, is_usable

    checks = list(examine())
    Screen(json).result({"checks": [asdict(check) for check in checks]}, checks_table(checks))
    raise typer.Exit(0 if is_usable(checks) else 3)


@sandbox.command()
def run(
    program: Annotated[Path, typer.Argument(help="A Python file.")],
    tests: Annotated[Path, typer.Option(help="JSON lines, one test a line.")],
    backend: Backend = "auto",
    time_limit: Annotated[float, typer.Option(help="CPU seconds per test.")] = 10.0,
    memory_mb: Annotated[int, typer.Option(help="MiB of memory per test.")] = 512,
    checker: Annotated[str, typer.Option(help="tokens, lines, exact, float:EPS or multiset.")] = "tokens",
    entry_point: Annotated[str | None, typer.Option(help="The function, or Class().method, of call tests.")] = None,
    json: Json = False,
) -> None:
    """Judges a program. The exit status is 0 whenever it could be judged, whatever the verdict."""
    from sandbox import Judge, Pool
    from sandbox.testfile import read_tests, read_text

    judge = Judge(checker, entry_point, time_limit_s=time_limit, memory_mb=memory_mb)
    source, given = read_text(program), read_tests(tests, judge)
    with Pool(backend, workers=1) as pool:
        result = pool.submit(source, given, judge).result()
    lines = (f"test {number}: {test.verdict} {test.seconds:.3f} s" for number, test in enumerate(result.tests, start=1))
    Screen(json).result(
        {"verdict": result.verdict, "pass_rate": result.pass_rate, "backend": result.backend}
        | {"tests": [asdict(test) for test in result.tests]},
        *lines,
        f"{result.verdict}, pass rate {result.pass_rate:.2f}, {result.backend}",
    )


@sandbox.command()
def build(
    base: Annotated[str, typer.Option(help="The image to start from.")] = "python:3.12-slim",
    from_host: Annotated[
        bool, typer.Option("--from-host", help="Use this machine's Python; needs no registry.")
    ] = False,
    packages: Annotated[bool, typer.Option(help="Offer numpy and sortedcontainers to programs.")] = True,
    json: Json = False,
) -> None:
    """Makes the image of the docker backend."""
    from sandbox.image import build_image

    image = build_image(base, from_host, packages)
    Screen(json).result({"image": image}, image)


@sandbox.command("doctor")
def sandbox_doctor(backend: Backend = "auto", json: Json = False) -> None:
    """Tries to get out of the sandbox in each way that it promises to close."""
    from cobalt_data.doctor import held_table
    from sandbox.doctor import checks

    tried = checks(backend)
    Screen(json).result({"checks": [asdict(check) for check in tried]}, held_table(tried))
    raise typer.Exit(0 if all(check.ok for check in tried) else 1)


@sandbox.command()
def bench(quick: Annotated[bool, typer.Option("--quick", help="Under a minute.")] = False, json: Json = False) -> None:
    """Measures the speed of the sandbox against peers in the same run."""
    from benchmarks.sandbox import measure

    claims = measure(quick)
    Screen(json).result({"claims": [asdict(claim) for claim in claims]}, *map(str, claims))
    raise typer.Exit(0 if all(claim.holds for claim in claims) else 1)


def main() -> None:
    """Runs the command line. A mistake of the user is one line on standard error and an exit status, never a traceback."""
    # Threads of torch that wait for work would otherwise spin, and take the cores from the programs being judged.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    terminations: list[int] = []
    try:
        with damage_in_one_line(), _terminated_like_interrupted(terminations):
            status = app(prog_name="cobalt", standalone_mode=False)
        if status == Interrupted.exit_status:
            raise Interrupted("interrupted: give the same command again to go on")
        sys.stdout.flush()
    except Interrupted as error:
        sys.stderr.write(_error_line(error))
        sys.stderr.flush()
        # a thread may still be in the model, and would abort an orderly exit
        os._exit(TERMINATED if terminations else error.exit_status)
    except CobaltError as error:
        sys.stderr.write(_error_line(error))
        sys.exit(error.exit_status)
    except UsageError as error:
        sys.stderr.write(_usage_line(error))
        sys.exit(2)
    except BrokenPipeError:  # the reader of our output went away, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)  # as Rich and Typer do where they notice first
    sys.exit(status)


@contextlib.contextmanager
def _terminated_like_interrupted(came: list[int]) -> Iterator[None]:
    """SIGTERM within is Ctrl-C, and put down in `came`; a second one ends the process at once.

    What `torchrun` started ends at once in any case: where one of its processes failed, the others wait for it in vain.
    """

    def interrupt(number: int, _: object) -> None:
        if came:
            os._exit(TERMINATED)
        came.append(number)
        raise KeyboardInterrupt

    if "TORCHELASTIC_RUN_ID" in os.environ:
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _error_line(error: CobaltError) -> str:
    """The message as one line, whatever the names in it hold: what would break it or a terminal obeys stands as its escape."""
    escaped = (each if each.isprintable() else each.encode("unicode_escape").decode() for each in str(error))
    return f"cobalt: {''.join(escaped)}\n"


def _usage_line(error: Any) -> str:
    """What is wrong with the arguments, on one line; nothing where there are none, and the help was shown."""
    message = " ".join(error.format_message().split())
    command = " ".join(error.ctx.command_path.split()) if error.ctx else "cobalt"
    return f"cobalt: {message.rstrip('.')}; `{command} --help` says how it is used\n" if message else ""


if __name__ == "__main__":
    main()
