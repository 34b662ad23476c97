"""Text that was pickled, compressed and put into base64, as LiveCodeBench hides its private tests, read without unpickling.

A pickle is a program. This one is never run: its instructions are listed, and only those that spell one piece of text are
taken. Whatever would name a class, call something or build anything else is refused, and so is what unpacks to more than
`MAX_UNPACKED_BYTES`.
"""

from __future__ import annotations

import base64
import binascii
import pickletools
import zlib

from cobalt_data.importers.fields import BadRow

MAX_UNPACKED_BYTES = 256 * 2**20
FRAMING = {"PROTO", "FRAME", "MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT"}
TEXT = {"UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"}


def pickled_text(packed: str, name: str) -> str:
    """The text. Raises BadRow, naming the field `name`, where there is anything else in it."""
    try:
        compressed = base64.b64decode(packed, validate=True)
    except (ValueError, binascii.Error) as error:
        raise BadRow(
            "not base64", f"field '{name}' is neither JSON nor base64 ({error}): fetch the row again"
        ) from None
    return _text(_inflated(compressed, name), name)


def _inflated(compressed: bytes, name: str) -> bytes:
    unpacking = zlib.decompressobj()
    try:
        unpacked = unpacking.decompress(compressed, MAX_UNPACKED_BYTES + 1)
    except zlib.error as error:
        raise BadRow("damaged", f"field '{name}' holds damaged zlib data ({error}): fetch the row again") from None
    if len(unpacked) > MAX_UNPACKED_BYTES:
        message = f"field '{name}' unpacks to more than {MAX_UNPACKED_BYTES / 2**20:g} MiB: refused"
        raise BadRow("too long", message)
    if not unpacking.eof or unpacking.unused_data:
        message = f"field '{name}' holds zlib data that does not end where the field ends: fetch the row again"
        raise BadRow("damaged", message)
    return unpacked


def _text(pickle: bytes, name: str) -> str:
    found: list[str] = []
    end = None
    try:
        for opcode, argument, position in pickletools.genops(pickle):
            if opcode.name in TEXT:
                found.append(str(argument))
            elif opcode.name == "STOP":
                end = position
            elif opcode.name not in FRAMING:
                message = f"field '{name}' is a pickle that does more than hold text ({opcode.name}): refused, not run"
                raise BadRow("unsafe pickle", message)
    except (ValueError, IndexError, OverflowError) as error:
        raise BadRow("damaged", f"field '{name}' is no pickle ({str(error)[:80]}): fetch the row again") from None
    if len(found) != 1 or end != len(pickle) - 1:
        raise BadRow("unsafe pickle", f"field '{name}' is a pickle that is not exactly one text: refused, not run")
    return found[0]
