"""Completion of commands and options in shells, by argcomplete, which reads them from the parser of the arguments."""

import argparse
import io
import os
import shlex
from collections.abc import Sequence

from argcomplete.completers import FilesCompleter, SuppressCompleter
from argcomplete.finders import CompletionFinder
from argcomplete.shell_integration import shellcode

_VARIABLE = "_ARGCOMPLETE"  # set by the code in the shell, which runs the command to complete its words
_HIDDEN = ("node-pages", "probe", "respond")
_SEPARATOR = "\013"


# argcomplete's function reads the whole buffer, with other commands and assignments before this one. So it is given
# one that has only the words of this command. Files are completed by zsh, which keeps `~` and variables as typed.
_ZSH = r"""
_contrailctl() {
    local -h BUFFER="${(j: :)words[1,CURRENT-1]} $QIPREFIX$IPREFIX$PREFIX"
    local -h CURSOR=${#BUFFER}
    _python_argcomplete && return
    compset -P 1 '--*='
    _files
}
compdef _contrailctl contrailctl
"""


class _DescribedFinder(CompletionFinder):
    """Finder for zsh, where a completion without a description would be shown with `None`."""

    def quote_completions(
        self, completions: list[str], cword_prequote: str, last_wordbreak_pos: int | None
    ) -> list[str]:
        quoted = super().quote_completions(completions, cword_prequote, last_wordbreak_pos)
        for each in quoted:
            self.get_display_completions().setdefault(each, "")
        return quoted


def shell_code(shell: str) -> str:
    """Returns the code that the shell has to run."""
    return shellcode(["contrailctl"], shell=shell) + (_ZSH if shell == "zsh" else "")


def complete_words(parser: argparse.ArgumentParser) -> None:
    """Writes completions for the shell that runs this process, and ends it."""
    # bash and zsh complete files better than argcomplete, which quotes variables; its code for fish prevents that.
    files = FilesCompleter() if os.environ.get("_ARGCOMPLETE_SHELL") == "fish" else SuppressCompleter()
    complete = _DescribedFinder()
    complete(parser, exclude=_HIDDEN, default_completer=files)


def completions(parser: argparse.ArgumentParser, words: Sequence[str]) -> list[str]:
    """Returns what the last word may be completed to; `words` are the arguments of the command."""
    line = " ".join([shlex.join(["contrailctl", *words[:-1]]), *words[-1:]])
    os.environ |= {
        _VARIABLE: "1",
        "_ARGCOMPLETE_IFS": _SEPARATOR,
        "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }
    found = io.StringIO()
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
