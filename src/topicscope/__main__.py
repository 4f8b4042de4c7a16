"""`python -m topicscope`."""

from topicscope.cli.main import main

main()
