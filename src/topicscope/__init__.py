"""topicscope: a laboratory for how transformers learn topic structure.

from topicscope import RunConfig, train
run = train(RunConfig(steps=500))

Names are imported when they are first used: `topicscope --help` need not wait two seconds for PyTorch.
"""

import lazy_loader

__version__ = "0.3.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
