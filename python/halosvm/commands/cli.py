"""The command ``halosvm``: words in, their commands run, and an exit status out.

Tables go in (see `halosvm.files.tables`), a model file or a table of predictions comes out. Trouble
with a table, a model file or an option is told in one line on standard error.
"""

from __future__ import annotations

import os
import sys
import warnings
from typing import TYPE_CHECKING, Any

from halosvm.commands.options import make_parser
from halosvm.files.atomic import require_writable
from halosvm.files.tables.trouble import ChoiceError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command ``halosvm``.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments after the name of the command; by default those of this process.

    Returns
    -------
    int
        Exit status: 0; 1 for a table, a model file or an output that cannot be used; 2 for options
        that cannot; 130 after Ctrl-C; 141 when the reader of a pipe has left.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # labels are UTF-8 wherever they go
            stream.reconfigure(encoding="utf-8")
    parser = make_parser(_demo, _show_config)
    arguments = parser.parse_args(argv)
    if arguments.command is None:
        parser.print_help()
        return 0
    try:
        with warnings.catch_warnings():
            _tell_warnings(arguments.command)
            require_writable("-")
            arguments.run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader (`head`, say) has left; without this Python would complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130
    except MemoryError:
        return _refused(arguments, "not enough memory for these data", 1)
    except ChoiceError as error:
        return _refused(arguments, error, 2)
    except (ValueError, TypeError, ArithmeticError, ImportError, OSError) as error:
        return _refused(arguments, error, 1)
    return 0


def _refused(arguments: argparse.Namespace, error: Exception | str, status: int) -> int:
    message = " ".join(str(error).split())
    print(f"halosvm {arguments.command}: error: {message}", file=sys.stderr)
    return status


def _tell_warnings(command: str) -> None:
    """Let warnings be one line each, without the place in the code that they come from."""

    def show(message: Warning | str, *_place: Any, **_options: Any) -> None:
        text = " ".join(str(message).split())
        print(f"halosvm {command}: warning: {text}", file=sys.stderr)

    warnings.simplefilter("ignore")
    warnings.simplefilter("default", UserWarning)
    warnings.showwarning = show


def _demo(arguments: argparse.Namespace) -> None:
    # Here, not above: data sets and statistics load slowly, and no other command needs them.
    from halosvm.commands import demo

    make = demo.Setup.quick if arguments.quick else demo.Setup
    splits = {} if arguments.splits is None else {"splits": arguments.splits}
    demo.main(make(**splits, seed=arguments.seed), arguments.output)


def _show_config(_arguments: argparse.Namespace) -> None:
    from halosvm.core.config import show_config

    show_config()
