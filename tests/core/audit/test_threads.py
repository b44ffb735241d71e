"""Models train on one thread, and the process gets its threads back however blocks overlap."""

from __future__ import annotations

from contextlib import ExitStack

from threadpoolctl import threadpool_info, threadpool_limits

from core.audit.learning import one_thread
from core.blas import one_blas_thread


def blas_threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_an_audit_that_outlasts_a_covariance_gives_the_threads_back() -> None:
    covariance, audit = ExitStack(), ExitStack()
    with threadpool_limits(limits=2, user_api="blas"):
        covariance.enter_context(one_blas_thread())
        audit.enter_context(one_thread())
        assert {pool["num_threads"] for pool in threadpool_info()} == {1}
        covariance.close()
        assert blas_threads() == {1}
        audit.close()
        assert blas_threads() == {2}
