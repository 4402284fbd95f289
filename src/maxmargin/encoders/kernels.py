"""Kernel features in encoders: the check of the setting, its place in model files, and what it excludes."""

from __future__ import annotations

from typing import Any

from maxmargin.features.kernel import Kernel, KernelMap

L1_UNSUPPORTED = (
    "an L1 ball of kernel features would depend on the choice of coordinates in the kernel's space; "
    'use norm="l2" (radius or C), or explicit features'
)
SIGNS_UNSUPPORTED = "sign constraints have no kernel form; use explicit features"


def check(kernel: Any) -> None:
    """ValueError unless it is a kernel or None."""
    if kernel is not None and not isinstance(kernel, Kernel):
        raise ValueError(f'features must be None or a kernel such as mm.features.Kernel("rbf"), got {kernel!r}')


def state(support: KernelMap | None) -> dict[str, Any]:
    """The entries of a kernel in an encoder's state; none without a kernel."""
    return {} if support is None else {"kernel": support.kernel.header(), **support.arrays()}


def from_state(state: dict[str, Any], n_features: int) -> tuple[Kernel | None, KernelMap | None]:
    """The kernel and its support rows; ValueError if they make no sense."""
    if "kernel" not in state:
        return None, None
    kernel = Kernel.from_header(state["kernel"])
    return kernel, KernelMap.from_arrays(kernel, state, n_features)
