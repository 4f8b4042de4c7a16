from .language import bench_language as bench_language
from .pretraining import bench_pretraining as bench_pretraining
from .sandbox import bench_sandbox as bench_sandbox
from .sweep import bench_sweep as bench_sweep
