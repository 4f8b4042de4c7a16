"""The command, and `python -m topicscope`. Who interrupts it is answered from the first import to the last line."""

import os
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
    finally:  # all is written: what is left to do is to leave
        for name in (signal.SIGINT, signal.SIGTERM):
            signal.signal(name, _leave)


def _leave(*_: object) -> None:
    print("topicscope: interrupted at the very end; everything has been written", file=sys.stderr)
    os._exit(130)


def _stop(*_: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    run()
