"""The program of test_exhaustion.py that is of gormapy.rdma, without MPI."""

import os
import resource

from gormapy import rdma


def open_context(device, backend):
    with rdma.Context(device, backend) as context:
        pd, cq = context.alloc_pd(), context.create_cq(16)
        pd.create_qp(cq, cq).close()


def open_engines(device, backend):
    with rdma.Engine("a", backend=backend), rdma.Engine("b", backend=backend):
        pass


def descriptors(device, backend, most):
    for call in (open_context, open_engines):
        call(device, backend)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        outcomes = []
        for spare in range(most):
            fds = [os.open("/dev/null", os.O_RDONLY) for _ in range(spare + 1)]
            for fd in fds:
                os.close(fd)
            resource.setrlimit(resource.RLIMIT_NOFILE, (fds[-1], hard))  # so many are free
            try:
                call(device, backend)
            except (rdma.Error, OSError) as error:
                outcomes.append(str(error))
                refused = str(error).lower()
            else:
                outcomes.append("")
                refused = "too many open files"
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            assert "too many open files" in refused, refused
        assert outcomes[0] and not outcomes[-1], outcomes
        call(device, backend)
