"""Root-mean-square normalisation, compiled against torch's stable ABI."""

from . import layers
from ._functional import rms_norm

__all__ = ["layers", "rms_norm"]
