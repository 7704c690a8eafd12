"""A command run in this process: words in; what it says, and its summary as a dict, out."""

from halosvm.commands.cli import main


def run(capsys, *arguments):
    """Exit status, standard output and standard error of a command."""
    capsys.readouterr()
    status = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def without_pairs(err):
    """What a command says beside which columns it took for errors by their names."""
    return "".join(line for line in err.splitlines(True) if "taken as errors: " not in line)


def summary(out):
    """Lines of the summary of a training by their names."""
    return {line[:15].strip(): line[15:] for line in out.splitlines()}
