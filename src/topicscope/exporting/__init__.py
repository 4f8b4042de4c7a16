"""Results for other programs: curves for TensorBoard, tables as Parquet, models with a card for the hub."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
