"""What a figure is, as data, and one builder for each kind of result. Drawing is the report's business."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
