"""The `course` command, also as `python -m course`."""

import signal


def main() -> None:
    """Run the command. Until it is loaded, Ctrl-C ends the process without a traceback of what was being loaded."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from course import cli

    cli.main()


if __name__ == "__main__":
    main()
