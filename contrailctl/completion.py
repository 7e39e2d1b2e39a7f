"""Completion of commands and options in shells, by argcomplete, which reads them from the parser of the arguments."""

import argparse
import io
import os
import shlex
from collections.abc import Sequence

import argcomplete
from argcomplete.completers import SuppressCompleter
from argcomplete.finders import CompletionFinder
from argcomplete.shell_integration import shellcode

_VARIABLE = "_ARGCOMPLETE"  # set by the code in the shell, which runs the command to complete its words
_HIDDEN = ("node-pages", "probe", "respond")
_SEPARATOR = "\013"


def shell_code(shell: str) -> str:
    """Returns the code that the shell has to run."""
    return shellcode(["contrailctl"], shell=shell)


def complete_words(parser: argparse.ArgumentParser) -> None:
    """Writes completions for the shell that runs this process, and ends it."""
    argcomplete.autocomplete(parser, exclude=_HIDDEN)


def completions(parser: argparse.ArgumentParser, words: Sequence[str]) -> list[str]:
    """Returns what the last word may be completed to; `words` are the arguments of the command."""
    line = " ".join([shlex.join(["contrailctl", *words[:-1]]), *words[-1:]])
    os.environ |= {
        _VARIABLE: "1",
        "_ARGCOMPLETE_IFS": _SEPARATOR,
        "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
        "COMP_LINE": line,
        "COMP_POINT": str(len(os.fsencode(line))),
    }
    found = io.StringIO()
    # Files are completed by the shell itself.
    complete = CompletionFinder()
    complete(
        parser,
        exclude=_HIDDEN,
        output_stream=found,
        exit_method=_go_on,
        append_space=False,
        default_completer=SuppressCompleter(),
    )
    return [each for each in found.getvalue().split(_SEPARATOR) if each]


def _go_on(_status: int) -> None:
    """Does not end the process."""
