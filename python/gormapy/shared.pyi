from collections.abc import Sequence
from typing import Any, Literal, SupportsIndex

from numpy import ndarray
from numpy.typing import DTypeLike

__all__ = ["shared_empty", "shared_zeros"]

def shared_empty(
    shape: SupportsIndex | Sequence[SupportsIndex], dtype: DTypeLike = ..., order: Literal["C", "F"] = "C"
) -> ndarray[Any, Any]: ...
def shared_zeros(
    shape: SupportsIndex | Sequence[SupportsIndex], dtype: DTypeLike = ..., order: Literal["C", "F"] = "C"
) -> ndarray[Any, Any]: ...
