import pytest

from maxmargin import _kernels
from maxmargin.tasks import _kernels as task_kernels


def use_lanes(wanted):
    return {module._use_lanes(wanted) for module in (_kernels, task_kernels)}.pop()


@pytest.fixture(params=[2, 4, 8])
def every_vector_length(request):
    """Run a test with each vector length that this machine has."""
    if use_lanes(request.param) < request.param:
        use_lanes(0)
        pytest.skip("this machine has no such vectors")
    yield request.param
    use_lanes(0)
