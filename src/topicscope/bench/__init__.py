"""Speed, measured against the plain way in the same run."""

from topicscope.bench.language import bench_language
from topicscope.bench.pretraining import bench_pretraining
from topicscope.bench.sandbox import Row, bench_sandbox
from topicscope.bench.sweep import bench_sweep

__all__ = ["Row", "bench_language", "bench_pretraining", "bench_sandbox", "bench_sweep"]
