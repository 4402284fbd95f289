import pytest

from maxmargin import _kernels


@pytest.fixture(params=[2, 4, 8])
def every_vector_length(request):
    """Run a test with each vector length that this machine has."""
    if _kernels._use_lanes(request.param) < request.param:
        _kernels._use_lanes(0)
        pytest.skip("this machine has no such vectors")
    yield request.param
    _kernels._use_lanes(0)
