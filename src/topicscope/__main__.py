"""The command, and `python -m topicscope`. Importing takes a second: who interrupts it then is answered too."""

import sys


def run() -> None:
    try:
        from topicscope.cli.main import main
    except KeyboardInterrupt:
        print("topicscope: interrupted", file=sys.stderr)
        sys.exit(130)
    main()


if __name__ == "__main__":
    run()
