"""What packers with kernel features share: the setting's check, its place in model files, and what it excludes."""

from __future__ import annotations

from typing import Any

from maxmargin.features.kernel import Kernel, KernelMap

NO_L1 = (
    "an L1 ball of kernel features would depend on the choice of coordinates in the kernel's space; "
    'use norm="l2" (radius or C), or explicit features'
)
NO_SIGNS = "sign constraints have no kernel form; use explicit features"


def check(kernel: Any) -> None:
    """ValueError unless it is a kernel or None."""
    if kernel is not None and not isinstance(kernel, Kernel):
        raise ValueError(f'features must be None or a kernel such as mm.features.Kernel("rbf"), got {kernel!r}')


def header(support: KernelMap | None) -> dict[str, Any]:
    """The kernel's entry in a model file; none where there is no kernel."""
    return {} if support is None else {"kernel": support.kernel.header()}


def from_header(header: dict[str, Any]) -> Kernel | None:
    """The kernel of a model file's header; ValueError if it makes no sense."""
    return Kernel.from_header(header["kernel"]) if "kernel" in header else None
