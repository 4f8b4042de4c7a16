"""The command, and `python -m topicscope`. Who interrupts it is answered from the first import to the last line."""

import signal
import sys


def run() -> None:
    signal.signal(signal.SIGTERM, _stop)  # answered like Ctrl-C
    try:
        from topicscope.cli.main import main

        main()
    except KeyboardInterrupt:  # while the command was imported; later ones are answered there
        print("topicscope: interrupted", file=sys.stderr)
        sys.exit(130)
    finally:  # all is written and said: what is left to do is to leave
        for name in (signal.SIGINT, signal.SIGTERM):
            signal.signal(name, signal.SIG_IGN)


def _stop(*_: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    run()
