"""This project's speed against the plain way, measured in one run."""

from topicscope.bench.sandbox import Row, bench_sandbox

__all__ = ["Row", "bench_sandbox"]
