"""`cobalt data`: one function per verb. Each opens a reference, calls the verb, commits its change and prints the version.

What a verb needs is imported when it is called: the command line itself must start at once.
"""

import typer

from cobalt_data.commands import bring, look, make, shape, share

data = typer.Typer(no_args_is_help=True, help="Make, change and look at datasets of trajectories.")
data.command("import")(bring.import_)
for verb in (
    bring.merge,
    make.split,
    make.collect,
    shape.cut,
    shape.augment,
    shape.dedup,
    shape.decontaminate,
    look.show,
    look.stats,
    look.log,
    look.diff,
    look.verify,
    look.replay,
    share.push,
    share.pull,
    share.export,
    share.gc,
):
    data.command()(verb)

__all__ = ["data"]
